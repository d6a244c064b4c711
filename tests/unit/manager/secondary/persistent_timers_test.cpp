#include "manager/secondary/persistent_timers.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace persistent_timers_test {

using testing::name;
using testing::Parts;

constexpr std::uint64_t kNow = 1'700'000'000;
// Of the SOA of kBasicZone.
constexpr std::uint64_t kRefresh = 3600, kRetry = 600, kExpire = 86400;

class TimersInTheStore : public ::testing::Test {
 protected:
  TimersInTheStore() {
    timers_.set_range({std::chrono::seconds(1), std::chrono::weeks(4)});
    EXPECT_NE(&side(), nullptr);
  }
  shm::Store::SideEntry& side() { return *parts_.zone.store().side(0); }
  void unload() {
    ASSERT_TRUE(parts_.edit([](zone::Draft& draft) { return draft.unload_zone(name("@")); }));
  }
  /// The next look is a tenth earlier at most.
  static void expect_about(std::uint64_t moment, std::uint64_t from, std::uint64_t wait) {
    EXPECT_LE(moment, from + wait);
    EXPECT_GT(moment, from + wait - wait / 10);
  }

  Parts parts_;
  const dns::Name zone_ = name("@");
  PersistentTimers timers_{parts_.zone.store(), parts_.committer};
};

TEST_F(TimersInTheStore, AZoneThatHasNoneIsLookedAtAtOnceAndCountsAsConfirmed) {
  EXPECT_EQ(timers_.first_refresh(zone_, kNow), kNow);
  EXPECT_EQ(timers_.stored(zone_).expires_at, kNow + kExpire);
}

TEST_F(TimersInTheStore, AZoneIsFirstLookedAtWhenTheyLastSaid) {
  side().next_refresh = kNow + 77;
  side().expires_at = kNow + 99;
  EXPECT_EQ(timers_.first_refresh(zone_, kNow), kNow + 77);
  EXPECT_EQ(timers_.stored(zone_).expires_at, kNow + 99);
}

TEST_F(TimersInTheStore, WhatAClockThatWasAheadHasSetIsNotBelieved) {
  side().next_refresh = kNow + 100 * kRefresh;
  side().expires_at = kNow + 100 * kExpire;
  EXPECT_EQ(timers_.first_refresh(zone_, kNow), kNow);
  EXPECT_EQ(timers_.stored(zone_).expires_at, kNow + kExpire);
}

TEST_F(TimersInTheStore, AClockThatWasPutBackLeavesTheWaitAsItWas) {
  side().next_refresh = kNow + 60;
  side().expires_at = kNow + kExpire;
  const std::uint64_t earlier = kNow - 2 * kExpire;
  timers_.clock_went_back(zone_, earlier + 60, earlier);
  EXPECT_EQ(timers_.first_refresh(zone_, earlier), earlier + 60) << "also after a restart";
  EXPECT_EQ(timers_.stored(zone_).expires_at, earlier + kExpire);
}

TEST_F(TimersInTheStore, AZoneWithoutDataIsLookedAtAtOnceAndThenEachMinute) {
  unload();
  EXPECT_EQ(timers_.first_refresh(zone_, kNow), kNow);
  expect_about(timers_.next_refresh(zone_, false, kNow), kNow, 60);
  timers_.set_range({std::chrono::seconds(300), std::chrono::weeks(4)});
  expect_about(timers_.next_refresh(zone_, false, kNow), kNow, 300);
}

TEST_F(TimersInTheStore, AnUnknownZoneHasNone) {
  const dns::Name unknown = name("elsewhere.");
  EXPECT_EQ(timers_.first_refresh(unknown, kNow), kNow);
  timers_.confirm(unknown, 10, true, kNow);
  expect_about(timers_.next_refresh(unknown, true, kNow), kNow, 60);
  EXPECT_EQ(timers_.stored(unknown).expires_at, 0U);
}

TEST_F(TimersInTheStore, AConfirmedZoneIsKeptForExpireOrForWhatItsPrimarySays) {
  timers_.confirm(zone_, std::nullopt, false, kNow);
  EXPECT_EQ(timers_.stored(zone_).expires_at, kNow + kExpire);
  timers_.confirm(zone_, 5000, false, kNow);
  EXPECT_EQ(timers_.stored(zone_).expires_at, kNow + kExpire) << "another one said more";
  timers_.confirm(zone_, 5000, true, kNow);
  EXPECT_EQ(timers_.stored(zone_).expires_at, kNow + 5000) << "of the version that it brought";
}

TEST_F(TimersInTheStore, TheNextLookIsByRefreshOrAfterAFailureByRetry) {
  timers_.confirm(zone_, std::nullopt, true, kNow);
  const std::uint64_t good = timers_.next_refresh(zone_, true, kNow);
  expect_about(good, kNow, kRefresh);
  EXPECT_EQ(side().next_refresh.load(), good);
  EXPECT_EQ(timers_.stored(zone_).last_ok, kNow);
  const std::uint64_t bad = timers_.next_refresh(zone_, false, kNow + 9);
  expect_about(bad, kNow + 9, kRetry);
  EXPECT_EQ(side().next_refresh.load(), bad);
  EXPECT_EQ(timers_.stored(zone_).last_ok, kNow);
}

TEST_F(TimersInTheStore, WhatWouldExpireBeforeItsNextLookIsLookedAtSooner) {
  timers_.confirm(zone_, 1000, true, kNow);
  EXPECT_EQ(timers_.next_refresh(zone_, true, kNow), kNow + 500);
}

TEST_F(TimersInTheStore, AZoneExpiresAtItsMomentAndNotBeforeThatIsKnown) {
  EXPECT_FALSE(timers_.expired(parts_.zone.zone(), kNow));
  timers_.confirm(zone_, 1000, true, kNow);
  EXPECT_FALSE(timers_.expired(parts_.zone.zone(), kNow + 999));
  EXPECT_TRUE(timers_.expired(parts_.zone.zone(), kNow + 1000));
}

}  // namespace persistent_timers_test
}  // namespace pando::manager
