#include <bit>
#include <random>

#include "shm/layout.h"
#include "shm/ledger.h"
#include "shm/map/bitmap.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace parts_test {

TEST(Bitmap, FindsMembersAndGaps) {
  Bitmap bits(200);
  EXPECT_EQ(bits.find_set(0), Bitmap::kNone);
  bits.set(3);
  bits.set(64);
  bits.set(199);
  EXPECT_EQ(bits.find_set(0), 3U);
  EXPECT_EQ(bits.find_set(4), 64U);
  EXPECT_EQ(bits.find_set(65), 199U);
  EXPECT_EQ(bits.find_clear(3), 4U);
  bits.reset(64);
  EXPECT_EQ(bits.find_set(4), 199U);
}

TEST(Bitmap, FindsRunsUpToTheLastBit) {
  Bitmap bits(130);
  for (std::uint32_t bit = 60; bit < 70; ++bit) bits.set(bit);
  for (std::uint32_t bit = 118; bit < 130; ++bit) bits.set(bit);
  EXPECT_EQ(bits.find_run(1), 60U);
  EXPECT_EQ(bits.find_run(10), 60U);
  EXPECT_EQ(bits.find_run(11), 118U);
  EXPECT_EQ(bits.find_run(12), 118U);
  EXPECT_EQ(bits.find_run(13), Bitmap::kNone);
}

TEST(Bitmap, CombinesTwoSets) {
  Bitmap a(300);
  Bitmap b(300);
  a.set(5);
  a.set(100);
  a.set(250);
  b.set(100);
  b.set(250);
  EXPECT_EQ(a.find_both(b, 0), 100U);
  EXPECT_EQ(a.find_only(b, 0), 5U);
  EXPECT_EQ(a.find_only(b, 6), Bitmap::kNone);
  EXPECT_EQ(a.find_last_both(b, 300), 250U);
  EXPECT_EQ(a.find_last_both(b, 250), 100U);
  EXPECT_EQ(a.find_last_both(b, 100), Bitmap::kNone);
}

TEST(Ledger, KeepsOneEntryPerChunkHoweverMany) {
  Ledger ledger;
  std::map<std::uint32_t, std::int64_t> model;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto chunk = static_cast<std::uint32_t>(random() % (i < 50 ? 12 : 3000) * 64);
    ledger.at(chunk).delta += i;
    model[chunk] += i;
  }
  EXPECT_EQ(ledger.entries().size(), model.size());
  for (const auto& [chunk, delta] : model) {
    ASSERT_NE(ledger.find(chunk), nullptr);
    EXPECT_EQ(ledger.find(chunk)->delta, delta);
  }
  EXPECT_EQ(ledger.find(1), nullptr);
}

TEST(Layout, FingerprintDependsOnTheCallersLayout) {
  EXPECT_EQ(fold_layout(1), fold_layout(1));
  EXPECT_NE(fold_layout(1), fold_layout(2));
}

TEST(Layout, TablesAndChunksDoNotOverlap) {
  EXPECT_LE(sizeof(Header), kCountsOffset);
  EXPECT_GE(kCountsBytes / sizeof(std::uint32_t), kMaxChunks);
  EXPECT_LE(kSideOffset + kSideBytes, kChunksOffset);
  EXPECT_LE(chunk_offset(kMaxChunks), kReach);
  EXPECT_EQ(chunk_at(chunk_offset(5)), 5U);
  EXPECT_EQ(chunk_at(chunk_offset(5) + kChunkBytes - 1), 5U);
  EXPECT_EQ(chunk_at(kChunksOffset - 1), kNoChunk);
}

TEST(Window, RefusesWhatReachesBeyondItsBlocks) {
  alignas(8) std::byte blocks[64]{};
  const auto start = reinterpret_cast<std::uintptr_t>(blocks) - kFirstBlock;
  const Window window(reinterpret_cast<const std::byte*>(start), kFirstBlock + sizeof blocks);
  const Ref<> second{kFirstBlock / kUnit + 1};
  EXPECT_EQ(window.at(Ref<>{0}), nullptr);
  EXPECT_EQ(window.at(Ref<>{second.units - 2}, 8), nullptr);
  EXPECT_EQ(window.at(Ref<>{second.units - 1}, 64), blocks);
  EXPECT_EQ(window.at(second, 8), blocks + kUnit);
  EXPECT_NE(window.at(second, 64 - kUnit), nullptr);
  EXPECT_EQ(window.at(second, 64 - kUnit + 1), nullptr);
  EXPECT_EQ(window.at(Ref<>{UINT32_MAX}), nullptr);
}

}  // namespace parts_test
}  // namespace pando::shm
