#include "manager/signing/signing_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::manager {
namespace signing_clock_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kStart = 1'780'000'000, kDay = 86400;

class SigningClockTest : public ::testing::Test {
 protected:
  SigningClock make() {
    return SigningClock({[this] { return host_; }, [this] { return steady_; },
                         [this] { return is_synchronised_; }});
  }
  void pass_time(std::uint64_t seconds) {
    host_ += seconds;
    steady_ += seconds;
  }
  std::uint64_t host_ = kStart, steady_ = 50;
  bool is_synchronised_ = false;
};

TEST_F(SigningClockTest, FollowsSmallStepsOfTheHostsClock) {
  SigningClock clock = make();
  pass_time(10);
  EXPECT_EQ(clock.now(), kStart + 10);
  host_ += SigningClock::kMaxStep;
  clock.check();
  EXPECT_EQ(clock.now(), host_);
  EXPECT_THAT(clock.problem(), IsEmpty());
}

TEST_F(SigningClockTest, GoesOnByItselfWhenTheHostsClockJumps) {
  SigningClock clock = make();
  for (const std::uint64_t wrong : {kStart + 9000 * kDay, std::uint64_t{1000}}) {
    host_ = wrong;
    steady_ += 5;
    clock.check();
    clock.check();
    EXPECT_THAT(clock.problem(), HasSubstr("clock-ok"));
  }
  EXPECT_EQ(clock.now(), kStart + 10);
  host_ = kStart + 10;
  clock.check();
  EXPECT_THAT(clock.problem(), IsEmpty()) << "it was put right";
}

TEST_F(SigningClockTest, FollowsAJumpThatATimeServiceOrTheOperatorConfirms) {
  for (const bool by_operator : {false, true}) {
    SigningClock clock = make();
    host_ += kDay;
    clock.check();
    EXPECT_NE(clock.now(), host_);
    is_synchronised_ = !by_operator;
    EXPECT_TRUE(by_operator ? clock.confirm() : clock.check()) << "waits begin anew";
    EXPECT_FALSE(clock.check());
    is_synchronised_ = false;
    EXPECT_EQ(clock.now(), host_);
    EXPECT_THAT(clock.problem(), IsEmpty());
  }
}

TEST_F(SigningClockTest, DoubtsAStartThatDoesNotFitTheZonesSignatures) {
  SigningClock clock = make();
  EXPECT_THAT(clock.doubt(0, 0), IsEmpty()) << "nothing was signed yet";
  EXPECT_THAT(clock.doubt(kStart - kDay, kStart + kDay), IsEmpty());
  EXPECT_THAT(clock.doubt(kStart + 300, kStart + kDay), IsEmpty());
  EXPECT_THAT(clock.doubt(kStart + kDay, kStart + 9 * kDay), HasSubstr("before the zone's newest signature"));
  EXPECT_THAT(clock.doubt(kStart - 15 * kDay, kStart - kDay), HasSubstr("no signature of the zone was"));
  clock.confirm();
  EXPECT_THAT(clock.doubt(kStart + kDay, kStart + 9 * kDay), IsEmpty());
}

TEST_F(SigningClockTest, BelievesAClockThatIsOrBecomesSynchronised) {
  SigningClock clock = make();
  EXPECT_THAT(clock.doubt(kStart + kDay, kStart + 9 * kDay), Not(IsEmpty()));
  is_synchronised_ = true;
  host_ += 2 * kDay;
  clock.check();
  EXPECT_THAT(clock.doubt(kStart + kDay, kStart + 9 * kDay), IsEmpty());
  EXPECT_THAT(make().doubt(host_ - 30 * kDay, host_ - 29 * kDay), IsEmpty());
}

/// A zone whose keys are away for longer than its signatures last is no reason to doubt the clock.
TEST_F(SigningClockTest, SignaturesThatEndWhileItRunsAreNoDoubt) {
  SigningClock clock = make();
  pass_time(20 * kDay);
  clock.check();
  EXPECT_THAT(clock.doubt(kStart, kStart + 14 * kDay), IsEmpty());
}

}  // namespace signing_clock_test
}  // namespace pando::manager
