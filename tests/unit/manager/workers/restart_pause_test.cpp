#include "manager/workers/restart_pause.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace restart_pause_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A clock that only the test moves.
class Restarts : public ::testing::Test {
 protected:
  RestartPause::Life life(bool greeted, RestartPause::Clock::duration lived) {
    const auto started = now_;
    now_ += lived;
    return {greeted, false, started, now_};
  }
  RestartPause::Clock::time_point now_{};
};

TEST_F(Restarts, FollowAHealthyLifeAtOnce) {
  EXPECT_EQ(RestartPause::backoff(seconds(5), life(true, seconds(10))), milliseconds(0));
  EXPECT_EQ(RestartPause::backoff(seconds(0), {true, true, now_, now_}), milliseconds(0));
}

TEST_F(Restarts, FollowShortLivesWithGrowingPauses) {
  milliseconds pause(0);
  for (const int expected : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    const auto short_life = life(true, seconds(1));
    pause = RestartPause::backoff(pause, short_life);
    EXPECT_EQ(RestartPause::wait(pause, short_life, true), milliseconds(expected));
  }
}

TEST_F(Restarts, OfTheLastWorkerNeverWait) {
  EXPECT_EQ(RestartPause::wait(seconds(5), life(true, milliseconds(1)), false), milliseconds(0));
}

TEST_F(Restarts, OfAProgramThatNeverSaysHelloPauseALittle) {
  EXPECT_EQ(RestartPause::wait(seconds(5), life(false, milliseconds(1)), false), milliseconds(100));
  EXPECT_EQ(RestartPause::wait(seconds(5), life(false, milliseconds(1)), true), seconds(5));
}

}  // namespace restart_pause_test
}  // namespace pando::manager
