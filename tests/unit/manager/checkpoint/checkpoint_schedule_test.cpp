// Each reason for a checkpoint alone, and each reason to put one off.

#include "manager/checkpoint/checkpoint_schedule.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace checkpoint_schedule_test {

using namespace std::chrono_literals;

constexpr CheckpointSchedule::TimePoint kStart{1000s};
constexpr std::uint64_t kHeldLimit = 512;  // chunks of 64 KiB, 32 MiB in all

/// A schedule whose process has made one checkpoint, at kStart, with 1,000 bytes in the journal.
class Schedule : public ::testing::Test {
 protected:
  Schedule() {
    schedule.on_image(0, 1000);
    schedule.on_written(kStart);
  }
  static CheckpointSchedule::Facts facts() { return {.now = kStart + 1s, .journal_bytes = 1000}; }

  CheckpointSchedule schedule{{60s, 100, 10s}, kStart};
};

TEST_F(Schedule, NothingIsDueAtFirst) {
  EXPECT_FALSE(schedule.is_due(facts(), true));
  EXPECT_FALSE(CheckpointSchedule::holds_too_much(facts()));
  EXPECT_FALSE(schedule.is_paused(kStart) || schedule.is_held());
}

TEST_F(Schedule, TheFirstChangeOfAProcessIsDueOnceZonesAreSettled) {
  const CheckpointSchedule fresh{{60s, 100, 10s}, kStart};
  EXPECT_FALSE(fresh.is_due({.now = kStart}, false));
  EXPECT_TRUE(fresh.is_due({.now = kStart}, true));
}

TEST_F(Schedule, TheIntervalCountsFromTheLastAttempt) {
  auto at = facts();
  at.now = kStart + 59s;
  EXPECT_FALSE(schedule.is_due(at, false));
  at.now = kStart + 60s;
  EXPECT_TRUE(schedule.is_due(at, false));
  schedule.on_failed(kStart + 30s);
  EXPECT_FALSE(schedule.is_due(at, false));
  schedule.set_limits(30s, 100);
  EXPECT_TRUE(schedule.is_due(at, false));
}

TEST_F(Schedule, JournalledBytesCountFromTheImage) {
  auto later = facts();
  later.journal_bytes = 1099;
  EXPECT_FALSE(schedule.is_due(later, false));
  later.journal_bytes = 1100;
  EXPECT_TRUE(schedule.is_due(later, false));
  schedule.on_image(0, 1100);
  EXPECT_FALSE(schedule.is_due(later, false));
}

TEST_F(Schedule, AShortenedJournalCountsFromItsNewStart) {
  auto later = facts();
  later.journal_bytes = 99;
  EXPECT_FALSE(schedule.is_due(later, false));
  later.journal_bytes = 100;
  EXPECT_TRUE(schedule.is_due(later, false));
}

TEST_F(Schedule, HeldMemoryIsLimitedByAnEighthOfALargeStore) {
  auto held = facts();
  held.held_chunks = kHeldLimit - 1;
  EXPECT_FALSE(schedule.is_due(held, false));
  held.held_chunks = kHeldLimit;
  EXPECT_TRUE(schedule.is_due(held, false));
  held.used_chunks = kHeldLimit * 8 + 8;
  EXPECT_FALSE(schedule.is_due(held, false));
  held.used_chunks = kHeldLimit * 8;
  EXPECT_TRUE(schedule.is_due(held, false));
}

TEST_F(Schedule, LowSpaceMattersOnlyWhenTheImageHoldsSomething) {
  auto low = facts();
  low.low_space = true;
  EXPECT_FALSE(schedule.is_due(low, false));
  EXPECT_FALSE(CheckpointSchedule::holds_too_much(low));
  low.held_chunks = 1;
  EXPECT_TRUE(schedule.is_due(low, false));
  EXPECT_TRUE(CheckpointSchedule::holds_too_much(low));
}

TEST_F(Schedule, TwiceTheLimitIsTooMuchWithoutCheckpoints) {
  auto held = facts();
  held.held_chunks = kHeldLimit * 2;
  EXPECT_FALSE(CheckpointSchedule::holds_too_much(held));
  ++held.held_chunks;
  EXPECT_TRUE(CheckpointSchedule::holds_too_much(held));
}

TEST_F(Schedule, AnotherConfigurationIsWrittenOnceZonesAreSettled) {
  schedule.set_configuration(7);
  EXPECT_TRUE(schedule.is_reconfigured());
  EXPECT_FALSE(schedule.is_due(facts(), false));
  EXPECT_TRUE(schedule.is_due(facts(), true));
  schedule.set_configuration(0);  // on the way to another one
  EXPECT_FALSE(schedule.is_reconfigured() || schedule.is_due(facts(), true));
  schedule.set_configuration(7);
  schedule.on_image(7, 1000);
  EXPECT_FALSE(schedule.is_reconfigured() || schedule.is_due(facts(), true));
  EXPECT_EQ(schedule.configuration(), 7U);
}

TEST_F(Schedule, AFailurePausesForAWhile) {
  schedule.on_failed(kStart + 5s);
  EXPECT_TRUE(schedule.is_paused(kStart + 14s));
  EXPECT_FALSE(schedule.is_paused(kStart + 15s));
}

TEST_F(Schedule, AnUnreadableImagePausesWithoutMovingTheInterval) {
  schedule.on_unreadable(kStart + 55s);
  EXPECT_TRUE(schedule.is_paused(kStart + 60s));
  auto at = facts();
  at.now = kStart + 60s;
  EXPECT_TRUE(schedule.is_due(at, false));
}

TEST_F(Schedule, AfterAHoldWorkersGetTimeToTurnToTheStore) {
  schedule.hold();
  EXPECT_TRUE(schedule.is_held());
  EXPECT_FALSE(schedule.waits_for_workers(kStart));
  schedule.resume(kStart);
  EXPECT_FALSE(schedule.is_held());
  EXPECT_TRUE(schedule.waits_for_workers(kStart + 4s));
  EXPECT_FALSE(schedule.waits_for_workers(kStart + 5s));
}

}  // namespace checkpoint_schedule_test
}  // namespace pando::manager
