// Queries with a signature, and transfers: who may have them, and who signs what is sent.

#include <gtest/gtest.h>

#include "tests/unit/worker/respond/responder_fixture.h"

namespace pando::worker {
namespace responder_signed_test {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::Response;
using testing::key;
using testing::kNow;
using testing::number;
using testing::ResponderTest;
using testing::signed_query;
using testing::update;

// Signed queries
// -----------------------------------------------------------------------------------

TEST_F(ResponderTest, ASignedQueryGetsASignedAnswer) {
  dns::TsigKeyring ring;
  ASSERT_TRUE(ring.add(key("query.")));
  auto session = dns::TsigSession::for_request(*ring.find(name("query.")));
  Bytes message = Query{}.octets();
  ASSERT_TRUE(session.sign(message, kNow));
  const Response response = ask_octets(message);
  EXPECT_EQ(response.answer.size(), 1U);
  EXPECT_TRUE(session.verify_response(response.octets, kNow));
}

TEST_F(ResponderTest, AnUnknownKeyIsNotauthUnsigned) {
  const Response response = ask_octets(signed_query({}, key("unknown.")));
  EXPECT_EQ(response.rcode, number(Rcode::kNotAuth));
  ASSERT_EQ(response.additional.size(), 1U);
  const auto record = dns::find_tsig(response.octets);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->error, number(Rcode::kBadKey));
  EXPECT_TRUE((*record)->mac.empty());
}

TEST_F(ResponderTest, AClockThatIsOffIsBadtimeSigned) {
  const Response response = ask_octets(signed_query({}, key("query."), kNow - 3600));
  EXPECT_EQ(response.rcode, number(Rcode::kNotAuth));
  const auto record = dns::find_tsig(response.octets);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->error, number(Rcode::kBadTime));
  EXPECT_FALSE((*record)->mac.empty());
}

TEST_F(ResponderTest, AWrongSignatureIsBadsig) {
  Bytes message = signed_query({}, key("query."));
  message[0] ^= 1;  // the ID is covered through the original ID, a flag is too
  message[2] ^= 1;
  const Response response = ask_octets(message);
  EXPECT_EQ(response.rcode, number(Rcode::kNotAuth));
  EXPECT_EQ(dns::find_tsig(response.octets).value()->error, number(Rcode::kBadSig));
}

TEST_F(ResponderTest, AQuerySignedWithAHeldKeyIsForwardedWithItsUnsignedResponse) {
  const Outcome outcome = handle(signed_query({}, key("update.")));
  EXPECT_EQ(outcome.action, Action::kForward);
  EXPECT_EQ(outcome.forward, ipc::ForwardKind::kSignedQuery);
  const Response response = pando::testing::read_response({space_.data(), outcome.size});
  EXPECT_EQ(response.answer.size(), 1U);
  EXPECT_TRUE(response.additional.empty());
}

TEST_F(ResponderTest, TheUnsignedResponseLeavesRoomForTheSignature) {
  Query query{.qname = "big.example.com.", .qtype = RRType::kTXT};
  const Outcome outcome = handle(signed_query(query, key("update.")));
  dns::TsigKeyring ring;
  ASSERT_TRUE(ring.add(key("update.")));
  const Bytes request = signed_query(query, key("update."));
  const auto verdict = dns::TsigSession::verify_request(
      request, dns::find_tsig(request).value().value(), ring, kNow);
  auto session = dns::TsigSession::for_response(verdict);
  Bytes response(space_.begin(), space_.begin() + static_cast<long>(outcome.size));
  ASSERT_TRUE(session.sign(response, kNow));
  EXPECT_LE(response.size(), 512U);
}

TEST_F(ResponderTest, WithoutAManagerAHeldKeyIsServfailAtOnce) {
  manager_ = false;
  EXPECT_EQ(ask_octets(signed_query({}, key("update."))).rcode, number(Rcode::kServFail));
  EXPECT_EQ(ask_octets(signed_query({}, key("query."))).rcode, number(Rcode::kNoError));
}

TEST_F(ResponderTest, WithoutAManagerAnErrorForAHeldKeyIsAWholeServfail) {
  manager_ = false;
  use_tcp();
  // FORMERR would be without an extended error, and so shorter than the SERVFAIL in its place.
  const Query update{.opcode = 5, .qname = "address.test.", .qtype = RRType::kA, .edns = true};
  const Response response = ask_octets(signed_query(update, key("update.")));
  EXPECT_EQ(response.rcode, number(Rcode::kServFail));
  ASSERT_TRUE(response.edns);
}

TEST_F(ResponderTest, ATsigThatIsNotLastIsAFormatError) {
  Bytes message = signed_query({}, key("query."));
  Bytes opt{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0};
  append(message, opt);
  message[11] = 2;
  EXPECT_EQ(ask_octets(message).rcode, number(Rcode::kFormErr));
}

// Transfers
// ----------------------------------------------------------------------------------------

TEST_F(ResponderTest, AxfrOverUdpIsAFormatError) {
  EXPECT_EQ(ask({.qname = "example.com.", .qtype = RRType::kAXFR}).rcode, number(Rcode::kFormErr));
}

TEST_F(ResponderTest, AxfrOverTcpStartsATransferWhenTheRulesSaySo) {
  use_tcp();
  EXPECT_EQ(handle(Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets()).action,
            Action::kTransfer);
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  EXPECT_EQ(ask({.qname = "example.com.", .qtype = RRType::kAXFR}).rcode, number(Rcode::kRefused));
  EXPECT_EQ(count(Counter::kTransfersRefused), 1U);
}

TEST_F(ResponderTest, AxfrWithAKeyCarriesTheSessionAlong) {
  use_tcp();
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  const Query query{.qname = "example.com.", .qtype = RRType::kAXFR};
  EXPECT_EQ(handle(signed_query(query, key("transfer."))).action, Action::kTransfer);
  const TransferPlan plan = responder_.take_transfer();
  EXPECT_TRUE(plan.session);
  EXPECT_TRUE(plan.held_request.empty());
}

TEST_F(ResponderTest, AxfrWithAHeldKeyIsLeftToTheManagerToSign) {
  use_tcp();
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  const Bytes message =
      signed_query({.qname = "example.com.", .qtype = RRType::kAXFR}, key("update."));
  EXPECT_EQ(handle(message).action, Action::kTransfer);
  const TransferPlan plan = responder_.take_transfer();
  EXPECT_FALSE(plan.session);
  EXPECT_EQ(plan.held_request, message);
}

TEST_F(ResponderTest, AxfrOfWhatIsNoApexIsNotauth) {
  use_tcp();
  EXPECT_EQ(ask({.qname = "www.example.com.", .qtype = RRType::kAXFR}).rcode,
            number(Rcode::kNotAuth));
  EXPECT_EQ(ask({.qname = "other.test.", .qtype = RRType::kAXFR}).rcode, number(Rcode::kNotAuth));
}

TEST_F(ResponderTest, IxfrOfACurrentSerialGetsOneSoa) {
  use_tcp();
  for (const std::uint32_t serial : {2026U, 2027U}) {
    const Response response =
        ask({.qname = "example.com.", .qtype = RRType::kIXFR, .ixfr_serial = serial});
    ASSERT_EQ(response.answer.size(), 1U);
    EXPECT_EQ(response.answer[0].type, RRType::kSOA);
    EXPECT_TRUE(response.header.aa);
  }
  EXPECT_EQ(
      handle(Query{.qname = "example.com.", .qtype = RRType::kIXFR, .ixfr_serial = 2025}.octets())
          .action,
      Action::kTransfer);
}

TEST_F(ResponderTest, IxfrOverUdpGetsOneSoa) {
  const Response response =
      ask({.qname = "example.com.", .qtype = RRType::kIXFR, .ixfr_serial = 1});
  ASSERT_EQ(response.answer.size(), 1U);
  EXPECT_EQ(response.answer[0].type, RRType::kSOA);
}

TEST_F(ResponderTest, IxfrWithoutASoaIsAFormatError) {
  use_tcp();
  EXPECT_EQ(ask({.qname = "example.com.", .qtype = RRType::kIXFR}).rcode, number(Rcode::kFormErr));
}

}  // namespace responder_signed_test
}  // namespace pando::worker
