#include "manager/support/rate_limited_log.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace rate_limited_log_test {

constexpr std::uint64_t kNow = 5'000;  // milliseconds since the host's start

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

TEST(BurstLimitedLog, HasEachLineOfABurstAndThenSoManyASecond) {
  BurstLimitedLog line(10, 3);
  constexpr std::uint64_t now = 1'000'000;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(line.one_more(now), 0U);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(line.one_more(now));
  EXPECT_EQ(line.one_more(now + 100), 5U) << "it tells what was left out";
  EXPECT_FALSE(line.one_more(now + 199));
  EXPECT_EQ(line.one_more(now + 200), 1U);
}

TEST(LogLimit, LeavesLinesOutAfterTheFirstThousand) {
  LogLimit limit;
  for (std::uint64_t line = 0; line < LogLimit::kMaxLines; ++line)
    ASSERT_EQ(limit.level_of_next(log::Level::kError), log::Level::kError);
  EXPECT_EQ(limit.left_out(), 0U);
  EXPECT_EQ(limit.level_of_next(log::Level::kError), log::Level::kDebug);
  EXPECT_EQ(limit.left_out(), 1U);
}

}  // namespace rate_limited_log_test
}  // namespace pando::manager
