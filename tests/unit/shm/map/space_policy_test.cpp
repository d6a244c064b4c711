#include "shm/map/space_policy.h"

#include <gtest/gtest.h>

#include "shm/map/ref.h"

namespace pando::shm {
namespace space_policy_test {

constexpr std::uint32_t kQuota = 1600;

SpacePolicy with_in_use(std::uint32_t chunks, std::uint32_t quota = kQuota) {
  SpacePolicy space(quota, quota);
  for (std::uint32_t i = 0; i < chunks; ++i) space.count_taken();
  return space;
}

TEST(SpacePolicy, EachKindOfStepLeavesItsPartOfTheReserve) {
  constexpr auto kReserve = static_cast<std::uint32_t>(reserve_chunks(kQuota));
  constexpr auto kCompaction = static_cast<std::uint32_t>(compaction_chunks(kQuota));
  const SpacePolicy space = with_in_use(kQuota - kReserve);
  EXPECT_TRUE(space.leaves(0, Reserve::kKept));
  EXPECT_FALSE(space.leaves(1, Reserve::kKept));
  EXPECT_TRUE(space.leaves(kReserve - kCompaction, Reserve::kHalf));
  EXPECT_FALSE(space.leaves(kReserve - kCompaction + 1, Reserve::kHalf));
  EXPECT_TRUE(space.leaves(kReserve - kLastChunks, Reserve::kAllButLast));
  EXPECT_FALSE(space.leaves(kReserve, Reserve::kAllButLast));
  EXPECT_TRUE(space.leaves(kReserve, Reserve::kAll));
  EXPECT_FALSE(space.leaves(kReserve + 1, Reserve::kAll));
}

TEST(SpacePolicy, SpaceIsLowWhenLessThanASixteenthIsFree) {
  EXPECT_FALSE(with_in_use(kQuota - kQuota / 16 - 1).low_space());
  EXPECT_TRUE(with_in_use(kQuota - kQuota / 16).low_space());
  EXPECT_FALSE(with_in_use(kQuota - kQuota / 8 - 1).is_crowded());
  EXPECT_TRUE(with_in_use(kQuota - kQuota / 8).is_crowded());
}

TEST(SpacePolicy, TheMachinesMemoryBoundsTheQuota) {
  SpacePolicy space = with_in_use(94);
  EXPECT_FALSE(space.low_space());
  space.machine_has(100);
  EXPECT_EQ(space.quota(), 100U);
  EXPECT_TRUE(space.is_bound_by_machine());
  EXPECT_TRUE(space.low_space());
  EXPECT_FALSE(space.leaves(10, Reserve::kKept));
  EXPECT_TRUE(space.leaves(1, Reserve::kHalf));
  space.machine_has(50);
  EXPECT_EQ(space.quota(), 94U) << "chunks in use have their memory";
  space.machine_has(UINT32_MAX);
  EXPECT_EQ(space.quota(), kQuota) << "the configured limit holds";
  EXPECT_FALSE(space.is_bound_by_machine());
  EXPECT_FALSE(space.low_space());
}

TEST(SpacePolicy, WaitingChunksAreInUseButComeBackByThemselves) {
  SpacePolicy space = with_in_use(kQuota - 10);
  for (int i = 0; i < 200; ++i) space.count_waiting();
  EXPECT_TRUE(space.low_space());
  EXPECT_FALSE(space.low_space_without_pins());
  EXPECT_EQ(space.waiting(), 200U);
  for (int i = 0; i < 200; ++i) {
    space.count_waited();
    space.count_freed();
  }
  EXPECT_EQ(space.in_use(), kQuota - 210);
  EXPECT_EQ(space.peak_in_use(), kQuota - 10);
  EXPECT_FALSE(space.low_space());
}

TEST(SpacePolicy, OptionalDataWaitForPinnedChunksInLowSpace) {
  EXPECT_TRUE(with_in_use(0).can_afford(kReach, Reserve::kKept)) << "not low: space is tried";
  SpacePolicy space = with_in_use(kQuota - 30);
  EXPECT_FALSE(space.can_afford(0, Reserve::kAll)) << "low for good";
  for (int i = 0; i < 500; ++i) space.count_waiting();
  EXPECT_TRUE(space.can_afford(0, Reserve::kAll));
  EXPECT_FALSE(space.can_afford(20 * kChunkBytes, Reserve::kAll)) << "twice the bytes are needed";
}

TEST(SpacePolicy, StoreThatStartedTooFullHasAnAllowanceThatFallsWithUse) {
  constexpr std::uint32_t kSmall = 32;
  constexpr std::uint32_t kBefore = 45;
  SpacePolicy space(kSmall, kBefore + SpacePolicy::allowance(kSmall));
  for (std::uint32_t i = 0; i < kBefore; ++i) space.count_taken();
  space.admit(kBefore);
  EXPECT_EQ(space.ceiling(), kBefore + SpacePolicy::allowance(kSmall));
  EXPECT_FALSE(space.leaves(0, Reserve::kKept));
  EXPECT_TRUE(space.leaves(1, Reserve::kHalf));
  for (std::uint32_t i = 0; i < 20; ++i) space.count_freed();
  EXPECT_EQ(space.ceiling(), kBefore - 20 + SpacePolicy::allowance(kSmall));
  space.count_taken();
  EXPECT_EQ(space.ceiling(), kBefore - 20 + SpacePolicy::allowance(kSmall)) << "never up again";
  for (std::uint32_t i = 0; i < 26; ++i) space.count_freed();
  EXPECT_EQ(space.ceiling(), kSmall);
}

TEST(SpacePolicy, StoreWithRoomForDeletesHasNoAllowance) {
  SpacePolicy space(64, 100);
  for (int i = 0; i < 50; ++i) space.count_taken();
  space.admit(50);
  EXPECT_EQ(space.ceiling(), 64U);
}

TEST(SpacePolicy, MemoryGrowsInStepsThatKeepToTheCeiling) {
  EXPECT_EQ(with_in_use(0).growth(0), 1U);
  EXPECT_EQ(with_in_use(320).growth(0), 10U);
  EXPECT_EQ(with_in_use(kQuota - 3).growth(0), 3U);
  EXPECT_EQ(with_in_use(kQuota - 3).growth(2), 1U);
  EXPECT_EQ(with_in_use(kQuota - 3).growth(9), 0U);
  EXPECT_EQ(with_in_use(320).cushion(), reserve_chunks(320))
      << "deletes and compaction work when the machine has no more";
  EXPECT_EQ(with_in_use(kQuota).cushion(), reserve_chunks(kQuota));
  EXPECT_EQ(with_in_use(320).most_spare(), reserve_chunks(320) + 2 * 10U + 8U);
}

TEST(SpacePolicy, CopiesTakeNeitherTheLastChunkNorItsRest) {
  EXPECT_EQ(with_in_use(kQuota - 3).room_to_copy(100), 2 * kChunkBytes + 100);
  EXPECT_EQ(with_in_use(kQuota - 1).room_to_copy(100), 100U);
  EXPECT_EQ(with_in_use(kQuota).room_to_copy(100), 0U);
}

TEST(SpacePolicy, AnyGainIsWorthAWalkInsideTheReserve) {
  constexpr auto kReserve = static_cast<std::uint32_t>(reserve_chunks(kQuota));
  EXPECT_EQ(with_in_use(kQuota / 2).least_gain(80 * kChunkBytes), 0U);
  EXPECT_EQ(with_in_use(kQuota - 80).least_gain(80 * kChunkBytes), 80 * kChunkBytes / 8);
  EXPECT_EQ(with_in_use(kQuota - 80).least_gain(0), kChunkBytes);
  EXPECT_EQ(with_in_use(kQuota - kReserve).least_gain(80 * kChunkBytes), 1U);
}

}  // namespace space_policy_test
}  // namespace pando::shm
