#include "manager/secondary/attempt_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/secondary/fake_primary.h"

namespace pando::manager {
namespace attempt_runner_test {

using End = AttemptOutcome::End;
using ::testing::ElementsAre;
using testing::FakePrimary;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;

/// Attempts of "example.", served at serial 10.
class RunningAttempts : public ::testing::Test {
 protected:
  RunningAttempts() { runner_.configure(make_runtime({}).value()); }
  ~RunningAttempts() override {
    runner_.stop();
    changes_.stop();
    network_.stop();
  }

  RefreshAttemptPtr start(const RefreshCycle::Request& request = {},
                          std::optional<dns::Name> key = {}) {
    auto attempt = std::make_shared<RefreshAttempt>();
    attempt->zone = name("@");
    attempt->primary = {primary_.endpoint(), std::move(key)};
    attempt->share = shares_.begin(primary_.endpoint(), std::chrono::steady_clock::now());
    ended_.reset();
    runner_.run(attempt, request, true);
    return attempt;
  }
  RefreshAttemptPtr attempt(const RefreshCycle::Request& request = {},
                            std::optional<dns::Name> key = {}) {
    auto attempt = start(request, std::move(key));
    EXPECT_FALSE(ended_) << "the end is posted";
    EXPECT_TRUE(parts_.run_until([this] { return ended_.has_value(); }));
    return attempt;
  }
  std::uint32_t serial() { return parts_.zone.zone().serial().value; }

  Parts parts_;
  FakePrimary primary_{parts_.io};
  Network network_;
  ChangeRoad changes_{parts_.io,    network_.builders(), parts_.zone.store(),
                      parts_.slots, parts_.committer,    {}};
  RefreshHooks hooks_;
  PrimaryShares shares_;
  bool is_wanted_ = true;
  std::optional<AttemptOutcome> ended_;
  AttemptRunner runner_{
      {parts_.io, network_, parts_.zone.store(), parts_.slots, parts_.committer, changes_, hooks_,
       [](const zone::ZoneView&) { return false; }},
      {.is_wanted = [this](const RefreshAttempt&) { return is_wanted_; },
       .verifying = [](const auto&, const auto&) {},
       .ended = [this](const auto&, const AttemptOutcome& outcome) { ended_ = outcome; }}};
};

TEST_F(RunningAttempts, AnEqualSerialIsUpToDate) {
  primary_.serve(10, {"@ 3600 NS ns1"});
  attempt();
  EXPECT_EQ(ended_->end, End::kUpToDate);
  EXPECT_EQ(ended_->serial.value, 10U);
}

TEST_F(RunningAttempts, ANewerZoneIsCommitted) {
  primary_.serve(11, {"@ 3600 NS ns1"});
  const auto done = attempt();
  EXPECT_EQ(ended_->end, End::kTransferred);
  EXPECT_EQ(ended_->serial.value, 11U);
  EXPECT_TRUE(done->is_whole);
  EXPECT_GT(done->records, 0U);
  EXPECT_EQ(serial(), 11U);
}

TEST_F(RunningAttempts, AWholeZoneMaySucceedAfterAnIxfrThatDoesNotFit) {
  const std::string before = FakePrimary::soa_line(10);
  const std::string after = FakePrimary::soa_line(11);
  primary_.answers = {{"SOA", {after}},
                      {"IXFR", {after, before, "nobody 300 A 192.0.2.10", after, after}}};
  attempt();
  EXPECT_EQ(ended_->end, End::kFailed);
  EXPECT_TRUE(ended_->whole_may_succeed);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(RunningAttempts, ARefusalIsNoSilence) {
  const auto done = attempt();
  EXPECT_EQ(ended_->end, End::kFailed);
  EXPECT_FALSE(ended_->whole_may_succeed) << "the SOA query failed";
  EXPECT_THAT(ended_->error.text, HasSubstr("REFUSED"));
  EXPECT_EQ(done->silence, "");
}

TEST_F(RunningAttempts, AMissingKeyEndsTheAttemptBeforeAnyQuery) {
  attempt({}, name("key"));
  EXPECT_EQ(ended_->end, End::kFailed);
  EXPECT_EQ(ended_->error.code, Errc::kNotFound);
  EXPECT_THAT(primary_.asked, IsEmpty());
}

TEST_F(RunningAttempts, UnwantedDataAreDropped) {
  primary_.serve(11, {"@ 3600 NS ns1"});
  primary_.before_answer = [this] { is_wanted_ = false; };
  attempt();
  EXPECT_EQ(ended_->end, End::kDropped);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(RunningAttempts, AnOrderTakesAnOlderWholeZone) {
  primary_.serve(5, {"@ 3600 NS ns1"});
  RefreshCycle::Request request;
  request.whole_zone = request.any_serial = true;
  attempt(request);
  EXPECT_EQ(ended_->end, End::kTransferred);
  EXPECT_THAT(primary_.asked, ElementsAre("AXFR"));
  EXPECT_EQ(serial(), 5U);
}

TEST_F(RunningAttempts, ReportsNothingAfterItsEnd) {
  primary_.serve(11, {"@ 3600 NS ns1"});
  primary_.before_answer = [this] { runner_.stop(); };
  start();
  parts_.io.restart();
  parts_.io.run_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(ended_);
  EXPECT_EQ(serial(), 10U);
}

}  // namespace attempt_runner_test
}  // namespace pando::manager
