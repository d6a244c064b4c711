#include "manager/support/rate_limited_log.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace burst_limited_log_test {

TEST(BurstLimitedLog, HasEachLineOfABurstAndThenSoManyASecond) {
  BurstLimitedLog line(10, 3);
  constexpr std::uint64_t now = 1'000'000;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(line.one_more(now), 0U);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(line.one_more(now));
  EXPECT_EQ(line.one_more(now + 100), 5U) << "it tells what was left out";
  EXPECT_FALSE(line.one_more(now + 199));
  EXPECT_EQ(line.one_more(now + 200), 1U);
}

}  // namespace burst_limited_log_test
}  // namespace pando::manager
