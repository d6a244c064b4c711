#include "manager/secondary/refresh_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/unix_time.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace refresh_schedule_test {

using ::testing::ElementsAre;
using testing::name;

class DueZones : public ::testing::Test {
 protected:
  void run_for(std::chrono::milliseconds time) {
    io_.restart();
    io_.run_for(time);
  }

  asio::io_context io_;
  std::vector<std::string> calls_;
  RefreshSchedule schedule_{io_,
                            {.now = unix_seconds,
                             .run = [this] { calls_.emplace_back("run"); },
                             .tick = [this] { calls_.emplace_back("tick"); }}};
};

TEST_F(DueZones, TakesDueZonesByTheirTimes) {
  schedule_.add(name("late"), 30);
  schedule_.add(name("b"), 10);
  schedule_.add(name("a"), 10);
  schedule_.add(name("removed"), 5);
  schedule_.remove(name("removed"), 5);
  schedule_.remove(name("late"), 29);
  EXPECT_EQ(schedule_.take_due(9), std::nullopt);
  EXPECT_EQ(schedule_.take_due(10), name("a"));
  EXPECT_EQ(schedule_.take_due(10), name("b"));
  EXPECT_EQ(schedule_.take_due(29), std::nullopt);
  EXPECT_EQ(schedule_.take_due(30), name("late"));
}

TEST_F(DueZones, RunsOnceForAllZonesThatAreDueNow) {
  schedule_.arm();
  run_for(std::chrono::milliseconds(1));
  EXPECT_THAT(calls_, ElementsAre()) << "no zone is scheduled";
  schedule_.add(name("a"), unix_seconds());
  schedule_.arm();
  schedule_.arm();
  schedule_.run_soon();
  run_for(std::chrono::milliseconds(1));
  EXPECT_THAT(calls_, ElementsAre("run"));
}

TEST_F(DueZones, AnEarlierZoneMovesTheTimer) {
  schedule_.add(name("late"), unix_seconds() + 3600);
  schedule_.arm();
  schedule_.add(name("soon"), unix_seconds() + 1);
  schedule_.arm();
  run_for(std::chrono::milliseconds(1500));
  EXPECT_THAT(calls_, ElementsAre("run"));
}

TEST_F(DueZones, ATickComesOnceBeforeARun) {
  schedule_.arm_tick(std::chrono::milliseconds(1));
  schedule_.arm_tick(std::chrono::milliseconds(1));
  run_for(std::chrono::milliseconds(50));
  EXPECT_THAT(calls_, ElementsAre("tick", "run"));
}

TEST_F(DueZones, TellsTheTimeBeforeTheClockWasPutBack) {
  const std::uint64_t now = unix_seconds();
  EXPECT_EQ(schedule_.time_before_step(now + 3600), std::nullopt);
  EXPECT_EQ(schedule_.time_before_step(now), now + 3600);
  EXPECT_EQ(schedule_.time_before_step(now), std::nullopt) << "it was put back once";
}

TEST_F(DueZones, CallsNothingAfterItsEnd) {
  schedule_.add(name("a"), unix_seconds());
  schedule_.arm_tick(std::chrono::milliseconds(1));
  schedule_.run_soon();
  schedule_.stop();
  schedule_.arm();
  run_for(std::chrono::milliseconds(50));
  EXPECT_THAT(calls_, ElementsAre());
}

}  // namespace refresh_schedule_test
}  // namespace pando::manager
