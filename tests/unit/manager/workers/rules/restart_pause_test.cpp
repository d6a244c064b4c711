#include "manager/workers/rules/restart_pause.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace restart_pause_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A clock that only the test moves.
class Restarts : public ::testing::Test {
 protected:
  /// The pause after a process that lives so long.
  milliseconds pause_after(bool greeted, RestartPause::Clock::duration lived, bool others_serve) {
    pause_.process_started(now_);
    now_ += lived;
    return pause_.process_ended(greeted, now_, others_serve);
  }
  RestartPause pause_;
  RestartPause::Clock::time_point now_{};
};

TEST_F(Restarts, FollowAHealthyLifeAtOnce) {
  EXPECT_EQ(pause_after(false, seconds(60), true), milliseconds(100));
  EXPECT_EQ(pause_after(true, seconds(10), true), milliseconds(0));
  EXPECT_EQ(pause_.count(), 2U);
}

TEST_F(Restarts, OfTheFirstWorkerThatServedComeAtOnce) {
  EXPECT_EQ(pause_after(true, milliseconds(1), true), milliseconds(0));
  EXPECT_EQ(pause_after(true, milliseconds(1), true), milliseconds(100));
}

TEST_F(Restarts, FollowShortLivesWithGrowingPauses) {
  pause_after(true, seconds(1), true);
  for (const int expected : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    EXPECT_EQ(pause_after(true, seconds(1), true), milliseconds(expected));
    EXPECT_EQ(pause_.backoff(), milliseconds(expected));
  }
}

TEST_F(Restarts, OfTheLastWorkerNeverWait) {
  for (int i = 0; i < 8; ++i) EXPECT_EQ(pause_after(true, milliseconds(1), false), milliseconds(0));
}

TEST_F(Restarts, OfAProgramThatNeverSaysHelloPauseALittle) {
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(pause_after(false, milliseconds(1), false), milliseconds(100));
  EXPECT_EQ(pause_after(false, milliseconds(1), true), seconds(5));
}

}  // namespace restart_pause_test
}  // namespace pando::manager
