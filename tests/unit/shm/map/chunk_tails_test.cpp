#include "shm/map/chunk_tails.h"

#include <gtest/gtest.h>

namespace pando::shm {
namespace chunk_tails_test {

constexpr std::uint32_t kEnd = kChunkBytes;

TEST(ChunkTails, GiveTheNewestThatHasRoom) {
  ChunkTails tails(100);
  EXPECT_TRUE(tails.add({7, kEnd - 5000}));
  EXPECT_TRUE(tails.add({3, kEnd - 9000}));
  EXPECT_TRUE(tails.add({5, kEnd - 4096}));
  const auto taken = tails.take(4097);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->chunk, 3U);
  EXPECT_EQ(taken->from, kEnd - 9000);
  EXPECT_EQ(tails.take(5000)->chunk, 7U);
  EXPECT_FALSE(tails.take(5000)) << "each once";
  EXPECT_EQ(tails.take(4096)->chunk, 5U);
}

TEST(ChunkTails, ListEachChunkOnce) {
  ChunkTails tails(100);
  EXPECT_TRUE(tails.add({7, 0}));
  EXPECT_FALSE(tails.add({7, 100}));
  EXPECT_EQ(tails.take(1)->from, 0U);
  EXPECT_TRUE(tails.add({7, 100})) << "taken, so it may be listed again";
}

TEST(ChunkTails, ForgetTheChunkThatWasDropped) {
  ChunkTails tails(100);
  tails.add({7, 0});
  tails.add({8, 0});
  tails.drop(8);
  tails.drop(9);
  EXPECT_EQ(tails.take(1)->chunk, 7U);
  EXPECT_FALSE(tails.take(1));
  EXPECT_TRUE(tails.add({8, 0}));
}

/// A search of a long list would cost each allocation more than a fresh chunk does.
TEST(ChunkTails, TryTheLastFewOnly) {
  ChunkTails tails(100);
  tails.add({99, 0});
  for (std::uint32_t chunk = 0; chunk < 16; ++chunk) tails.add({chunk, kEnd - 4096});
  EXPECT_FALSE(tails.take(5000));
  EXPECT_EQ(tails.take(4096)->chunk, 15U);
  EXPECT_EQ(tails.take(5000)->chunk, 99U);
}

TEST(ChunkTails, AreBounded) {
  ChunkTails tails(3000);
  std::uint32_t listed = 0;
  for (std::uint32_t chunk = 0; chunk < 3000; ++chunk) listed += tails.add({chunk, 0}) ? 1 : 0;
  EXPECT_EQ(listed, 1024U);
}

}  // namespace chunk_tails_test
}  // namespace pando::shm
