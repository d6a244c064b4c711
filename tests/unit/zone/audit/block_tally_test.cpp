#include "zone/audit/block_tally.h"

#include <gtest/gtest.h>

#include "shm/map/chunk.h"

namespace pando::zone {
namespace block_tally_test {

constexpr std::uint64_t kRoom = 4 * shm::kChunkBytes;

/// A window whose blocks nobody looks into: a tally needs their places alone.
shm::Window window(std::uint64_t room = kRoom) {
  static const std::byte base{};
  return {&base, shm::kFirstBlock + room};
}
/// The reference to the block that lies so many bytes behind the first one.
std::uint32_t at(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((shm::kFirstBlock + bytes) / shm::kUnit);
}

TEST(BlockTally, CountsBytesByContentAndTheirRounding) {
  BlockTally tally(window());
  EXPECT_TRUE(tally.count(at(0), 13, &Usage::rdata));
  EXPECT_TRUE(tally.count(at(16), 8, &Usage::trie));
  EXPECT_EQ(tally.usage().rdata, 13U);
  EXPECT_EQ(tally.usage().trie, 8U);
  EXPECT_EQ(tally.usage().padding, 3U);
  EXPECT_EQ(tally.bytes(), 24U);
  EXPECT_EQ(tally.usage().total(), tally.bytes());
}

TEST(BlockTally, PartsOfABlockCanCountAsOtherContent) {
  BlockTally tally(window());
  EXPECT_TRUE(tally.count(at(0), 64, &Usage::owners));
  tally.move(40, &Usage::owners, &Usage::signatures);
  EXPECT_EQ(tally.usage().owners, 24U);
  EXPECT_EQ(tally.usage().signatures, 40U);
  EXPECT_EQ(tally.usage().total(), 64U);
}

TEST(BlockTally, ABlockAcrossABorderCountsInBothChunks) {
  BlockTally tally(window());
  EXPECT_TRUE(tally.count(at(shm::kChunkBytes - 16), 24, &Usage::rdata));
  EXPECT_TRUE(tally.count(at(shm::kChunkBytes + 8), 2 * shm::kChunkBytes, &Usage::history));
  EXPECT_EQ(tally.chunks(),
            (std::vector<std::uint32_t>{16, shm::kChunkBytes, shm::kChunkBytes, 8}));
}

TEST(BlockTally, ABlockOutsideTheStoreIsRefusedAndNotCounted) {
  BlockTally tally(window());
  EXPECT_FALSE(tally.count(0, 8, &Usage::trie)) << "before the first block";
  EXPECT_FALSE(tally.count(at(kRoom), 8, &Usage::trie));
  EXPECT_FALSE(tally.count(at(kRoom - 8), 9, &Usage::trie)) << "its end";
  EXPECT_TRUE(tally.count(at(kRoom - 8), 8, &Usage::trie));
  EXPECT_EQ(tally.usage().total(), 8U);
}

TEST(BlockTally, NoWalkMeetsMoreBlocksThanTheStoreCanHave) {
  BlockTally tally(window());
  for (std::uint64_t i = 0; i < kRoom / shm::kUnit; ++i) ASSERT_TRUE(tally.count(at(0), 8, &Usage::trie));
  EXPECT_FALSE(tally.has_room());
  EXPECT_FALSE(tally.count(at(0), 8, &Usage::trie));
}

TEST(BlockTally, ProgressIsToldNowAndThen) {
  std::vector<std::uint64_t> told;
  BlockTally tally(window(), [&told](std::uint64_t bytes) { told.push_back(bytes); });
  for (int i = 0; i < 17; ++i) EXPECT_TRUE(tally.count(at(0), shm::kChunkBytes, &Usage::rdata));
  EXPECT_EQ(told, std::vector<std::uint64_t>{BlockTally::kTellEvery});
}

}  // namespace block_tally_test
}  // namespace pando::zone
