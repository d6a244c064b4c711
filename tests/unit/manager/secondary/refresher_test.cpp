#include "manager/secondary/refresher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/secondary/fake_primary.h"

namespace pando::manager::refresher_test {

std::time_t put_back = 0;  // seconds by which the host's clock was put back

}  // namespace pando::manager::refresher_test

/// Takes the place of the C library's function in this program: a test must not put the clock of
/// the machine back.
extern "C" std::time_t time(std::time_t* out) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::time_t seconds = now.tv_sec - pando::manager::refresher_test::put_back;
  if (out != nullptr) *out = seconds;
  return seconds;
}

namespace pando::manager {
namespace refresher_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakePrimary;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using ::testing::Not;
using testing::Parts;
using ::testing::StartsWith;

constexpr std::time_t kDay = 86'400;

/// "example." at serial 10, a secondary of servers that each test tells what to answer.
class Refreshing : public ::testing::Test {
 protected:
  Refreshing() {
    refresher_.configure(make_runtime({}).value());
    parts_.committer.on_published([this](const PublishedVersion& version) {
      for (const PublishedZone& changed : version.changed)
        if (changed.is_whole) put_.push_back(changed.had_data);
    });
  }
  ~Refreshing() override {
    put_back = 0;
    refresher_.stop();
    changes_.stop();
    network_.stop();
  }

  Refresher::Hooks hooks() {
    Refresher::Hooks hooks;
    hooks.may_change = [this](const dns::Name&) { return may_change_; };
    hooks.count = [this](const dns::Name&, ipc::ZoneCounter counter) { ++counted_[counter]; };
    return hooks;
  }
  static std::uint64_t now() { return static_cast<std::uint64_t>(std::time(nullptr)); }
  SecondaryStatus status() const { return refresher_.status(name("@")).value(); }
  /// Until the refresh cycle has ended, which sets the time of the next one.
  void await_end() {
    ASSERT_TRUE(parts_.run_until([this] { return status().next_refresh > now(); }));
  }
  void refresh(Refresher::Take take = Refresher::Take::kNewer) {
    ASSERT_TRUE(refresher_.refresh_now(name("@"), take));
    await_end();
  }
  void put(Primaries primaries) { refresher_.put(name("@"), std::move(primaries)); }
  std::uint32_t serial() { return parts_.zone.zone().serial().value; }
  std::vector<std::string> at(std::string_view owner) { return parts_.zone.at(owner); }
  /// The first primary has serial 11, and the changeset that leads to it.
  void serve_changeset() {
    const std::string before = FakePrimary::soa_line(10);
    const std::string after = FakePrimary::soa_line(11);
    first_.answers = {
        {"SOA", {after}},
        {"IXFR", {after, before, "www 300 A 192.0.2.10", after, "new 60 A 192.0.2.77", after}}};
  }

  Parts parts_;
  FakePrimary first_{parts_.io};
  FakePrimary second_{parts_.io};
  Network network_;
  ChangeRoad changes_{parts_.io,    network_.builders(), parts_.zone.store(),
                           parts_.slots, parts_.committer,    {}};
  Status may_change_;
  std::vector<bool> put_;  // of each zone that was put: whether it had data
  std::map<ipc::ZoneCounter, int> counted_;
  Refresher refresher_{parts_.io, network_, parts_.zone.store(), parts_.slots, parts_.committer,
                       changes_,  hooks()};
};

TEST_F(Refreshing, AppliesTheChangesetsOfAnIxfr) {
  serve_changeset();
  put({{first_.endpoint(), {}}});
  refresh();
  EXPECT_THAT(first_.asked, ElementsAre("SOA", "IXFR"));
  EXPECT_EQ(serial(), 11U);
  EXPECT_THAT(at("www"), Not(Contains("300 A 192.0.2.10")));
  EXPECT_THAT(at("new"), ElementsAre("60 A 192.0.2.77"));
  EXPECT_EQ(refresher_.counters().transfers, 1U);
  EXPECT_EQ(refresher_.counters().by_ixfr, 1U);
  EXPECT_EQ(counted_[ipc::ZoneCounter::kTransfersInIxfr], 1);
  EXPECT_THAT(put_, IsEmpty());
  EXPECT_EQ(status().problem, "");
  EXPECT_GE(status().last_ok + 10, now());
  EXPECT_GT(status().expires_at, now() + 86000) << "the SOA record says a day";
}

TEST_F(Refreshing, AVersionThatIsServedAlreadyIsConfirmed) {
  first_.serve(10, {"@ 3600 NS ns1"});
  put({{first_.endpoint(), {}}, {second_.endpoint(), {}}});
  refresh();
  EXPECT_THAT(first_.asked, ElementsAre("SOA"));
  EXPECT_THAT(second_.asked, ElementsAre("SOA")) << "it may have a newer one";
  EXPECT_EQ(refresher_.counters().transfers, 0U);
  EXPECT_EQ(refresher_.counters().refreshes, 1U);
  EXPECT_EQ(status().problem, "") << "one confirmation is enough";
  EXPECT_GT(status().next_refresh, now() + 600) << "by SOA refresh, not by SOA retry";
}

TEST_F(Refreshing, TheNextPrimaryIsAskedAfterAFailure) {
  second_.serve(12, {"@ 3600 NS ns1", "other 60 A 192.0.2.12"});
  put({{first_.endpoint(), {}}, {second_.endpoint(), {}}});
  refresh();
  EXPECT_THAT(first_.asked, ElementsAre("SOA"));
  EXPECT_EQ(serial(), 12U);
  EXPECT_EQ(refresher_.counters().failures, 1U);
  EXPECT_EQ(counted_[ipc::ZoneCounter::kRefreshesFailed], 1);
  EXPECT_EQ(status().problem, "");
}

TEST_F(Refreshing, AFailureOfAllPrimariesIsTheZonesProblem) {
  put({{first_.endpoint(), {}}, {second_.endpoint(), {}}});
  refresh();
  EXPECT_EQ(refresher_.counters().failures, 2U);
  EXPECT_THAT(refresher_.problem(name("@")), StartsWith(to_text(second_.endpoint())));
  EXPECT_THAT(status().problem, HasSubstr("REFUSED"));
  EXPECT_LE(status().next_refresh, now() + 600) << "SOA retry";
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Refreshing, AnIxfrThatDoesNotFitIsFollowedByAnAxfr) {
  first_.serve(11, {"@ 3600 NS ns1", "new 60 A 192.0.2.77"});
  const std::string before = FakePrimary::soa_line(10);
  const std::string after = FakePrimary::soa_line(11);
  first_.answers["IXFR"] = {after, before, "nobody 300 A 192.0.2.10", after, after};
  put({{first_.endpoint(), {}}});
  refresh();
  EXPECT_THAT(first_.asked, ElementsAre("SOA", "IXFR", "SOA", "AXFR"));
  EXPECT_EQ(refresher_.counters().fallbacks, 1U);
  EXPECT_EQ(counted_[ipc::ZoneCounter::kTransfersInAxfr], 1);
  EXPECT_THAT(put_, ElementsAre(true));
  EXPECT_EQ(serial(), 11U);
  EXPECT_THAT(at("new"), ElementsAre("60 A 192.0.2.77"));
  EXPECT_EQ(status().problem, "");
}

TEST_F(Refreshing, AnOlderZoneIsTakenOnOrderAlone) {
  first_.serve(5, {"@ 3600 NS ns1", "old 60 A 192.0.2.5"});
  put({{first_.endpoint(), {}}});
  refresh();
  EXPECT_EQ(serial(), 10U);
  EXPECT_THAT(status().problem,
              HasSubstr("has serial 5, behind ours (10): `zone retransfer` takes it"));
  refresh(Refresher::Take::kAny);
  EXPECT_EQ(serial(), 5U);
  EXPECT_THAT(at("old"), ElementsAre("60 A 192.0.2.5"));
  EXPECT_EQ(status().problem, "");
}

TEST_F(Refreshing, ANotifyOfANewerSerialAsksForTheIxfrAtOnce) {
  serve_changeset();
  put({{first_.endpoint(), {}}});
  EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), dns::Serial{11}}));
  await_end();
  EXPECT_THAT(first_.asked, ElementsAre("IXFR"));
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Refreshing, ANotifyOfASerialThatIsServedChangesNothing) {
  put({{first_.endpoint(), {}}});
  const std::uint64_t due = status().next_refresh;
  EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), dns::Serial{10}}));
  const Endpoint stranger = *Endpoint::from_text("192.0.2.9@53");
  EXPECT_TRUE(refresher_.notified({name("@"), stranger, dns::Serial{9}}));
  EXPECT_EQ(status().next_refresh, due);
  EXPECT_FALSE(refresher_.notified({name("other"), first_.endpoint(), dns::Serial{11}}));
  EXPECT_EQ(refresher_.counters().notifies, 3U);
}

TEST_F(Refreshing, NotifiesCountThoughTheClockWasPutBack) {
  put({{first_.endpoint(), name("key")}});
  const auto notify = [&] {
    first_.asked.clear();
    EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), dns::Serial{11}}));
    const std::uint64_t attempts = refresher_.counters().failures;
    EXPECT_TRUE(parts_.run_until(
        [&] { return refresher_.counters().failures > attempts; }));  // no such key
    await_end();
  };
  notify();
  put_back = kDay;
  refresher_.resume();  // the timer does this within a minute
  await_end();
  notify();
  EXPECT_LE(status().next_refresh, now() + 600) << "by SOA retry";
}

TEST_F(Refreshing, AClockThatIsPutBackPostponesNoRetry) {
  put({{first_.endpoint(), {}}});  // which does not answer
  refresh();
  EXPECT_LE(status().next_refresh, now() + 600) << "by SOA retry";
  put_back = kDay;
  refresher_.resume();
  EXPECT_GT(status().next_refresh, now());
  EXPECT_LE(status().next_refresh, now() + 600);
}

/// A primary that was set back sends NOTIFYs that bring no transfer. Without this the operator
/// would hear of that at the next refresh, hours later.
TEST_F(Refreshing, APrimaryThatWasSetBackIsTheZonesProblemUntilTheSerialsAgree) {
  first_.serve(4, {"@ 3600 NS ns1"});
  put({{first_.endpoint(), {}}});
  refresh();
  const std::string told = status().problem;
  EXPECT_EQ(told,
            fmt::format("primary {} has serial 4, behind ours (10): `zone retransfer` takes it",
                        to_text(first_.endpoint())));
  EXPECT_EQ(serial(), 10U);
  // A serial that is known already leads to no question.
  const std::size_t asked = first_.asked.size();
  const std::uint64_t due = status().next_refresh;
  EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), dns::Serial{4}}));
  EXPECT_EQ(status().next_refresh, due);
  EXPECT_EQ(first_.asked.size(), asked);

  first_.serve(10, {"@ 3600 NS ns1"});
  EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), dns::Serial{10}}));
  EXPECT_TRUE(parts_.run_until([this] { return status().problem.empty(); }));
  EXPECT_EQ(serial(), 10U);

  first_.serve(4, {"@ 3600 NS ns1"});
  EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), dns::Serial{4}}));
  EXPECT_TRUE(parts_.run_until([&] { return status().problem == told; })) << "by the NOTIFY alone";
}

/// Anybody can send NOTIFYs in a primary's name.
TEST_F(Refreshing, AFloodOfNotifiesLeadsToFewQuestionsAndNoChangeIsMissed) {
  first_.serve(10, {"@ 3600 NS ns1"});
  put({{first_.endpoint(), {}}});
  refresh();
  const std::size_t asked = first_.asked.size();
  const auto began = std::chrono::steady_clock::now();
  for (int flood = 0; flood < 300; ++flood) {
    EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), {}}));
    const std::size_t before = refresher_.counters().refreshes;
    if (status().next_refresh > now()) continue;
    ASSERT_TRUE(parts_.run_until([&] { return refresher_.counters().refreshes > before; }));
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
  EXPECT_LE(first_.asked.size() - asked, 5U + 5U * static_cast<std::size_t>(seconds.count() + 1));
  first_.serve(11, {"@ 3600 NS ns1"});
  EXPECT_TRUE(refresher_.notified({name("@"), first_.endpoint(), {}}));
  EXPECT_LE(status().next_refresh, now() + 2) << "at the end of the pace";
  EXPECT_TRUE(parts_.run_until([this] { return serial() == 11; }));
}

TEST_F(Refreshing, NotifiesInOnePrimarysNameDelayNoOtherPrimarys) {
  put({{second_.endpoint(), {}}});
  const auto of_first = [](int number) { return name("z" + std::to_string(number)); };
  const int count = NotifyPace::kBurst + 2 * NotifyPace::kPerSecond;
  for (int i = 0; i < count; ++i) refresher_.put(of_first(i), {{first_.endpoint(), {}}});
  refresh();
  ASSERT_TRUE(parts_.run_until([&] {
    return refresher_.counters().failures >= static_cast<std::uint64_t>(count);
  })) << "all are REFUSED, and due a minute later";
  for (int i = 0; i < count; ++i)
    EXPECT_TRUE(refresher_.notified({of_first(i), first_.endpoint(), {}}));
  EXPECT_GT(refresher_.status(of_first(count - 1))->next_refresh, now());
  EXPECT_TRUE(refresher_.notified({name("@"), second_.endpoint(), {}}));
  EXPECT_LE(status().next_refresh, now());
}

TEST_F(Refreshing, AZoneThatIsNotToChangeIsNotAskedFor) {
  first_.serve(11, {"@ 3600 NS ns1"});
  may_change_ = fail(Errc::kDenied, "it is frozen");
  put({{first_.endpoint(), {}}});
  refresher_.refresh_now(name("@"));
  parts_.io.restart();
  parts_.io.poll();
  EXPECT_THAT(first_.asked, IsEmpty());
  may_change_ = {};
  refresh();
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Refreshing, AZoneThatIsFrozenDuringItsTransferStaysAsItIs) {
  first_.serve(11, {"@ 3600 NS ns1"});
  first_.before_answer = [this] { may_change_ = fail(Errc::kDenied, "it is frozen"); };
  put({{first_.endpoint(), {}}});
  refresh();
  EXPECT_EQ(serial(), 10U);
  EXPECT_THAT(status().problem, HasSubstr("it is frozen"));
}

TEST_F(Refreshing, WhatAPrimaryOfTheConfigurationBeforeSendsIsDropped) {
  first_.serve(11, {"@ 3600 NS ns1"});
  second_.serve(10, {"@ 3600 NS ns1"});
  first_.before_answer = [this] { put({{second_.endpoint(), {}}}); };
  put({{first_.endpoint(), {}}});
  refresh();
  EXPECT_EQ(serial(), 10U);
  EXPECT_EQ(refresher_.counters().transfers, 0U);
  EXPECT_THAT(second_.asked, ElementsAre("SOA")) << "new primaries are asked at once";
  EXPECT_THAT(status().primaries, ElementsAre(second_.endpoint()));
}

TEST_F(Refreshing, APrimaryWhoseKeyIsMissingIsNotAsked) {
  first_.serve(11, {"@ 3600 NS ns1"});
  put({{first_.endpoint(), name("key")}});
  refresh();
  EXPECT_THAT(first_.asked, IsEmpty());
  EXPECT_THAT(status().problem, HasSubstr("no such key"));
}

TEST_F(Refreshing, AZoneThatIsForgottenIsNotKnownAnyMore) {
  put({{first_.endpoint(), {}}});
  refresher_.forget_unless(name("@"), [](const dns::Name&, const Primaries&) { return true; });
  EXPECT_TRUE(refresher_.status(name("@")));
  refresher_.forget_unless(name("@"), [](const dns::Name&, const Primaries&) { return false; });
  EXPECT_FALSE(refresher_.status(name("@")));
  EXPECT_FALSE(refresher_.refresh_now(name("@")));
}

/// They are not refreshed by the timers of each, so that 100,000 zones of such a primary cost
/// nothing.
TEST_F(Refreshing, ZonesOfAPrimaryThatDoesNotAnswerWaitForIt) {
  constexpr int kZones = 200;
  const auto zone = [](int number) { return name("z" + std::to_string(number)); };
  const Endpoint closed = *Endpoint::from_text("127.0.0.1@1");
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kZones; ++i) refresher_.put(zone(i), {{closed, {}}});
  refresher_.resume();
  ASSERT_TRUE(parts_.run_until([&] {
    for (int i = 0; i < kZones; ++i)
      if (refresher_.problem(zone(i)).empty()) return false;
    return true;
  }));
  EXPECT_THAT(refresher_.problem(zone(kZones - 1)), StartsWith("127.0.0.1@1: connect: "));
  EXPECT_GT(refresher_.status(zone(kZones - 1))->next_refresh, now());
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
  EXPECT_LE(refresher_.counters().failures, 2U + static_cast<std::uint64_t>(seconds.count()));
}

TEST_F(Refreshing, AZoneGoesOnToItsNextPrimaryWhileTheFirstDoesNotAnswer) {
  const Endpoint closed = *Endpoint::from_text("127.0.0.1@1");
  refresher_.put(name("other"), {{closed, {}}});
  refresher_.resume();
  ASSERT_TRUE(parts_.run_until([this] { return refresher_.counters().failures > 0; }));
  const std::uint64_t failures = refresher_.counters().failures;
  second_.serve(12, {"@ 3600 NS ns1"});
  put({{closed, {}}, {second_.endpoint(), {}}});
  refresh();
  EXPECT_EQ(serial(), 12U);
  EXPECT_LE(refresher_.counters().failures, failures + 1) << "the primary is asked now and then";
}

TEST_F(Refreshing, StartsNothingAfterItsEnd) {
  first_.serve(11, {"@ 3600 NS ns1"});
  put({{first_.endpoint(), {}}});
  refresher_.stop();
  refresher_.refresh_now(name("@"));
  parts_.io.restart();
  parts_.io.poll();
  EXPECT_THAT(first_.asked, IsEmpty());
}

}  // namespace refresher_test
}  // namespace pando::manager
