#include "manager/support/rate_limited_log.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace log_limit_test {

TEST(LogLimit, LeavesLinesOutAfterTheFirstThousand) {
  LogLimit limit;
  for (std::uint64_t line = 0; line < LogLimit::kMost; ++line)
    ASSERT_EQ(limit.level_of_next(log::Level::kError), log::Level::kError);
  EXPECT_EQ(limit.left_out(), 0U);
  EXPECT_EQ(limit.level_of_next(log::Level::kError), log::Level::kDebug);
  EXPECT_EQ(limit.left_out(), 1U);
}

}  // namespace log_limit_test
}  // namespace pando::manager
