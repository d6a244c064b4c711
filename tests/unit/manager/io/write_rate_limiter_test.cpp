#include "manager/io/write_rate_limiter.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace write_rate_limiter_test {

using Clock = WriteRateLimiter::Clock;
using std::chrono::milliseconds;

constexpr Clock::time_point kStart{std::chrono::seconds(100)};

TEST(WriteRateLimiter, SpreadsWhatIsWrittenFasterThanItMay) {
  WriteRateLimiter pace(1000, kStart);
  EXPECT_EQ(pace.take(100, kStart), kStart + milliseconds(100));
  EXPECT_EQ(pace.take(50, kStart + milliseconds(100)), kStart + milliseconds(150));
  EXPECT_EQ(pace.take(50, kStart + milliseconds(155)), kStart + milliseconds(200))
      << "a sleep that ended late is made up for";
}

TEST(WriteRateLimiter, TimeThatTheDiskTookIsNotMadeUpFor) {
  WriteRateLimiter pace(1000, kStart);
  const Clock::time_point late = kStart + std::chrono::seconds(30);
  EXPECT_EQ(pace.take(100, late), late + milliseconds(100) - WriteRateLimiter::kSlack);
  EXPECT_EQ(pace.take(100, late), late + milliseconds(200) - WriteRateLimiter::kSlack);
}

TEST(WriteRateLimiter, WhoeverIsInAHurryDoesNotWait) {
  WriteRateLimiter pace(1);
  pace.keep(std::uint64_t{1} << 30, [] { return true; });
  int asked = 0;
  pace.keep(1, [&] { return ++asked == 3; });
  EXPECT_EQ(asked, 3) << "it is asked again while the thread sleeps";
}

}  // namespace write_rate_limiter_test
}  // namespace pando::manager
