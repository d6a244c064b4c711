#include "manager/workers/rules/reader_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "tests/unit/manager/workers/worker_parts.h"

namespace pando::manager {
namespace reader_watch_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Numbers = std::vector<std::uint32_t>;
using Verdict = ReaderWatch::Verdict;

/// Slots 0 and 1, and a clock that only the test moves.
class Readers : public ::testing::Test {
 protected:
  shm::SlotPage& page(std::uint32_t slot) { return *directory_.slots().add(slot).value(); }
  Verdict check(std::uint32_t slot, std::uint64_t current = 9) {
    return watch_.check(slot, now_, kPinTime, current);
  }
  ReaderWatch::Holders release(std::uint64_t before, bool urgent = false) {
    return watch_.release_oldest(std::array{0U, 1U}, before, now_, urgent);
  }

  static constexpr milliseconds kPinTime{1000};
  testing::PoolDirectory directory_;
  ReaderWatch watch_{directory_.slots()};
  ReaderWatch::Clock::time_point now_{seconds(100)};
};

TEST_F(Readers, AWorkerThatHoldsAVersionForTooLongIsStuck) {
  page(0).epoch = 5;
  page(1);
  EXPECT_EQ(check(0), Verdict::kHealthy);
  now_ += kPinTime + milliseconds(10);
  EXPECT_EQ(check(0), Verdict::kStuck);
  EXPECT_EQ(check(1), Verdict::kHealthy);
}

TEST_F(Readers, TheNextProcessOfASlotBeginsAnew) {
  page(0).epoch = 5;
  EXPECT_EQ(check(0), Verdict::kHealthy);
  now_ += kPinTime + milliseconds(10);
  watch_.forget(0);
  EXPECT_EQ(check(0), Verdict::kHealthy);
}

TEST_F(Readers, APageThatItsWorkerHasCutOffIsDamaged) {
  page(0);
  EXPECT_EQ(check(0), Verdict::kHealthy);
  const std::string slots = directory_.path() + "/slots";
  std::size_t cut = 0;
  for (const auto& file : std::filesystem::directory_iterator(slots))
    cut += ::truncate(file.path().c_str(), 0) == 0 ? 1 : 0;
  ASSERT_GT(cut, 0U);
  EXPECT_EQ(check(0), Verdict::kDamaged);
}

TEST_F(Readers, HoldersOfTheOldestVersionAreNamedAfterTheirGrace) {
  page(0).epoch = 5;
  page(1).epoch = 7;
  EXPECT_EQ(release(8).overdue, Numbers{});
  now_ += OldestHold::kGrace + milliseconds(1);
  const auto held = release(8);
  EXPECT_EQ(held.version, 5U);
  EXPECT_EQ(held.overdue, Numbers{0});
}

TEST_F(Readers, TheGraceIsShortWhenMemoryRunsOut) {
  page(0).epoch = 5;
  EXPECT_EQ(release(8, true).overdue, Numbers{});
  now_ += OldestHold::kUrgentGrace + milliseconds(1);
  EXPECT_EQ(release(8, true).overdue, Numbers{0});
}

TEST_F(Readers, NobodyIsAskedForVersionsThatAreWanted) {
  page(0).epoch = 5;
  EXPECT_EQ(release(5).overdue, Numbers{});
  now_ += OldestHold::kGrace * 2;
  EXPECT_EQ(release(5).overdue, Numbers{});
  EXPECT_EQ(release(6).overdue, Numbers{}) << "the grace begins with the first request";
}

}  // namespace reader_watch_test
}  // namespace pando::manager
