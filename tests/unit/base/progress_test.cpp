#include "base/progress.h"

#include <gtest/gtest.h>

namespace pando {
namespace progress_test {

using Phase = Progress::Phase;

TEST(Progress, IsAShareOfWhatIsKnown) {
  Progress progress;
  progress.begin(Phase::kReading, 200);
  EXPECT_EQ(progress.seen().percent(), 0U);
  progress.at(199);
  EXPECT_EQ(progress.seen().percent(), 99U);
  progress.at(5000);
  EXPECT_EQ(progress.seen().percent(), 100U);
  progress.begin(Phase::kSorting, UINT64_MAX);
  EXPECT_EQ(progress.seen().done, 0U) << "of another phase";
  progress.at(UINT64_MAX / 2);
  EXPECT_EQ(progress.seen().percent(), 50U);
  progress.lose_total();
  EXPECT_EQ(progress.seen().percent(), std::nullopt);
  EXPECT_EQ(progress.seen().done, UINT64_MAX / 2);
  EXPECT_EQ(to_text(Phase::kPreparing), "preparing");
  EXPECT_EQ(to_text(progress.seen().phase), "sorting");
  EXPECT_EQ(to_text(Phase::kPutting), "putting");
}

TEST(Progress, IsTheThreadsWhileItsScopeLasts) {
  Progress outer, inner;
  EXPECT_EQ(Progress::here(), nullptr);
  {
    const Progress::Scope scope(&outer);
    {
      const Progress::Scope nested(&inner);
      EXPECT_EQ(Progress::here(), &inner);
    }
    EXPECT_EQ(Progress::here(), &outer);
  }
  EXPECT_EQ(Progress::here(), nullptr);
}

TEST(ProgressCount, TellsOfSomeThousandsAndOfTheEnd) {
  Progress progress;
  const Progress::Scope scope(&progress);
  {
    ProgressCount count(Phase::kBuilding, 10'000);
    EXPECT_EQ(progress.seen().total, 10'000U);
    for (int i = 0; i < 4095; ++i) count.add();
    EXPECT_EQ(progress.seen().done, 0U);
    count.add();
    EXPECT_EQ(progress.seen().done, 4096U);
    count.add(5000);
    EXPECT_EQ(progress.seen().done, 9096U);
    count.add(4);
  }
  EXPECT_EQ(progress.seen().done, 9100U);
  EXPECT_EQ(progress.seen().phase, Phase::kBuilding);
}

TEST(ProgressCount, TurnsStepsIntoWhatTheyAreFor) {
  Progress progress;
  const Progress::Scope scope(&progress);
  ProgressCount count(Phase::kSorting, 1000, 100'000);
  count.add(50'000);
  EXPECT_EQ(progress.seen().done, 500U);
  count.add(5'000'000);
  EXPECT_EQ(progress.seen().done, 1000U) << "more than were thought to be needed";
}

TEST(ProgressCount, LooksWhetherTheWorkIsGivenUp) {
  Progress progress;
  const Progress::Scope scope(&progress);
  ProgressCount count(Phase::kBuilding, 10'000);
  progress.give_up();
  count.add(4095);
  EXPECT_FALSE(count.is_given_up());
  count.add();
  EXPECT_TRUE(count.is_given_up());
}

TEST(ProgressCount, OfNobodyWhoLooksIsNothing) {
  Progress progress;
  ProgressCount count(Phase::kSorting, 1000);
  count.add(50'000);
  EXPECT_EQ(progress.seen().total, 0U);
}

}  // namespace progress_test
}  // namespace pando
