#include "shm/map/chunk_memory.h"

#include <gtest/gtest.h>

#include <set>

#include "shm/map/chunk.h"

namespace pando::shm {
namespace chunk_memory_test {

constexpr std::uint32_t kLimit = 100;

/// A machine with memory for so many chunks.
class Machine final : public ChunkBacking {
 public:
  Status back(std::uint32_t first, std::uint32_t count) override {
    ++calls;
    if (backed.size() + count > most) return fail(Errc::kFull, "no memory");
    for (std::uint32_t chunk = first; chunk < first + count; ++chunk)
      EXPECT_TRUE(backed.insert(chunk).second) << "chunk " << chunk << " had memory";
    return {};
  }
  bool punch(std::uint32_t first, std::uint32_t count) noexcept override {
    ++punches;
    if (refuses) return false;
    for (std::uint32_t chunk = first; chunk < first + count; ++chunk) backed.erase(chunk);
    return true;
  }

  [[nodiscard]] std::uint32_t room() const noexcept override {
    return static_cast<std::uint32_t>(most - backed.size());
  }

  std::set<std::uint32_t> backed;
  std::size_t most = SIZE_MAX;
  int calls = 0;
  int punches = 0;
  bool refuses = false;
};

class FreeMemory : public ::testing::Test {
 protected:
  /// Takes the first `count` chunks, with memory.
  void take(std::uint32_t count) {
    ASSERT_TRUE(memory_.back(0, count));
    for (std::uint32_t chunk = 0; chunk < count; ++chunk) {
      memory_.take(chunk);
      space_.count_taken();
    }
  }

  Machine machine_;
  HugePageRegions regions_{kLimit};
  ChunkMemory memory_{machine_, regions_, kLimit};
  SpacePolicy space_{kLimit, kLimit};
};

/// Whatever the machine has, additions end early enough for deletes and compaction.
TEST(RefusedMemory, LeavesTheReserveToDeletesAndCompaction) {
  constexpr std::uint32_t kQuota = 10'000;
  for (const std::size_t most : {10U, 40U, 64U, 100U, 1000U, 5000U}) {
    Machine machine;
    machine.most = most;
    HugePageRegions regions{kQuota};
    ChunkMemory memory{machine, regions, kQuota};
    SpacePolicy space{kQuota, kQuota};
    while (memory.grow(1 + space.cushion(), space)) {
      memory.take(memory.find(1));
      space.count_taken();
    }
    space.machine_refused(memory.spare());
    EXPECT_TRUE(space.is_refused());
    EXPECT_EQ(space.quota(), most);
    EXPECT_FALSE(space.leaves(1, Reserve::kKept)) << most;
    EXPECT_TRUE(space.leaves(1, Reserve::kHalf)) << most;
    EXPECT_TRUE(space.low_space()) << most;
    EXPECT_GT(space.room_to_copy(0), 0U) << most;
    EXPECT_GT(space.in_use() * 4, most) << "the reserve is a small part";
  }
}

TEST_F(FreeMemory, IsGivenToTheLowestFreeChunksFirst) {
  take(3);
  memory_.give(1);
  ASSERT_TRUE(memory_.grow(3, space_));
  EXPECT_EQ(machine_.backed, (std::set<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(memory_.spare(), 3U);
}

TEST_F(FreeMemory, OneChunkWithMemoryComesBeforeALowerOneWithout) {
  for (const std::uint32_t chunk : {0U, 1U, 2U}) memory_.take(chunk);
  memory_.note_memory(2);
  memory_.give_known(0);
  memory_.give_known(2);
  EXPECT_EQ(memory_.find(1), 2U);
  EXPECT_EQ(memory_.find(2), 2U);
  memory_.take(2);
  EXPECT_EQ(memory_.find(1), 0U);
  EXPECT_EQ(memory_.find(kLimit), Bitmap::kNone);
}

TEST_F(FreeMemory, GrowsByOneChunkWhenTheMachineHasNotEnoughForAStep) {
  take(64);
  machine_.most = 65;
  EXPECT_EQ(space_.growth(0), 2U);
  EXPECT_TRUE(memory_.grow(1, space_));
  EXPECT_EQ(memory_.spare(), 1U);
  const auto more = memory_.grow(2, space_);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::kFull);
}

TEST_F(FreeMemory, GrowsNoFurtherThanThereAreFreeChunks) {
  take(kLimit);
  memory_.give(5);
  EXPECT_TRUE(memory_.grow(10, space_));
  EXPECT_EQ(memory_.spare(), 1U);
}

TEST_F(FreeMemory, RangeGetsOnlyTheMemoryThatItLacks) {
  ASSERT_TRUE(memory_.back(2, 2));
  ASSERT_TRUE(memory_.back(0, 6));
  EXPECT_EQ(machine_.calls, 3) << "two gaps";
  EXPECT_EQ(memory_.spare(), 6U);
}

TEST_F(FreeMemory, OfUnknownChunksIsTakenAway) {
  machine_.backed = {4, 5, 9};  // by the process before
  for (const std::uint32_t chunk : {4U, 5U, 9U}) memory_.take(chunk);
  memory_.give(5);
  memory_.give(9);
  memory_.give(4);
  EXPECT_EQ(memory_.spare(), 0U);
  memory_.punch_unknown();
  EXPECT_TRUE(machine_.backed.empty());
  EXPECT_EQ(machine_.punches, 2) << "neighbours at once";
  memory_.punch_unknown();
  EXPECT_EQ(machine_.punches, 2);
}

TEST_F(FreeMemory, IsTrimmedFromTheHighestFreeChunkDown) {
  take(10);
  for (const std::uint32_t chunk : {1U, 2U, 6U, 7U, 8U}) memory_.give(chunk);
  memory_.trim(3);
  EXPECT_EQ(memory_.spare(), 3U);
  EXPECT_EQ(machine_.backed, (std::set<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 9}));
  memory_.trim(0);
  EXPECT_EQ(machine_.backed, (std::set<std::uint32_t>{0, 3, 4, 5, 9}));
  EXPECT_EQ(memory_.spare(), 0U);
}

TEST(MuchFreeMemory, IsTrimmedInParts) {
  constexpr std::uint32_t kMany = 3 * ChunkMemory::kMaxTrimmed;
  Machine machine;
  HugePageRegions regions{kMany};
  ChunkMemory memory{machine, regions, kMany};
  ASSERT_TRUE(memory.back(0, kMany));
  memory.trim(100);
  EXPECT_EQ(memory.spare(), kMany - ChunkMemory::kMaxTrimmed);
  memory.trim(100);
  memory.trim(100);
  EXPECT_EQ(memory.spare(), 100U);
  EXPECT_EQ(machine.backed.size(), 100U);
}

TEST_F(FreeMemory, StaysCountedWhenTheKernelRefusesToTakeIt) {
  take(4);
  memory_.give(3);
  machine_.refuses = true;
  memory_.trim(0);
  EXPECT_EQ(memory_.spare(), 1U);
  EXPECT_TRUE(memory_.has_memory(3));
}

TEST_F(FreeMemory, LossEndsTheHugePageOfTheRegion) {
  take(2 * kChunksPerRegion);
  EXPECT_EQ(regions_.pick_full(0, kLimit, memory_.free_chunks(), 9).size(), 2U);
  memory_.give(kChunksPerRegion);
  memory_.trim(0);
  memory_.take(kChunksPerRegion);
  EXPECT_EQ(regions_.pick_full(0, kLimit, memory_.free_chunks(), 9), std::vector<std::uint32_t>{1});
}

}  // namespace chunk_memory_test
}  // namespace pando::shm
