// UPDATE and NOTIFY: what goes to the manager, and what a worker answers itself.

#include <gtest/gtest.h>

#include "tests/unit/worker/respond/responder_fixture.h"

namespace pando::worker {
namespace responder_forward_test {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::allow_address;
using pando::testing::allow_tls;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::Response;
using pando::testing::TestZone;
using testing::key;
using testing::kZone;
using testing::notify;
using testing::number;
using testing::ResponderTest;
using testing::signed_query;
using testing::update;

TEST_F(ResponderTest, UpdatesThatMayBeAllowedAreForwarded) {
  const Outcome by_key = handle(signed_query(update("example.com."), key("update.")));
  EXPECT_EQ(by_key.action, Action::kForward);
  EXPECT_EQ(by_key.forward, ipc::ForwardKind::kUpdate);
  EXPECT_EQ(handle(update("address.test.").octets()).action, Action::kForward);
  EXPECT_EQ(count(Counter::kForwardedUpdates), 2U);
}

TEST_F(ResponderTest, UpdatesThatCannotBeAllowedNeverReachTheManager) {
  EXPECT_EQ(ask(update("example.com.")).rcode, number(Rcode::kRefused));
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  EXPECT_EQ(ask(update("address.test.")).rcode, number(Rcode::kRefused));
  EXPECT_EQ(ask(update("nowhere.test.")).rcode, number(Rcode::kNotAuth));
  EXPECT_EQ(ask(update("www.example.com.")).rcode, number(Rcode::kNotAuth));
  EXPECT_EQ(ask({.opcode = 5, .qname = "example.com.", .qtype = RRType::kA}).rcode,
            number(Rcode::kFormErr));
  EXPECT_EQ(ask({.opcode = 5, .qname = "example.com.", .qtype = RRType::kSOA, .qclass = 3}).rcode,
            number(Rcode::kNotAuth));
  EXPECT_EQ(ask_octets(signed_query(update("example.com."), key("unknown."))).rcode,
            number(Rcode::kNotAuth));
  EXPECT_EQ(count(Counter::kForwardedUpdates), 0U);
}

TEST_F(ResponderTest, AKnownKeyThatIsNotAllowedIsForwardedSoThatTheRefusalIsSigned) {
  EXPECT_EQ(handle(signed_query(update("example.com."), key("transfer."))).action,
            Action::kForward);
}

TEST_F(ResponderTest, ARuleAboutTlsBringsNoPlainRequestToTheManager) {
  TestZone updated{"updated.test.", kZone};
  updated.settings.allow_update = {allow_tls("second")};
  TestZone notified{"notified.test.", kZone};
  notified.settings.is_secondary = true;
  notified.settings.allow_notify = {allow_tls("any")};
  store_ =
      std::make_unique<pando::testing::ZoneStore>(std::vector{updated, notified}, settings_);
  const PeerIdentity second{{"second"}};
  const PeerIdentity stranger;
  for (const bool tcp : {false, true}) {
    if (tcp) use_tcp();
    EXPECT_EQ(ask(update("updated.test.")).rcode, number(Rcode::kRefused));
    EXPECT_EQ(ask(notify("notified.test.")).rcode, number(Rcode::kRefused));
    // A signature with a key of the manager's does not help: no key makes up for the identity.
    const auto outcome = handle(signed_query(update("updated.test."), key("update.")));
    EXPECT_EQ(outcome.action, Action::kForward);
    EXPECT_EQ(outcome.forward, ipc::ForwardKind::kSignedQuery);
  }
  client_.transport = ipc::Transport::kTls;
  client_.peer = &stranger;
  EXPECT_EQ(ask(update("updated.test.")).rcode, number(Rcode::kRefused));
  EXPECT_EQ(handle(notify("notified.test.").octets()).action, Action::kForward);
  client_.peer = &second;
  EXPECT_EQ(handle(update("updated.test.").octets()).forward, ipc::ForwardKind::kUpdate);
}

TEST_F(ResponderTest, ARuleThatDeniesSomeNamesAloneDoesNotKeepOtherUpdatesFromTheManager) {
  zone::AclRule some = allow_address("192.0.2.0/24");
  some.deny = true;
  some.names = {name("www.partly.test.")};
  TestZone partly{"partly.test.", kZone};
  partly.settings.allow_update = {some, allow_address("192.0.2.0/24")};
  TestZone none = partly;
  none.apex = "none.test.";
  none.settings.allow_update[0].names.clear();
  store_ = std::make_unique<pando::testing::ZoneStore>(std::vector{partly, none}, settings_);
  EXPECT_EQ(handle(update("partly.test.").octets()).action, Action::kForward);
  EXPECT_EQ(ask(update("none.test.")).rcode, number(Rcode::kRefused));
}

TEST_F(ResponderTest, ARuleAboutTheKeyThatSignsBringsNoUnsignedUpdateToTheManager) {
  TestZone own{"own.test.", kZone};
  own.settings.allow_update = {allow_address("192.0.2.0/24")};
  own.settings.allow_update[0].names = {name("self."), name("_acme-challenge.self.")};
  TestZone mixed = own;
  mixed.apex = "mixed.test.";
  mixed.settings.allow_update[0].names.push_back(name("www.mixed.test."));
  TestZone passing = own;
  passing.apex = "up.test.";
  passing.settings.is_secondary = passing.settings.forward_updates = true;
  store_ = std::make_unique<pando::testing::ZoneStore>(std::vector{own, mixed, passing}, settings_);
  for (const char* zone : {"own.test.", "up.test."}) {
    Query unsigned_one = update(zone);
    unsigned_one.edns = true;
    const Response refused = ask(unsigned_one);
    EXPECT_EQ(refused.rcode, number(Rcode::kRefused)) << zone;
    ASSERT_TRUE(refused.edns);
    const auto why = dns::find_option(refused.edns->options, dns::kOptionEde);
    ASSERT_TRUE(why && why->size() >= 2);
    EXPECT_EQ(load_be16(why->data()), 18) << "Prohibited, as the manager says";
    EXPECT_EQ(handle(signed_query(update(zone), key("update."))).forward, ipc::ForwardKind::kUpdate)
        << zone;
  }
  EXPECT_EQ(handle(update("mixed.test.").octets()).action, Action::kForward);
  EXPECT_EQ(count(Counter::kForwardedUpdates), 3U);
}

TEST_F(ResponderTest, UpdatesOfASecondaryZoneAreRefusedHereUnlessTheyArePassedOn) {
  const Response refused =
      ask({.opcode = 5, .qname = "secondary.test.", .qtype = RRType::kSOA, .edns = true});
  EXPECT_EQ(refused.rcode, number(Rcode::kRefused));
  ASSERT_TRUE(refused.edns);
  EXPECT_TRUE(dns::find_option(refused.edns->options, dns::kOptionEde));
  EXPECT_EQ(ask_octets(signed_query(update("secondary.test."), key("unknown."))).rcode,
            number(Rcode::kNotAuth));
  expect_signed(update("secondary.test."), Rcode::kRefused);
  EXPECT_EQ(handle(signed_query(update("secondary.test."), key("update."))).forward,
            ipc::ForwardKind::kSignedQuery)
      << "the refusal is signed by who has the key";
  EXPECT_EQ(count(Counter::kForwardedUpdates), 0U);
}

TEST_F(ResponderTest, ASignedUpdateThatIsPassedOnNeedsNoKeyHereSinceItsPrimaryMayKnowIt) {
  for (const char* by : {"unknown.", "query.", "update."}) {
    const Outcome outcome = handle(signed_query(update("passing.test."), key(by)));
    EXPECT_EQ(outcome.action, Action::kForward) << by;
    EXPECT_EQ(outcome.forward, ipc::ForwardKind::kUpdate) << by;
  }
  EXPECT_EQ(ask(update("passing.test.")).rcode, number(Rcode::kRefused)) << "unsigned, no rule";
  manager_ = false;
  EXPECT_EQ(ask_octets(signed_query(update("passing.test."), key("unknown."))).rcode,
            number(Rcode::kServFail));
}

TEST_F(ResponderTest, WithRulesOnlyWhoOneOfThemLetsIsPassedOn) {
  EXPECT_EQ(handle(update("choosing.test.").octets()).action, Action::kForward);
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  EXPECT_EQ(ask(update("choosing.test.")).rcode, number(Rcode::kRefused));
  EXPECT_EQ(handle(signed_query(update("choosing.test."), key("update."))).forward,
            ipc::ForwardKind::kUpdate);
  EXPECT_EQ(ask_octets(signed_query(update("choosing.test."), key("unknown."))).rcode,
            number(Rcode::kNotAuth));
  expect_signed(update("choosing.test."), Rcode::kRefused);
  EXPECT_EQ(count(Counter::kForwardedUpdates), 2U);
}

TEST_F(ResponderTest, WithoutAManagerUpdatesAreServfailAtOnce) {
  manager_ = false;
  EXPECT_EQ(ask(update("address.test.")).rcode, number(Rcode::kServFail));
}

TEST_F(ResponderTest, NotifyFromAPrimaryIsForwardedAndFromOthersRefused) {
  EXPECT_EQ(ask(notify("secondary.test.")).rcode, number(Rcode::kRefused));
  client_.remote = Endpoint::from_text("192.0.2.53@53").value();
  const Outcome outcome = handle(notify("secondary.test.").octets());
  EXPECT_EQ(outcome.action, Action::kForward);
  EXPECT_EQ(outcome.forward, ipc::ForwardKind::kNotify);
  EXPECT_EQ(ask(notify("nowhere.test.")).rcode, number(Rcode::kNotAuth));
}

TEST_F(ResponderTest, NotifyForAPrimaryZoneIsNotauthWithoutTheManagersHelp) {
  EXPECT_EQ(ask(notify("example.com.")).rcode, number(Rcode::kNotAuth));
  expect_signed(notify("example.com."), Rcode::kNotAuth);
  EXPECT_EQ(handle(signed_query(notify("example.com."), key("update."))).forward,
            ipc::ForwardKind::kSignedQuery)
      << "but for the signature";
  EXPECT_EQ(count(Counter::kForwardedNotifies), 0U);
}

/// RFC 1996 §3.6: the primary would take SERVFAIL for an answer, and not say it again.
TEST_F(ResponderTest, WithoutAManagerANotifyOverUdpHasNoAnswer) {
  manager_ = false;
  client_.remote = Endpoint::from_text("192.0.2.53@53").value();
  EXPECT_EQ(handle(notify("secondary.test.").octets()).action, Action::kDrop);
  EXPECT_EQ(handle(signed_query(notify("secondary.test."), key("update."))).action, Action::kDrop);
  EXPECT_EQ(count(Counter::kForwardsFailed), 2U);
  EXPECT_EQ(ask(notify("example.com.")).rcode, number(Rcode::kNotAuth)) << "this needs no manager";
  use_tcp();
  EXPECT_EQ(ask(notify("secondary.test.")).rcode, number(Rcode::kServFail));
}

/// RFC 8945 §5.3: nsupdate takes an unsigned answer for a malformed one and gives up.
TEST_F(ResponderTest, WithoutAManagerASignedUpdateOverUdpHasNoAnswer) {
  manager_ = false;
  const Bytes request = signed_query(update("example.com."), key("update."));
  EXPECT_EQ(handle(request).action, Action::kDrop);
  EXPECT_EQ(count(Counter::kForwardsFailed), 1U);
  use_tcp();
  EXPECT_EQ(ask_octets(request).rcode, number(Rcode::kServFail)) << "nobody repeats it";
}

TEST_F(ResponderTest, AFailedForwardingIsServfailExceptForWhatIsRepeatedOverUdp) {
  Bytes space(kUdpSpace);
  handle(update("address.test.").octets());
  EXPECT_GT(responder_.make_failure(space), 0U);
  handle(signed_query({.qname = "example.com."}, key("update.")));
  EXPECT_GT(responder_.make_failure(space), 0U);
  const Bytes from_primary = notify("secondary.test.").octets();
  const Bytes signed_update = signed_query(update("example.com."), key("update."));
  for (const Bytes& request : {from_primary, signed_update}) {
    handle(request);
    EXPECT_EQ(responder_.make_failure(space), 0U);
  }
  use_tcp();
  for (const Bytes& request : {from_primary, signed_update}) {
    handle(request);
    const std::size_t size = responder_.make_failure(space);
    EXPECT_EQ(pando::testing::read_response({space.data(), size}).rcode, number(Rcode::kServFail));
  }
}

TEST_F(ResponderTest, AServfailRepeatsIdOpcodeAndQuestion) {
  Bytes space(kUdpSpace);
  const Bytes request = update("example.com.").octets();
  handle(request);
  const std::size_t size = responder_.make_servfail(space);
  const Response response = pando::testing::read_response({space.data(), size});
  EXPECT_EQ(response.rcode, number(Rcode::kServFail));
  EXPECT_EQ(response.header.opcode, dns::Opcode::kUpdate);
  EXPECT_EQ(response.header.id, 0x1234);
  EXPECT_EQ(dns::to_text(response.question->name), "example.com.");
  EXPECT_FALSE(response.edns);
}

TEST_F(ResponderTest, AServfailHasTheOptOfAnOrdinaryAnswer) {
  settings_.udp_payload = 1400;
  store_ = std::make_unique<pando::testing::ZoneStore>(testing::zones(), settings_);
  ipc::Keys keys;
  keys.cookie_secrets = {ipc::CookieSecret{1, 2, 3}};
  responder_.set_keys(make_key_set(std::move(keys)));
  Query query = update("address.test.");
  query.edns = query.dnssec_ok = true;
  append(query.options, pando::testing::option(dns::kOptionNsid, {}));
  append(query.options, pando::testing::option(dns::kOptionCookie, Bytes(8, 7)));
  const Bytes request = query.octets();
  EXPECT_EQ(handle(request).action, Action::kForward);
  Bytes space(kUdpSpace);
  const std::size_t size = responder_.make_failure(space);
  const Response response = pando::testing::read_response({space.data(), size});
  EXPECT_EQ(response.rcode, number(Rcode::kServFail));
  ASSERT_TRUE(response.edns);
  EXPECT_EQ(response.edns->udp_payload, 1400);
  EXPECT_TRUE(response.edns->dnssec_ok);
  EXPECT_TRUE(dns::find_option(response.edns->options, dns::kOptionNsid));
  const auto cookie = dns::find_option(response.edns->options, dns::kOptionCookie);
  ASSERT_TRUE(cookie);
  EXPECT_EQ(cookie->size(), 24U);
}

TEST_F(ResponderTest, AServfailForATransferThatCannotStartIsUnsignedAndAboutNoZone) {
  use_tcp();
  Query query{.qname = "example.com.", .qtype = RRType::kAXFR, .edns = true};
  append(query.options, pando::testing::option(dns::kOptionExpire, {}));
  const Bytes request = signed_query(query, key("transfer."));
  EXPECT_EQ(handle(request).action, Action::kTransfer);
  const std::size_t size = responder_.make_servfail(space_);
  const Response response = pando::testing::read_response({space_.data(), size});
  EXPECT_EQ(response.rcode, number(Rcode::kServFail));
  EXPECT_TRUE(response.additional.empty());
  EXPECT_FALSE(dns::find_option(response.edns->options, dns::kOptionExpire));
}

}  // namespace responder_forward_test
}  // namespace pando::worker
