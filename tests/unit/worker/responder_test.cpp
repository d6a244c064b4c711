#include "worker/responder.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/worker/query_builder.h"

namespace pando::worker {
namespace {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::allow_address;
using pando::testing::allow_key;
using pando::testing::name;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::Response;
using pando::testing::TestZone;

constexpr std::uint64_t kNow = 1'700'000'000;

std::uint16_t number(Rcode rcode) { return static_cast<std::uint16_t>(rcode); }

const char* const kZone = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.80
big TXT "0123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "1123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "2123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "3123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "4123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "5123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "6123456789012345678901234567890123456789012345678901234567890123456789"
)";

std::vector<TestZone> zones() {
  TestZone open{"example.com.", kZone};
  open.settings.allow_transfer = {allow_address("192.0.2.0/24"), allow_key("transfer."),
                                  allow_key("update.")};
  open.settings.allow_update = {allow_key("update.")};
  TestZone closed{"closed.test.", kZone};
  closed.settings.allow_query = {allow_address("198.51.100.0/24"), allow_key("query.")};
  TestZone unloaded{"unloaded.test.", ""};
  TestZone secondary{"secondary.test.", kZone};
  secondary.settings.is_secondary = true;
  secondary.settings.allow_notify = {allow_address("192.0.2.53/32")};
  secondary.settings.allow_transfer = {pando::testing::allow_all()};
  TestZone by_address{"address.test.", kZone};
  by_address.settings.allow_update = {allow_address("192.0.2.0/24")};
  TestZone passing{"passing.test.", kZone};  // updates to its primary
  passing.settings.is_secondary = passing.settings.forward_updates = true;
  TestZone choosing{"choosing.test.", kZone};
  choosing.settings = passing.settings;
  choosing.settings.allow_update = {allow_address("192.0.2.0/24"), allow_key("update.")};
  return {open, closed, unloaded, secondary, by_address, passing, choosing};
}

dns::TsigKey key(const char* key_name) {
  return {name(key_name), dns::TsigAlgorithm::kSha256, Bytes(32, 0x42)};
}

class ResponderTest : public ::testing::Test {
 protected:
  ResponderTest() {
    settings_.identity = "ns1.example.net";
    store_ = std::make_unique<pando::testing::ZoneStore>(zones(), settings_);
    ipc::Keys keys;
    keys.shared = {key("transfer."), key("query.")};
    keys.held = {{name("update."), dns::TsigAlgorithm::kSha256}};
    responder_.set_keys(make_key_set(std::move(keys)));
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }

  Outcome handle(const Bytes& message) {
    responder_.begin(store_->snapshot(), now_, manager_);
    return responder_.handle(message, client_, space_);
  }
  Response ask(const Query& query) { return ask_octets(query.octets()); }
  Response ask_octets(const Bytes& message) {
    outcome_ = handle(message);
    EXPECT_EQ(outcome_.action, Action::kRespond);
    return pando::testing::read_response({space_.data(), outcome_.size});
  }
  void use_tcp() { client_.transport = ipc::Transport::kTcp; }
  std::uint64_t count(Counter counter) const {
    return (*counters_)[ipc::counter_index(counter)].load();
  }
  /// A query signed with `key`.
  static Bytes signed_query(const Query& query, const dns::TsigKey& with, std::uint64_t at = kNow) {
    dns::TsigKeyring ring;
    EXPECT_TRUE(ring.add(with));
    auto session = dns::TsigSession::for_request(*ring.find(with.name));
    Bytes message = query.octets();
    EXPECT_TRUE(session.sign(message, at));
    return message;
  }

  /// That this is the answer when a key that workers have signs the request, and is signed with it.
  void expect_signed(const Query& query, Rcode rcode) {
    dns::TsigKeyring ring;
    ASSERT_TRUE(ring.add(key("query.")));
    auto session = dns::TsigSession::for_request(*ring.find(name("query.")));
    Bytes message = query.octets();
    ASSERT_TRUE(session.sign(message, kNow));
    const Response response = ask_octets(message);
    EXPECT_EQ(response.rcode, number(rcode));
    EXPECT_TRUE(session.verify_response(response.octets, kNow));
  }

  zone::ServerSettings settings_;
  std::unique_ptr<pando::testing::ZoneStore> store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder responder_{*counters_,
                       [this](std::uint32_t index) { return store_->store().side(index); }};
  Client client_;
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
  std::uint64_t now_ = kNow;
  bool manager_ = true;
  Outcome outcome_;
};

// Answers
// ------------------------------------------------------------------------------------------

TEST_F(ResponderTest, AnswersAQuestionWithIdAndFlagsCopied) {
  const Response response = ask({.id = 0xBEEF, .rd = true, .cd = true});
  EXPECT_EQ(response.header.id, 0xBEEF);
  EXPECT_TRUE(response.header.qr && response.header.aa && response.header.rd && response.header.cd);
  EXPECT_FALSE(response.header.ra || response.header.tc || response.header.ad);
  EXPECT_EQ(response.answer_text(), std::vector<std::string>{"www.example.com. A 192.0.2.80"});
  EXPECT_FALSE(response.edns);
}

TEST_F(ResponderTest, RepeatsTheQuestionInTheClientsCase) {
  const Response response = ask({.qname = "wWw.ExAmPlE.cOm."});
  EXPECT_EQ(dns::to_text(response.question->name), "wWw.ExAmPlE.cOm.");
}

TEST_F(ResponderTest, AZoneWithoutDataIsServfailAndNoZoneRefused) {
  EXPECT_EQ(ask({.qname = "a.unloaded.test."}).rcode, number(Rcode::kServFail));
  EXPECT_EQ(ask({.qname = "elsewhere.test."}).rcode, number(Rcode::kRefused));
}

TEST_F(ResponderTest, AnExpiredZoneIsServfailUntilItsTimeIsMovedOn) {
  store_->store().side(3)->expires_at.store(kNow);
  EXPECT_EQ(ask({.qname = "www.secondary.test."}).rcode, number(Rcode::kServFail));
  store_->store().side(3)->expires_at.store(kNow + 1);
  EXPECT_EQ(ask({.qname = "www.secondary.test."}).rcode, number(Rcode::kNoError));
}

TEST_F(ResponderTest, AllowQueryDecidesByAddressAndByKey) {
  EXPECT_EQ(ask({.qname = "www.closed.test."}).rcode, number(Rcode::kRefused));
  client_.remote = Endpoint::from_text("198.51.100.9@99").value();
  EXPECT_EQ(ask({.qname = "www.closed.test."}).rcode, number(Rcode::kNoError));
  client_.remote = Endpoint::from_text("203.0.113.1@99").value();
  EXPECT_EQ(ask_octets(signed_query({.qname = "www.closed.test."}, key("query."))).rcode,
            number(Rcode::kNoError));
}

TEST_F(ResponderTest, ClassAnyIsAnsweredWithoutAuthority) {
  const Response response = ask({.qclass = 255});
  EXPECT_EQ(response.answer.size(), 1U);
  EXPECT_FALSE(response.header.aa);
}

TEST_F(ResponderTest, OtherClassesAreRefused) {
  EXPECT_EQ(ask({.qclass = 4}).rcode, number(Rcode::kRefused));
  EXPECT_EQ(ask({.qclass = 254}).rcode, number(Rcode::kRefused));
}

TEST_F(ResponderTest, TypesThatCannotBeAskedForAreErrors) {
  EXPECT_EQ(ask({.qtype = RRType::kOPT}).rcode, number(Rcode::kFormErr));
  EXPECT_EQ(ask({.qtype = RRType::kTSIG}).rcode, number(Rcode::kFormErr));
  EXPECT_EQ(ask({.qtype = RRType::kNXNAME}).rcode, number(Rcode::kFormErr));
  EXPECT_EQ(ask({.qtype = static_cast<RRType>(0)}).rcode, number(Rcode::kFormErr));
  EXPECT_EQ(ask({.qtype = RRType::kTKEY}).rcode, number(Rcode::kNotImp));
  EXPECT_EQ(ask({.qtype = RRType::kMAILB}).rcode, number(Rcode::kNotImp));
}

// Form
// ---------------------------------------------------------------------------------------------

TEST_F(ResponderTest, ShortPacketsAndResponsesAreDroppedSilently) {
  const Bytes whole = Query{}.octets();
  for (std::size_t size = 0; size < dns::kHeaderOctets; ++size)
    EXPECT_EQ(handle({whole.begin(), whole.begin() + static_cast<long>(size)}).action,
              Action::kDrop);
  EXPECT_EQ(handle(Query{.qr = true}.octets()).action, Action::kDrop);
  EXPECT_EQ(count(Counter::kDropped), dns::kHeaderOctets + 1);
}

TEST_F(ResponderTest, AnyQuestionCountButOneIsAFormatError) {
  for (const int questions : {0, 2, 3})
    EXPECT_EQ(ask({.questions = questions}).rcode, number(Rcode::kFormErr)) << questions;
}

TEST_F(ResponderTest, UnknownOpcodesAreNotImplementedWithTheOpcodeEchoed) {
  for (const int opcode : {1, 2, 3, 6, 7, 15}) {
    const Response response = ask({.opcode = static_cast<std::uint8_t>(opcode), .rd = true});
    EXPECT_EQ(response.rcode, number(Rcode::kNotImp)) << opcode;
    EXPECT_EQ(static_cast<int>(response.header.opcode), opcode);
    EXPECT_EQ(response.header.id, 0x1234);
    EXPECT_EQ(response.octets.size(), dns::kHeaderOctets);
  }
}

TEST_F(ResponderTest, ErrorsForWhatCannotBeReadCarryAnOptWhenThereWasOne) {
  EXPECT_TRUE(ask({.opcode = 2, .edns = true}).edns);
  for (const int questions : {0, 2, 3}) {
    const Response response = ask({.questions = questions, .edns = true});
    EXPECT_EQ(response.rcode, number(Rcode::kFormErr)) << questions;
    EXPECT_TRUE(response.edns) << questions;
  }
}

TEST_F(ResponderTest, AQueryWithoutAQuestionGetsACookieWhenItAsksForOne) {
  const Bytes options = option(dns::kOptionCookie, Bytes(8, 7));
  const Query query{.questions = 0, .edns = true, .options = options};
  EXPECT_EQ(ask(query).rcode, number(Rcode::kFormErr)) << "cookies are off";
  ipc::Keys keys;
  keys.cookie_secrets = {ipc::CookieSecret{1, 2, 3}};
  responder_.set_keys(make_key_set(std::move(keys)));
  const Response response = ask(query);
  EXPECT_EQ(response.rcode, number(Rcode::kNoError));
  EXPECT_EQ(response.header.qdcount, 0);
  const auto cookie = dns::find_option(response.edns->options, dns::kOptionCookie);
  ASSERT_TRUE(cookie);
  EXPECT_EQ(cookie->size(), 24U);
}

TEST_F(ResponderTest, AMessageCutShortAnywhereIsAFormatErrorOrDropped) {
  const Bytes whole = Query{.edns = true, .options = option(3, {})}.octets();
  for (std::size_t size = dns::kHeaderOctets; size < whole.size(); ++size)
    EXPECT_EQ(ask_octets(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))).rcode,
              number(Rcode::kFormErr))
        << size;
}

TEST_F(ResponderTest, OctetsBehindTheMessageAreAFormatError) {
  Bytes message = Query{}.octets();
  message.push_back(0);
  EXPECT_EQ(ask_octets(message).rcode, number(Rcode::kFormErr));
}

TEST_F(ResponderTest, ErrorsOverUdpAreBoundedPerSecond) {
  const Bytes garbage = Query{.questions = 2}.octets();
  std::uint32_t answered = 0;
  for (std::uint32_t i = 0; i < 2 * ErrorLimit::kPerSecond; ++i)
    if (handle(garbage).action == Action::kRespond) ++answered;
  EXPECT_EQ(answered, ErrorLimit::kPerSecond);
  EXPECT_EQ(count(Counter::kErrorsLimited), ErrorLimit::kPerSecond);
  EXPECT_EQ(ask(Query{}).rcode, number(Rcode::kNoError));  // good queries are not touched
  ++now_;
  EXPECT_EQ(handle(garbage).action, Action::kRespond);
}

TEST_F(ResponderTest, AClientWithAValidCookieIsToldOfItsErrorsBeyondTheBound) {
  ipc::Keys keys;
  keys.cookie_secrets = {ipc::CookieSecret{1, 2, 3}};
  responder_.set_keys(make_key_set(std::move(keys)));
  const Response first = ask({.edns = true, .options = option(dns::kOptionCookie, Bytes(8, 7))});
  const auto learned = dns::find_option(first.edns->options, dns::kOptionCookie);
  ASSERT_TRUE(learned && learned->size() == 24);
  const Bytes cookie(learned->begin(), learned->end());
  const auto refused = [&](const Bytes& with) {
    return handle(Query{.qname = "elsewhere.test.",
                        .edns = true,
                        .options = option(dns::kOptionCookie, with)}
                      .octets())
        .action;
  };
  while (refused(Bytes(8, 7)) == Action::kRespond) {
  }
  EXPECT_EQ(refused(cookie), Action::kRespond);
}

// EDNS
// ---------------------------------------------------------------------------------------------

TEST_F(ResponderTest, AnOptIsAnsweredWithAnOpt) {
  const Response response = ask({.edns = true, .payload = 4096, .dnssec_ok = true});
  ASSERT_TRUE(response.edns);
  EXPECT_EQ(response.edns->udp_payload, 1232);
  EXPECT_TRUE(response.edns->dnssec_ok);
  EXPECT_EQ(response.edns->version, 0);
}

TEST_F(ResponderTest, AnUnknownEdnsVersionIsBadversWithVersionZero) {
  const Response response = ask({.edns = true, .version = 1});
  EXPECT_EQ(response.rcode, number(Rcode::kBadVers));
  EXPECT_EQ(response.edns->version, 0);
  EXPECT_TRUE(response.answer.empty());
}

TEST_F(ResponderTest, TwoOptsAreAFormatError) {
  EXPECT_EQ(ask({.edns = true, .opts = 2}).rcode, number(Rcode::kFormErr));
}

TEST_F(ResponderTest, AnOptOutsideTheAdditionalSectionIsAFormatError) {
  Bytes message = Query{.edns = true}.octets();
  std::swap(message[7], message[11]);  // ANCOUNT and ARCOUNT
  EXPECT_EQ(ask_octets(message).rcode, number(Rcode::kFormErr));
}

TEST_F(ResponderTest, UnknownOptionsAreIgnored) {
  EXPECT_EQ(ask({.edns = true, .options = option(65001, Bytes(5, 9))}).rcode,
            number(Rcode::kNoError));
}

TEST_F(ResponderTest, ResponsesKeepToTheClientsSizeAndOurs) {
  const Response plain = ask({.qname = "big.example.com.", .qtype = RRType::kTXT});
  EXPECT_TRUE(plain.header.tc);
  EXPECT_LE(plain.octets.size(), 512U);
  const Response large =
      ask({.qname = "big.example.com.", .qtype = RRType::kTXT, .edns = true, .payload = 1232});
  EXPECT_FALSE(large.header.tc);
  EXPECT_EQ(large.answer.size(), 7U);
  const Response tiny =
      ask({.qname = "big.example.com.", .qtype = RRType::kTXT, .edns = true, .payload = 100});
  EXPECT_TRUE(tiny.header.tc);
  EXPECT_LE(tiny.octets.size(), 512U);
  EXPECT_TRUE(tiny.edns);
}

TEST_F(ResponderTest, OverTcpNothingIsTruncated) {
  use_tcp();
  const Response response = ask({.qname = "big.example.com.", .qtype = RRType::kTXT});
  EXPECT_FALSE(response.header.tc);
  EXPECT_EQ(response.answer.size(), 7U);
}

TEST_F(ResponderTest, NsidIsToldWhenAskedFor) {
  const Response asked = ask({.edns = true, .options = option(dns::kOptionNsid, {})});
  const auto nsid = dns::find_option(asked.edns->options, dns::kOptionNsid);
  ASSERT_TRUE(nsid);
  EXPECT_EQ(std::string(nsid->begin(), nsid->end()), "ns1.example.net");
  const Response not_asked = ask({.edns = true});
  EXPECT_FALSE(dns::find_option(not_asked.edns->options, dns::kOptionNsid));
}

TEST_F(ResponderTest, ExpireIsTheSoasForAPrimaryAndWhatIsLeftForASecondary) {
  const auto expire = [&](const char* qname) -> std::uint32_t {
    const Response response = ask({.qname = qname,
                                   .qtype = RRType::kSOA,
                                   .edns = true,
                                   .options = option(dns::kOptionExpire, {})});
    const auto found = dns::find_option(response.edns->options, dns::kOptionExpire);
    return found && found->size() == 4 ? load_be32(found->data()) : 0;
  };
  EXPECT_EQ(expire("example.com."), 86400U);
  store_->store().side(3)->expires_at.store(kNow + 1000);
  EXPECT_EQ(expire("secondary.test."), 1000U);
}

TEST_F(ResponderTest, TheZonesVersionIsToldWithEachAnswerFromItWhenAskedFor) {  // RFC 9660 §3.2
  const auto version = [&](const char* qname, bool asked = true) -> Bytes {
    const Bytes options = asked ? option(dns::kOptionZoneVersion, {}) : Bytes();
    const Response response = ask({.qname = qname, .edns = true, .options = options});
    const auto found = dns::find_option(response.edns->options, dns::kOptionZoneVersion);
    return found ? Bytes(found->begin(), found->end()) : Bytes();
  };
  const Bytes serial_of_two_labels{2, 0, 0, 0, 0x07, 0xEA};  // 2026
  for (const char* qname : {"www.example.com.", "ns1.example.com.", "nowhere.example.com."})
    EXPECT_EQ(version(qname), serial_of_two_labels) << qname;
  EXPECT_TRUE(version("www.example.com.", false).empty());
  EXPECT_TRUE(version("elsewhere.test.").empty());
  EXPECT_TRUE(version("a.unloaded.test.").empty());
  EXPECT_TRUE(version("www.closed.test.").empty());
  store_->store().side(3)->expires_at.store(kNow);
  EXPECT_EQ(version("www.secondary.test."), serial_of_two_labels) << "expired, SERVFAIL";
}

TEST_F(ResponderTest, ErrorsSayWhyInDetail) {  // RFC 8914
  use_tcp();
  const auto detail = [&](Query query) {
    query.edns = true;
    const Response response = ask(query);
    const auto found = dns::find_option(response.edns->options, dns::kOptionEde);
    return found && found->size() >= 2 ? load_be16(found->data()) : 0;
  };
  EXPECT_EQ(detail({.qname = "elsewhere.test."}), 20);
  EXPECT_EQ(detail({.qname = "a.unloaded.test."}), 14);
  EXPECT_EQ(detail({.qname = "www.closed.test."}), 18);
  EXPECT_EQ(detail({.qclass = 4}), 20);
  EXPECT_EQ(detail({.qtype = RRType::kNXNAME}), 30);
  EXPECT_EQ(detail({.qtype = static_cast<RRType>(249)}), 21);  // TKEY
  EXPECT_EQ(detail({.opcode = 6}), 21);
  EXPECT_EQ(detail({.qname = "closed.test.", .qtype = RRType::kAXFR}), 18);
  EXPECT_EQ(detail({.qname = "www.example.com.", .qtype = RRType::kAXFR}), 20);
  EXPECT_EQ(detail({.opcode = 5, .qname = "closed.test.", .qtype = RRType::kSOA}), 18);
  for (const std::uint8_t opcode : {std::uint8_t{4}, std::uint8_t{5}})
    EXPECT_EQ(detail({.opcode = opcode, .qname = "elsewhere.test.", .qtype = RRType::kSOA}), 20);
  EXPECT_EQ(detail({}), 0);
}

TEST_F(ResponderTest, OfRepeatedOptionsTheFirstCountsAndEachIsAnsweredOnce) {
  ipc::Keys keys;
  keys.cookie_secrets = {ipc::CookieSecret{1, 2, 3}};
  responder_.set_keys(make_key_set(std::move(keys)));
  Bytes options;
  for (const std::uint8_t first : {std::uint8_t{1}, std::uint8_t{2}}) {
    append(options, option(dns::kOptionNsid, {}));
    append(options, option(dns::kOptionCookie, Bytes(8, first)));
  }
  append(options, option(dns::kOptionCookie, Bytes(3)));  // malformed, but not looked at
  const Response response = ask({.edns = true, .options = options});
  EXPECT_EQ(response.rcode, number(Rcode::kNoError));
  const auto cookie = dns::find_option(response.edns->options, dns::kOptionCookie);
  ASSERT_TRUE(cookie && cookie->size() == 24);
  EXPECT_EQ((*cookie)[0], 1);
  const std::size_t once = 4 + std::string("ns1.example.net").size() + 4 + 24;
  EXPECT_EQ(response.edns->options.size(), once);
}

TEST_F(ResponderTest, KeepaliveIsToldOverTcpOnly) {
  const Query query{.edns = true, .options = option(dns::kOptionKeepalive, {})};
  EXPECT_FALSE(dns::find_option(ask(query).edns->options, dns::kOptionKeepalive));
  use_tcp();
  const Response response = ask(query);
  const auto found = dns::find_option(response.edns->options, dns::kOptionKeepalive);
  ASSERT_TRUE(found && found->size() == 2);
  EXPECT_EQ(load_be16(found->data()), 100);  // 10 s in units of 100 ms
}

TEST_F(ResponderTest, CookiesAreAnsweredAndMalformedOnesAreFormatErrors) {
  ipc::Keys keys;
  keys.cookie_secrets = {ipc::CookieSecret{1, 2, 3}};
  responder_.set_keys(make_key_set(std::move(keys)));
  const Bytes client_cookie{1, 2, 3, 4, 5, 6, 7, 8};
  const Response first = ask({.edns = true, .options = option(dns::kOptionCookie, client_cookie)});
  const auto cookie = dns::find_option(first.edns->options, dns::kOptionCookie);
  ASSERT_TRUE(cookie && cookie->size() == 24);
  EXPECT_TRUE(std::equal(client_cookie.begin(), client_cookie.end(), cookie->begin()));
  EXPECT_EQ(ask({.edns = true, .options = option(dns::kOptionCookie, Bytes(3))}).rcode,
            number(Rcode::kFormErr));
}

// CHAOS
// --------------------------------------------------------------------------------------------

TEST_F(ResponderTest, TellsItsIdentityInClassChaos) {
  for (const char* qname : {"id.server.", "hostname.bind.", "ID.Server."}) {
    const Response response = ask({.qname = qname, .qtype = RRType::kTXT, .qclass = 3});
    ASSERT_EQ(response.answer.size(), 1U) << qname;
    EXPECT_NE(response.answer_text()[0].find("\"ns1.example.net\""), std::string::npos);
    EXPECT_EQ(response.answer[0].rr_class, dns::RRClass::kCH);
  }
}

TEST_F(ResponderTest, TellsAVersionOnlyWhenItIsConfigured) {
  const char* const names[] = {"version.bind.", "version.server.", "VERSION.bind."};
  for (const char* qname : names)
    EXPECT_EQ(ask({.qname = qname, .qtype = RRType::kTXT, .qclass = 3}).rcode,
              number(Rcode::kRefused));
  settings_.version = "of my own";
  store_ = std::make_unique<pando::testing::ZoneStore>(zones(), settings_);
  for (const char* qname : names) {
    const Response response = ask({.qname = qname, .qtype = RRType::kTXT, .qclass = 3});
    ASSERT_EQ(response.answer.size(), 1U) << qname;
    EXPECT_NE(response.answer_text()[0].find("\"of my own\""), std::string::npos);
  }
}

TEST_F(ResponderTest, OtherNamesAndTypesOfClassChaosAreRefused) {
  EXPECT_EQ(ask({.qname = "www.example.com.", .qtype = RRType::kTXT, .qclass = 3}).rcode,
            number(Rcode::kRefused));
  EXPECT_EQ(ask({.qname = "id.server.", .qtype = RRType::kA, .qclass = 3}).rcode,
            number(Rcode::kRefused));
}

TEST_F(ResponderTest, WithoutAnIdentityChaosIsRefused) {
  store_ = std::make_unique<pando::testing::ZoneStore>(zones());
  EXPECT_EQ(ask({.qname = "id.server.", .qtype = RRType::kTXT, .qclass = 3}).rcode,
            number(Rcode::kRefused));
  const Response response = ask({.edns = true, .options = option(dns::kOptionNsid, {})});
  EXPECT_FALSE(dns::find_option(response.edns->options, dns::kOptionNsid));
}

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

// UPDATE and NOTIFY
// --------------------------------------------------------------------------------

Query update(const char* zone) { return {.opcode = 5, .qname = zone, .qtype = RRType::kSOA}; }
Query notify(const char* zone) { return {.opcode = 4, .qname = zone, .qtype = RRType::kSOA}; }

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
  EXPECT_EQ(ask_octets(signed_query(update("example.com."), key("update."))).rcode,
            number(Rcode::kServFail));
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

TEST_F(ResponderTest, WhoseForwardingFailedIsToldExceptForANotifyOverUdp) {
  Bytes space(512);
  ipc::Forward request;
  request.message = update("example.com.").octets();
  for (const auto kind : {ipc::ForwardKind::kUpdate, ipc::ForwardKind::kSignedQuery}) {
    request.kind = kind;
    EXPECT_GT(make_failure(request, space), 0U);
  }
  request.kind = ipc::ForwardKind::kNotify;
  request.message = notify("secondary.test.").octets();
  EXPECT_EQ(make_failure(request, space), 0U);
  request.transport = ipc::Transport::kTcp;
  const std::size_t size = make_failure(request, space);
  EXPECT_EQ(pando::testing::read_response({space.data(), size}).rcode, number(Rcode::kServFail));
}

TEST_F(ResponderTest, AServfailCanBeMadeForAnyRequest) {
  Bytes space(512);
  const Bytes request = update("example.com.").octets();
  const std::size_t size = make_servfail(request, space);
  const Response response = pando::testing::read_response({space.data(), size});
  EXPECT_EQ(response.rcode, number(Rcode::kServFail));
  EXPECT_EQ(response.header.opcode, dns::Opcode::kUpdate);
  EXPECT_EQ(response.header.id, 0x1234);
  EXPECT_EQ(make_servfail(Bytes(5), space), 0U);
}

// Hostility
// ----------------------------------------------------------------------------------------

TEST_F(ResponderTest, MutatedMessagesNeverBreakTheResponder) {
  std::mt19937 random(7);
  const std::vector<Bytes> seeds{
      Query{.edns = true, .options = option(dns::kOptionNsid, {})}.octets(),
      signed_query({}, key("query.")), signed_query(update("example.com."), key("update.")),
      Query{.qname = "example.com.", .qtype = RRType::kIXFR, .ixfr_serial = 5}.octets()};
  for (int round = 0; round < 20000; ++round) {
    Bytes message = seeds[random() % seeds.size()];
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      message[random() % message.size()] = static_cast<std::uint8_t>(random());
    if (random() % 4 == 0) message.resize(random() % message.size());
    if (random() % 2 == 0)
      use_tcp();
    else
      client_.transport = ipc::Transport::kUdp;
    now_ += round % 100 == 0;
    const Outcome outcome = handle(message);
    if (outcome.action != Action::kRespond) continue;
    ASSERT_GE(outcome.size, dns::kHeaderOctets);
    EXPECT_EQ(space_[0], message[0]);
    EXPECT_EQ(space_[1], message[1]);
    EXPECT_NE(space_[2] & 0x80, 0);
    if (client_.is_udp()) {
      EXPECT_LE(outcome.size, kUdpSpace);
    }
  }
}

}  // namespace
}  // namespace pando::worker
