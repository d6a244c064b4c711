#include "manager/secondary/transfer_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/secondary/fake_primary.h"

namespace pando::manager {
namespace transfer_in_test {

using namespace std::chrono_literals;
using testing::FakePrimary;
using ::testing::HasSubstr;
using testing::name;
using testing::Parts;

/// Transfers of "example.", of which we have no data.
class TransferIn : public ::testing::Test {
 protected:
  using Outcome = Result<TransferResult, TransferFailure>;

  TransferJob job(const Endpoint& primary) const {
    TransferJob job;
    job.zone = name("@");
    job.primary = primary;
    job.limits.octets = 1 << 20;
    job.progress = progress_;
    return job;
  }
  Outcome run(TransferJob job) {
    std::optional<Outcome> outcome;
    asio::co_spawn(parts_.io, transfer_in(std::move(job), connections_, parts_.zone.store(), pool_),
                   [&](const std::exception_ptr& thrown, Outcome result) {
                     EXPECT_EQ(thrown, nullptr);
                     outcome = std::move(result);
                   });
    EXPECT_TRUE(parts_.run_until([&] { return outcome.has_value(); }));
    return std::move(*outcome);
  }

  std::shared_ptr<TransferProgress> progress_ = std::make_shared<TransferProgress>();
  Parts parts_;
  FakePrimary primary_{parts_.io};
  ConnectionPool connections_{parts_.io, {}};
  asio::thread_pool pool_{1};
};

TEST_F(TransferIn, BringsAZoneAndTellsItsProgress) {
  primary_.serve(11, {"@ 3600 NS ns1"});
  const Outcome outcome = run(job(primary_.endpoint()));
  ASSERT_TRUE(outcome) << outcome.error().error.text;
  EXPECT_EQ(outcome->serial.value, 11U);
  EXPECT_GT(progress_->octets, 60U);
  EXPECT_FALSE(progress_->waits) << "for the primary";
}

TEST_F(TransferIn, TellsARefusalFromSilence) {
  const Outcome refused = run(job(primary_.endpoint()));
  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.error().silent);
  progress_ = std::make_shared<TransferProgress>();
  const Outcome closed = run(job(*Endpoint::from_text("127.0.0.1@1")));
  ASSERT_FALSE(closed);
  EXPECT_TRUE(closed.error().silent);
  progress_ = std::make_shared<TransferProgress>();
  asio::ip::tcp::acceptor mute(parts_.io, {asio::ip::address_v4::loopback(), 0});
  TransferJob to_mute = job({*IpAddress::from_text("127.0.0.1"), mute.local_endpoint().port()});
  to_mute.timeout = 50ms;
  const Outcome silent = run(std::move(to_mute));
  ASSERT_FALSE(silent);
  EXPECT_TRUE(silent.error().silent);
}

/// Each message comes in time, so that without a least rate only limits.transfer-time ends it.
TEST_F(TransferIn, ATrickleEndsAfterItsFirstSpan) {
  primary_.serve(11, {"@ 3600 NS ns1"});
  primary_.answers["AXFR"].pop_back();  // it never ends
  primary_.trickle = {"www 300 A 192.0.2.1"};
  TransferJob slow = job(primary_.endpoint());
  slow.least_octets = 1 << 20;
  slow.least_octets_in = 200ms;
  const Outcome outcome = run(std::move(slow));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().error.text, HasSubstr("less than 1048576"));
  EXPECT_FALSE(outcome.error().silent);
}

}  // namespace transfer_in_test
}  // namespace pando::manager
