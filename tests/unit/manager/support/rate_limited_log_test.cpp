#include "manager/support/rate_limited_log.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace rate_limited_log_test {

constexpr std::uint64_t kNow = 1'800'000'000'000;

TEST(RateLimitedLog, IsDueAtOnceAndThenOnceASecondForAllThatCameMeanwhile) {
  RateLimitedLog line;
  EXPECT_EQ(line.one_more(kNow), 1U);
  EXPECT_FALSE(line.one_more(kNow));
  EXPECT_FALSE(line.one_more(kNow + 999));
  EXPECT_EQ(line.one_more(kNow + 1000), 3U);
  EXPECT_FALSE(line.one_more(kNow + 1001));
}

TEST(RateLimitedLog, HasThePauseThatItIsGiven) {
  RateLimitedLog line(60'000);
  EXPECT_EQ(line.one_more(kNow), 1U);
  EXPECT_FALSE(line.one_more(kNow + 59'999));
  EXPECT_EQ(line.one_more(kNow + 60'000), 2U);
}

TEST(RateLimitedLog, IsNotSilentForAnHourWhenTheClockIsSetBack) {
  RateLimitedLog line;
  EXPECT_TRUE(line.one_more(kNow));
  EXPECT_EQ(line.one_more(kNow - 3'600'000), 1U);
}

}  // namespace rate_limited_log_test
}  // namespace pando::manager
