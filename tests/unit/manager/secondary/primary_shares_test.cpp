#include "manager/secondary/primary_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <vector>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace primary_shares_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::name;

Endpoint primary(int number) { return *Endpoint::from_text(fmt::format("192.0.2.1@{}", number)); }

/// Four places, two for each primary.
class Shares : public ::testing::Test {
 protected:
  Shares() { shares_.set_limits({4, 2}); }

  bool may_begin(int number) const { return shares_.may_begin(primary(number), now_); }
  PrimaryShares::SharePtr begin(int number) { return shares_.begin(primary(number), now_); }
  void end(const PrimaryShares::SharePtr& share, const std::string& silence = {}) {
    shares_.end(share, silence, now_);
  }
  void answered(const PrimaryShares::SharePtr& share) {
    share->progress.octets += 100;
    end(share);
  }
  /// The primary has answered before.
  void prove(int number) { answered(begin(number)); }
  void lose(int number) { end(begin(number), "no answer"); }
  /// Time goes on, as the ticks see it.
  void pass(std::chrono::milliseconds time) {
    for (auto passed = 0ms; passed < time; passed += PrimaryShares::kTick) {
      now_ += PrimaryShares::kTick;
      shares_.tick(now_);
    }
  }
  /// The zone that comes next with the port of its primary; "-": none.
  std::string next() {
    const auto waiting = shares_.next(now_);
    if (!waiting) return "-";
    const std::string zone = to_text(waiting->zone);
    return fmt::format("{}@{}", zone.substr(0, zone.find('.')), waiting->primary.port);
  }
  void wait(int number, const std::string& zone, bool first = false) {
    shares_.wait(primary(number), name(zone), first);
  }

  std::vector<std::string> changes_;
  PrimaryShares shares_{[this](const Endpoint& changed, const std::string& reason) {
    changes_.push_back(fmt::format("{}: {}", changed.port, reason.empty() ? "answers" : reason));
  }};
  PrimaryShares::Time now_{std::chrono::hours(1000)};
};

TEST_F(Shares, AreBoundedForEachPrimaryAndForAll) {
  for (const int number : {1, 2, 3}) prove(number);
  const auto first = begin(1);
  begin(1);
  EXPECT_FALSE(may_begin(1)) << "two for each primary";
  begin(2);
  begin(2);
  EXPECT_FALSE(may_begin(3)) << "four for all";
  answered(first);
  EXPECT_TRUE(may_begin(1));
  EXPECT_TRUE(may_begin(3));
  EXPECT_FALSE(may_begin(2));
}

TEST_F(Shares, APrimaryThatHasNotAnsweredYetGetsOneAttemptUntilItDoes) {
  EXPECT_TRUE(may_begin(1));
  const auto first = begin(1);
  EXPECT_FALSE(may_begin(1));
  first->progress.octets = 30;
  pass(500ms);
  EXPECT_TRUE(may_begin(1)) << "the tick has seen the octets";
}

/// Right after a start nobody knows who will answer.
TEST_F(Shares, AFirstQuestionNeedsNoFreePlace) {
  for (int number = 1; number <= 100; ++number) {
    ASSERT_TRUE(may_begin(number)) << number;
    begin(number);
  }
  EXPECT_EQ(shares_.places_taken(), 4U);
}

TEST_F(Shares, AnAttemptThatReceivesNothingGivesItsPlaceBackUntilItDoes) {
  for (const int number : {1, 2, 3}) prove(number);
  std::vector<PrimaryShares::SharePtr> held;
  for (const int number : {1, 1, 2, 2}) held.push_back(begin(number));
  pass(500ms);
  EXPECT_FALSE(may_begin(3));
  pass(500ms);
  EXPECT_EQ(shares_.places_taken(), 0U);
  EXPECT_TRUE(may_begin(3));
  for (const auto& share : held) share->progress.octets += PrimaryShares::kLeastOctets;
  pass(1s);
  EXPECT_EQ(shares_.places_taken(), 4U);
  EXPECT_FALSE(may_begin(3));
}

TEST_F(Shares, ATrickleHoldsNoPlaceAndWorkOfOurOwnDoes) {
  for (const int number : {1, 2}) prove(number);
  const auto trickle = begin(1);
  const auto building = begin(2);
  building->progress.waits = false;
  for (int second = 0; second < 10; ++second) {
    trickle->progress.octets += PrimaryShares::kLeastOctets - 1;
    pass(1s);
  }
  EXPECT_FALSE(trickle->has_place);
  EXPECT_TRUE(building->has_place);
  EXPECT_TRUE(may_begin(1)) << "it does answer";
}

TEST_F(Shares, APrimaryIsAwayFromASilentEndUntilItAnswers) {
  lose(1);
  EXPECT_TRUE(shares_.is_away(primary(1)));
  EXPECT_EQ(shares_.silence(primary(1)), "no answer");
  lose(1);
  EXPECT_THAT(changes_, ElementsAre("1: no answer")) << "told once";
  prove(1);
  EXPECT_FALSE(shares_.is_away(primary(1)));
  EXPECT_THAT(changes_, ElementsAre("1: no answer", "1: answers"));
}

/// One zone of a primary may be one that it drops queries for.
TEST_F(Shares, ASilentEndSaysNothingIfThePrimaryAnsweredMeanwhile) {
  prove(1);
  const auto silent = begin(1);
  now_ += 1ms;
  prove(1);
  end(silent, "no answer");
  EXPECT_FALSE(shares_.is_away(primary(1)));
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(Shares, AnAwayPrimaryIsAskedNowAndThenByFewAttemptsAtOnce) {
  shares_.set_limits({50, 10});
  lose(1);
  EXPECT_FALSE(may_begin(1));
  std::vector<PrimaryShares::SharePtr> probes;
  for (int second = 0; second < 60; ++second) {
    pass(1s);
    if (may_begin(1)) probes.push_back(begin(1));
  }
  EXPECT_EQ(probes.size(), PrimaryShares::kMaxProbes);
  end(probes[0], "no answer");
  pass(PrimaryShares::kProbePause);
  EXPECT_TRUE(may_begin(1)) << "so that its return is noticed";
}

TEST_F(Shares, ManyAwayPrimariesLeaveRoomForThoseThatNobodyHasAskedYet) {
  const int many = 1000;
  for (int number = 1; number <= many; ++number) lose(number);
  pass(PrimaryShares::kProbePause);
  std::size_t begun = 0;
  for (int number = 1; number <= many; ++number)
    if (may_begin(number)) {
      begin(number);
      ++begun;
    }
  EXPECT_LE(begun, PrimaryShares::kMaxFirstProbes + 4);
  EXPECT_GE(begun, PrimaryShares::kMaxFirstProbes);
  EXPECT_TRUE(may_begin(many + 1));
}

TEST_F(Shares, ANotifyOfAnAwayPrimaryBringsOneAttempt) {
  lose(1);
  EXPECT_FALSE(may_begin(1));
  shares_.call(primary(1));
  EXPECT_TRUE(may_begin(1));
  EXPECT_TRUE(shares_.is_away(primary(1))) << "anybody can send NOTIFYs in its name";
  const auto probe = begin(1);
  EXPECT_FALSE(may_begin(1));
  answered(probe);
  EXPECT_TRUE(may_begin(1));
}

TEST_F(Shares, APrimaryThatFallsSilentGetsNoMoreAttemptsThanProbes) {
  shares_.set_limits({50, 10});
  prove(1);
  for (int i = 0; i < 5; ++i) begin(1);
  EXPECT_TRUE(may_begin(1));
  pass(1s);
  EXPECT_FALSE(may_begin(1));
  EXPECT_FALSE(shares_.is_away(primary(1))) << "its zones wait for the attempts that run";
}

TEST_F(Shares, TellWhetherAnAttemptIsWorthWaitingFor) {
  const auto share = begin(1);
  EXPECT_FALSE(shares_.is_silent(*share, now_));
  pass(1s);
  EXPECT_TRUE(shares_.is_silent(*share, now_));
  share->progress.octets = 1;
  EXPECT_FALSE(shares_.is_silent(*share, now_));
}

TEST_F(Shares, PrimariesTakeTurnsAndZonesOfOneComeInTheirOrder) {
  for (const int number : {1, 2, 3}) prove(number);
  std::vector<PrimaryShares::SharePtr> held;
  for (const int number : {1, 1, 2, 2}) held.push_back(begin(number));
  for (const std::string zone : {"a", "b"}) wait(1, zone);
  wait(3, "x");
  wait(1, "first", true);
  EXPECT_EQ(next(), "-");
  answered(held[0]);
  EXPECT_EQ(next(), "first@1");
  held[0] = begin(1);
  answered(held[2]);
  EXPECT_EQ(next(), "x@3");
  begin(3);
  answered(held[0]);
  EXPECT_EQ(next(), "a@1");
  held[0] = begin(1);
  answered(held[1]);
  EXPECT_EQ(next(), "b@1");
  EXPECT_EQ(next(), "-");
}

TEST_F(Shares, ZonesOfAnAwayPrimaryWaitAndOneOfThemAsks) {
  const auto only = begin(1);
  for (int i = 0; i < 1000; ++i) wait(1, "z" + std::to_string(i));
  EXPECT_EQ(next(), "-");
  end(only, "no answer");
  for (int i = 0; i < 1000; ++i) {
    const std::string zone = "z" + std::to_string(i);
    ASSERT_EQ(next(), zone + "@1") << "it may have another primary";
    wait(1, zone);
  }
  EXPECT_EQ(next(), "-");
  pass(PrimaryShares::kProbePause);
  EXPECT_EQ(next(), "z0@1");
  const auto probe = begin(1);
  pass(500ms);
  EXPECT_EQ(next(), "-");
  answered(probe);
  EXPECT_EQ(next(), "z1@1");
}

TEST_F(Shares, EachAwayPrimaryHasItsTurnHoweverManyThereAre) {
  const int many = 1000;
  for (int number = 1; number <= many; ++number) {
    lose(number);
    for (const char* zone : {"a", "b", "c"}) wait(number, zone + std::to_string(number));
  }
  std::set<Endpoint> asked;
  std::deque<PrimaryShares::SharePtr> running;
  for (int second = 0; second < 120; ++second) {
    while (!running.empty() && running.front()->begun + 10s <= now_) {
      end(running.front(), "no answer");
      running.pop_front();
    }
    while (const auto waiting = shares_.next(now_)) {
      asked.insert(waiting->primary);
      running.push_back(shares_.begin(waiting->primary, now_));
      shares_.wait(waiting->primary, waiting->zone);
    }
    pass(1s);
  }
  EXPECT_EQ(asked.size(), static_cast<std::size_t>(many));
}

TEST_F(Shares, NewLimitsAreSeenByZonesThatWait) {
  prove(1);
  begin(1);
  begin(1);
  wait(1, "a");
  EXPECT_EQ(next(), "-");
  shares_.set_limits({4, 3});
  EXPECT_EQ(next(), "a@1");
}

TEST_F(Shares, NothingBeginsWithoutPlaces) {
  shares_.set_limits({0, 2});
  EXPECT_FALSE(may_begin(1));
}

TEST_F(Shares, NeedTicksWhileSomethingRunsOrWaits) {
  EXPECT_FALSE(shares_.needs_ticks());
  const auto share = begin(1);
  EXPECT_TRUE(shares_.needs_ticks());
  wait(1, "a");
  answered(share);
  EXPECT_TRUE(shares_.needs_ticks());
  EXPECT_EQ(next(), "a@1");
  EXPECT_FALSE(shares_.needs_ticks());
}

}  // namespace primary_shares_test
}  // namespace pando::manager
