#include "worker/respond/transfer_handler.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace transfer_handler_test {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::Response;
using testing::key;
using testing::kNow;
using testing::number;
using testing::signed_query;

Query axfr(const char* zone) { return {.qname = zone, .qtype = RRType::kAXFR}; }
Query ixfr(const char* zone, std::uint32_t since) {
  return {.qname = zone, .qtype = RRType::kIXFR, .ixfr_serial = since};
}

class TransferHandlerTest : public testing::RequestTest {
 protected:
  Outcome start(const Query& query) { return handler_.start(request(query)); }

  TransferHandler handler_{cache_, expiry_};
};

TEST_F(TransferHandlerTest, AnAllowedAxfrIsPlanned) {
  use_tcp();
  Query query = axfr("example.com.");
  query.edns = true;
  append(query.options, option(dns::kOptionExpire, {}));
  EXPECT_EQ(start(query).action, Action::kTransfer);
  const TransferPlan plan = handler_.take_plan();
  EXPECT_EQ(plan.apex, testing::name("example.com."));
  EXPECT_TRUE(plan.header.qr && plan.header.aa && plan.edns);
  EXPECT_EQ(plan.udp_payload, settings_.udp_payload);
  EXPECT_EQ(plan.expire, 86400U);
  EXPECT_FALSE(plan.since || plan.session);
  EXPECT_TRUE(plan.held_request.empty());
}

TEST_F(TransferHandlerTest, APlanTakesTheSessionAndItsKeysAlong) {
  use_tcp();
  RequestContext& context = request(signed_query(axfr("example.com."), key("transfer.")));
  context.session = dns::TsigSession::for_response(dns::TsigSession::verify_request(
      context.request.message, *context.request.tsig, batch_.keys->shared, kNow));
  EXPECT_EQ(handler_.start(context).action, Action::kTransfer);
  EXPECT_FALSE(context.session);
  const TransferPlan plan = handler_.take_plan();
  EXPECT_TRUE(plan.session);
  EXPECT_EQ(plan.keys, batch_.keys);
}

TEST_F(TransferHandlerTest, APlanHasTheRequestThatTheManagerVerifies) {
  use_tcp();
  RequestContext& context = request(signed_query(axfr("example.com."), key("update.")));
  context.has_managers_key = true;
  EXPECT_EQ(handler_.start(context).action, Action::kTransfer);
  EXPECT_EQ(handler_.take_plan().held_request, message_);
}

TEST_F(TransferHandlerTest, AnIxfrPlanHasTheClientsSerial) {
  use_tcp();
  EXPECT_EQ(start(ixfr("example.com.", 2025)).action, Action::kTransfer);
  EXPECT_EQ(handler_.take_plan().since, dns::Serial{2025});
}

TEST_F(TransferHandlerTest, FormsThatTheRfcsDoNotDefineAreFormatErrors) {
  EXPECT_EQ(rcode_of(start(axfr("example.com."))), number(Rcode::kFormErr)) << "over UDP";
  EXPECT_EQ(rcode_of(start({.qname = "example.com.", .qtype = RRType::kIXFR})),
            number(Rcode::kFormErr))
      << "without a serial";
}

TEST_F(TransferHandlerTest, AClientThatIsUpToDateGetsOneSoa) {
  const Response response = read(start(ixfr("example.com.", 2026)));
  ASSERT_EQ(response.answer.size(), 1U);
  EXPECT_EQ(response.answer[0].type, RRType::kSOA);
  EXPECT_EQ(count(Counter::kTransfersCurrent), 1U);
}

TEST_F(TransferHandlerTest, OverUdpAClientBeyondTheHistoryGetsOneSoa) {
  const Response response = read(start(ixfr("example.com.", 1)));
  ASSERT_EQ(response.answer.size(), 1U);
  EXPECT_EQ(response.answer[0].type, RRType::kSOA);
}

TEST_F(TransferHandlerTest, RefusalsSayWhyAndAreCounted) {
  use_tcp();
  store_->store().side(3)->expires_at.store(kNow);
  struct Case {
    const char* zone;
    Rcode rcode;
    int detail;
  };
  for (const auto& [zone, rcode, detail] :
       {Case{"www.example.com.", Rcode::kNotAuth, 20}, Case{"closed.test.", Rcode::kRefused, 18},
        Case{"secondary.test.", Rcode::kServFail, 24}}) {
    Query query = axfr(zone);
    query.edns = true;
    const Response response = read(start(query));
    EXPECT_EQ(response.rcode, number(rcode)) << zone;
    EXPECT_EQ(detail_of(response), detail) << zone;
  }
  EXPECT_EQ(count(Counter::kTransfersRefused), 3U);
}

}  // namespace transfer_handler_test
}  // namespace pando::worker
