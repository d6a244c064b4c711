#include "manager/secondary/notify_pace.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace notify_pace_test {

TEST(NotifyPace, ABurstIsNotDelayedAndAFloodIsSpread) {
  NotifyPace pace;
  constexpr std::uint64_t kNow = 1'700'000'000;
  for (std::uint64_t i = 0; i < NotifyPace::kBurst; ++i) EXPECT_EQ(pace.take(kNow), kNow);
  std::uint64_t last = kNow;
  for (std::uint64_t i = 0; i < 10 * NotifyPace::kPerSecond; ++i) {
    const std::uint64_t due = pace.take(kNow);
    EXPECT_GE(due, last);
    last = due;
  }
  EXPECT_EQ(last, kNow + 10);
  EXPECT_EQ(pace.take(kNow + 3600), kNow + 3600) << "a pause gives the burst back";
}

TEST(NotifyPace, CountsFromTheStartOfTheHost) {
  NotifyPace pace;
  EXPECT_EQ(pace.take(0), 0U);
  EXPECT_EQ(pace.next(1), 1U);
}

TEST(NotifyPace, AQuestionTakesNoPlace) {
  NotifyPace pace;
  constexpr std::uint64_t kNow = 1'700'000'000;
  for (std::uint64_t i = 0; i < 10 * NotifyPace::kBurst; ++i) EXPECT_EQ(pace.next(kNow), kNow);
  EXPECT_EQ(pace.take(kNow), kNow);
}

}  // namespace notify_pace_test
}  // namespace pando::manager
