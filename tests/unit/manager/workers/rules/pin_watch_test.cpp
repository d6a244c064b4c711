#include "manager/workers/rules/pin_watch.h"

#include <gtest/gtest.h>

#include <memory>

#include "ipc/counters.h"

namespace pando::manager {
namespace pin_watch_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PinWatchTest : public ::testing::Test {
 protected:
  bool look(seconds at) {
    return watch_.overdue(*page_, begin_ + at, milliseconds(60'000), current_);
  }
  void progress() { page_->counters[ipc::counter_index(ipc::Counter::kBatches)].fetch_add(1); }
  void lease(std::size_t index, std::uint64_t epoch, seconds since) {
    page_->leases[index].epoch = epoch;
    page_->leases[index].since = static_cast<std::uint64_t>(
        seconds(begin_.time_since_epoch() / seconds(1) * seconds(1) + since).count());
  }

  std::unique_ptr<shm::SlotPage> page_ = std::make_unique<shm::SlotPage>();
  PinWatch watch_;
  std::uint64_t current_ = 1;  // nothing is superseded
  PinWatch::Clock::time_point begin_{seconds(1000)};
};

TEST_F(PinWatchTest, AnIdleWorkerIsNeverStuck) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(look(seconds(i)));
}

TEST_F(PinWatchTest, APinThatOutlivesItsTimeIsStuck) {
  page_->epoch = 7;
  EXPECT_FALSE(look(seconds(0)));
  EXPECT_FALSE(look(seconds(60)));
  EXPECT_TRUE(look(seconds(61)));
}

TEST_F(PinWatchTest, ABusyWorkerOnAnOldVersionIsNotStuck) {
  page_->epoch = 7;  // nothing is updated, so each batch pins the same version
  for (int i = 0; i < 1000; ++i) {
    progress();
    EXPECT_FALSE(look(seconds(i)));
  }
}

TEST_F(PinWatchTest, ALeaseIsAskedBackFirstAndForcedLater) {
  lease(3, 7, seconds(0));
  EXPECT_FALSE(look(seconds(60)));
  EXPECT_EQ(page_->leases[3].revoke.load(), 0U);
  EXPECT_FALSE(look(seconds(61)));
  EXPECT_NE(page_->leases[3].revoke.load(), 0U);
  EXPECT_FALSE(look(seconds(70)));
  EXPECT_TRUE(look(seconds(71)));
}

/// A hijacked worker that wants to hold memory shows another version, or none, at some looks.
TEST_F(PinWatchTest, APinThatIsFlippedBeginsNoNewTime) {
  current_ = 100;
  int ended_at = 0;
  for (int i = 0; i < 200 && ended_at == 0; ++i) {
    page_->epoch = i % 3 == 0 ? 7U : i % 3 == 1 ? 0U : 8U + static_cast<unsigned>(i);
    progress();
    if (look(seconds(i))) ended_at = i;
  }
  EXPECT_GT(ended_at, 60);
  EXPECT_LE(ended_at, 75);
}

TEST_F(PinWatchTest, ALeaseThatIsDatedAnewBeginsNoNewTime) {
  current_ = 100;
  int ended_at = 0;
  for (int i = 0; i < 200 && ended_at == 0; ++i) {
    page_->leases[static_cast<std::size_t>(i) % 64].epoch = 0;
    lease(static_cast<std::size_t>(i + 1) % 64, 7, seconds(i));
    if (look(seconds(i))) ended_at = i;
  }
  EXPECT_GT(ended_at, 60);
  EXPECT_LE(ended_at, 75);
}

TEST_F(PinWatchTest, TransfersOfOneVersionAfterTheOtherAreNeverStuck) {
  for (int i = 0; i < 1000; ++i) {  // two under way, each for 40 s
    current_ = 10 + static_cast<unsigned>(i);
    page_->leases[0].epoch = 10 + static_cast<unsigned>(i / 40 * 40);
    page_->leases[0].since = page_->leases[1].since = 0;
    lease(0, 10 + static_cast<unsigned>(i / 40 * 40), seconds(i / 40 * 40));
    lease(1, 10 + static_cast<unsigned>((i + 20) / 40 * 40 - 20), seconds((i + 20) / 40 * 40 - 20));
    EXPECT_FALSE(look(seconds(i))) << i;
  }
}

TEST_F(PinWatchTest, KnowsTheOldestVersionThatIsHeld) {
  EXPECT_EQ(PinWatch::oldest(*page_), UINT64_MAX);
  page_->epoch = 9;
  page_->leases[0].epoch = 5;
  page_->leases[1].epoch = 12;
  EXPECT_EQ(PinWatch::oldest(*page_), 5U);
  PinWatch::revoke_up_to(*page_, 5);
  EXPECT_NE(page_->leases[0].revoke.load(), 0U);
  EXPECT_EQ(page_->leases[1].revoke.load(), 0U);
}

class OldestHoldTest : public ::testing::Test {
 protected:
  bool look(std::uint64_t epoch, milliseconds at, bool urgent = false) {
    return hold_.overdue(epoch, begin_ + at, urgent);
  }
  OldestHold hold_;
  PinWatch::Clock::time_point begin_{seconds(1000)};
};

TEST_F(OldestHoldTest, HasTenSeconds) {
  EXPECT_FALSE(look(7, milliseconds(0)));
  EXPECT_FALSE(look(7, milliseconds(10'000)));
  EXPECT_TRUE(look(7, milliseconds(10'001)));
}

TEST_F(OldestHoldTest, HasATenthOfOneWhenMemoryRunsAway) {
  EXPECT_FALSE(look(7, milliseconds(0)));
  EXPECT_FALSE(look(7, milliseconds(100), true));
  EXPECT_FALSE(look(7, milliseconds(101)));
  EXPECT_TRUE(look(7, milliseconds(101), true));
}

TEST_F(OldestHoldTest, HasItsTimeAgainWhenAnotherVersionIsTheOldest) {
  EXPECT_FALSE(look(7, milliseconds(0)));
  EXPECT_FALSE(look(8, milliseconds(10'001)));
  EXPECT_FALSE(look(8, milliseconds(20'001)));
  EXPECT_TRUE(look(8, milliseconds(20'002)));
}

TEST_F(OldestHoldTest, HasNoTimeAgainWhenItComesBackToAnOldVersion) {
  EXPECT_FALSE(look(7, milliseconds(0)));
  EXPECT_FALSE(look(8, milliseconds(5'000)));
  EXPECT_TRUE(look(7, milliseconds(10'001)));
}

TEST_F(OldestHoldTest, IsNotKilledAgainWhileItsProcessEnds) {
  EXPECT_FALSE(look(7, milliseconds(0)));
  EXPECT_TRUE(look(7, milliseconds(101), true));
  EXPECT_FALSE(look(7, milliseconds(102), true));
  EXPECT_TRUE(look(7, milliseconds(202), true));
}

}  // namespace pin_watch_test
}  // namespace pando::manager
