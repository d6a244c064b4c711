#include "manager/secondary/refresh_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace refresh_places_test {

using ::testing::ElementsAre;
using testing::name;

class AttemptPlaces : public ::testing::Test {
 protected:
  AttemptPlaces() { places_.set_limits({.places = 2, .per_primary = 2}); }
  RefreshAttemptPtr begin(const Endpoint& primary) {
    auto attempt = std::make_shared<RefreshAttempt>();
    attempt->primary = {primary, {}};
    places_.begin(*attempt, now_);
    return attempt;
  }
  /// An attempt at `primary` that hears nothing.
  void fail(const Endpoint& primary) {
    const auto attempt = begin(primary);
    attempt->silence = "timeout";
    places_.end(attempt, now_);
  }

  const Endpoint first_ = *Endpoint::from_text("192.0.2.1@53");
  const Endpoint second_ = *Endpoint::from_text("192.0.2.2@53");
  RefreshPlaces::Time now_{std::chrono::hours(1)};
  RefreshPlaces places_{[](const Endpoint&, const std::string&) {}};
};

TEST_F(AttemptPlaces, AnAttemptThatIsVerifiedFreesItsPrimary) {
  const auto a = begin(first_);
  const auto b = begin(first_);
  EXPECT_EQ(places_.primaries().places_taken(), 2U);
  places_.begin_program(a, now_);
  EXPECT_EQ(places_.primaries().places_taken(), 1U);
  EXPECT_TRUE(places_.has_program_place());
  places_.begin_program(b, now_);
  EXPECT_EQ(places_.primaries().places_taken(), 0U);
  EXPECT_FALSE(places_.has_program_place()) << "as many programs as transfers";
  EXPECT_EQ(places_.with_program().size(), 2U);
  places_.end(a, now_);
  EXPECT_TRUE(places_.has_program_place());
  EXPECT_THAT(places_.with_program(), ElementsAre(b));
}

TEST_F(AttemptPlaces, ProgramsTakeNoMoreThanHalfOfTheirThreads) {
  places_.set_limits({.places = 1000, .per_primary = 1000});
  std::size_t count = 0;
  for (; places_.has_program_place(); ++count) {
    ASSERT_LT(count, 1000U);
    places_.begin_program(begin(first_), now_);
  }
  EXPECT_GT(count, 0U);
  EXPECT_LT(count, 100U);
}

TEST_F(AttemptPlaces, AZoneThatWaitsForAProgramIsTakenOnceOneHasAPlace) {
  const auto a = begin(first_);
  const auto b = begin(first_);
  places_.begin_program(a, now_);
  places_.begin_program(b, now_);
  RefreshPlaces::Queued queued;
  places_.wait_for_program(name("zone"), queued);
  places_.wait_for_program(name("zone"), queued);
  EXPECT_TRUE(queued.is_waiting);
  const auto waits = [&](const dns::Name&) { return queued.is_waiting; };
  EXPECT_EQ(places_.next_for_program(waits), std::nullopt);
  places_.end(a, now_);
  EXPECT_EQ(places_.next_for_program(waits), name("zone"));
  EXPECT_EQ(places_.next_for_program(waits), std::nullopt) << "it was queued once";
}

/// Anybody can send NOTIFYs in the name of a primary.
TEST_F(AttemptPlaces, AZoneHasTwoEntriesAtMostHoweverUrgent) {
  fail(first_);
  RefreshPlaces::Queued queued;
  RefreshPlaces::Queued other;
  places_.wait(name("other"), other, first_, false);
  places_.wait(name("zone"), queued, first_, false);
  for (int i = 0; i < 5; ++i) places_.wait(name("zone"), queued, first_, true);
  EXPECT_EQ(queued.entries[first_], 2U);
  std::vector<dns::Name> taken;
  now_ += PrimaryShares::kProbePause;
  while (const auto next = places_.primaries().next(now_)) {
    taken.push_back(next->zone);
    RefreshPlaces::taken(next->zone == name("zone") ? queued : other, next->primary);
  }
  EXPECT_THAT(taken, ElementsAre(name("zone"), name("other"), name("zone")));
  EXPECT_TRUE(queued.entries.empty());
  EXPECT_TRUE(other.entries.empty());
  EXPECT_FALSE(queued.is_first);
}

TEST_F(AttemptPlaces, AllPrimariesAreAwayOnceEachWasSilent) {
  const Primaries both{{first_, {}}, {second_, {}}};
  fail(first_);
  EXPECT_FALSE(places_.all_away(both));
  EXPECT_TRUE(places_.all_away({{first_, {}}}));
  fail(second_);
  EXPECT_TRUE(places_.all_away(both));
}

}  // namespace refresh_places_test
}  // namespace pando::manager
