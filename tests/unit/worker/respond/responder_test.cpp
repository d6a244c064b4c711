#include "worker/respond/responder.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/worker/respond/responder_fixture.h"

namespace pando::worker {
namespace responder_test {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::name;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::Response;
using testing::key;
using testing::kNow;
using testing::number;
using testing::ResponderTest;
using testing::signed_query;
using testing::update;
using testing::zones;

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

// Requests that are read together get the answers that they get alone, whatever stands beside them.
TEST_F(ResponderTest, RequestsReadTogetherAreAnsweredAsAlone) {
  const Bytes cut_short = [] {
    Bytes octets = Query{}.octets();
    octets.resize(octets.size() - 3);
    return octets;
  }();
  const std::vector<Bytes> requests = {
      Query{}.octets(),
      Query{.qname = "none.example.com.", .edns = true, .dnssec_ok = true}.octets(),
      cut_short,
      Query{.qr = true}.octets(),
      Bytes(5, 0),
      Query{.qname = "wWw.ExAmPlE.cOm.", .edns = true}.octets(),
      Query{.qname = "example.com.", .qtype = RRType::kDS}.octets(),
      Query{.qname = "a.unloaded.test."}.octets(),
      Query{.qname = "elsewhere.test."}.octets(),
      Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets(),
      update("example.com.").octets(),
      Query{.qname = "www.closed.test."}.octets(),
      Query{.qname = "version.bind.", .qtype = RRType::kTXT, .qclass = 3}.octets(),
      Query{.qname = "example.com.", .qtype = RRType::kSOA}.octets(),
      Query{.questions = 2}.octets(),
      signed_query({.qname = "www.closed.test."}, key("query.")),
  };
  ASSERT_EQ(requests.size(), Responder::kTogether);
  std::vector<Bytes> alone;
  for (const Bytes& request : requests) {
    const Outcome outcome = handle(request);
    alone.emplace_back(space_.begin(), space_.begin() + static_cast<long>(outcome.size));
  }
  responder_.read_ahead_above(0);
  for (std::size_t count = 0; count <= requests.size(); ++count) {
    std::vector<Arrival> arrivals;
    for (std::size_t i = 0; i < count; ++i) arrivals.push_back({requests[i], client_});
    responder_.begin(store_->view(), now_, manager_);
    responder_.read(arrivals);
    for (std::size_t i = 0; i < count; ++i) {
      const Outcome outcome = responder_.answer(i, space_);
      EXPECT_EQ(Bytes(space_.begin(), space_.begin() + static_cast<long>(outcome.size)), alone[i])
          << "request " << i << " of " << count;
    }
  }
}

// Keys and zones that were found for requests read together are not used for a later request.
TEST_F(ResponderTest, ARequestAloneTakesNothingFromThoseReadTogether) {
  const std::vector<Bytes> requests = {Query{}.octets(),
                                       Query{.qname = "none.example.com."}.octets()};
  responder_.read_ahead_above(0);
  responder_.begin(store_->view(), now_, manager_);
  const std::vector<Arrival> arrivals = {{requests[0], client_}, {requests[1], client_}};
  responder_.read(arrivals);
  for (std::size_t i = 0; i < arrivals.size(); ++i) responder_.answer(i, space_);
  EXPECT_EQ(ask({.qname = "elsewhere.test."}).rcode, number(Rcode::kRefused));
  EXPECT_EQ(ask({.qname = "a.unloaded.test."}).rcode, number(Rcode::kServFail));
  // A smaller group, of one request, which is not read ahead.
  const Bytes alone = Query{.qname = "ns1.example.com."}.octets();
  const std::vector<Arrival> one = {{alone, client_}};
  responder_.read(one);
  const Outcome outcome = responder_.answer(0, space_);
  EXPECT_EQ(pando::testing::read_response({space_.data(), outcome.size}).answer_text(),
            std::vector<std::string>{"ns1.example.com. A 192.0.2.1"});
}

// Answers that are cached need no lookup: a group of repeated questions is not read ahead, and gets
// the same answers.
TEST_F(ResponderTest, QuestionsThatRepeatAreAnsweredTheSame) {
  const Bytes request = Query{}.octets();
  ask_octets(request);
  const Bytes first(space_.begin(), space_.begin() + static_cast<long>(outcome_.size));
  responder_.read_ahead_above(0);
  const std::vector<Arrival> arrivals(Responder::kTogether, Arrival{request, client_});
  for (int group = 0; group < 4; ++group) {
    responder_.begin(store_->view(), now_, manager_);
    responder_.read(arrivals);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const Outcome outcome = responder_.answer(i, space_);
      ASSERT_EQ(Bytes(space_.begin(), space_.begin() + static_cast<long>(outcome.size)), first);
    }
  }
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

TEST_F(ResponderTest, NotesWhoAsksForASoaRecordOrATransfer) {
  const std::uint64_t hash = ipc::seen_hash(client_.remote.address);
  const auto& noted = (*counters_)[ipc::find_seen(*counters_, hash)];
  ask({.qname = "www.example.com."});
  EXPECT_FALSE(ipc::is_seen(noted.load(), hash));
  ask({.qname = "example.com.", .qtype = RRType::kSOA});
  const std::uint64_t first = noted.load();
  EXPECT_TRUE(ipc::is_seen(first, hash));
  ask({.qname = "example.com.", .qtype = RRType::kIXFR, .ixfr_serial = 1});
  EXPECT_TRUE(ipc::is_seen(noted.load(), hash));
  EXPECT_NE(noted.load(), first);
}

}  // namespace responder_test
}  // namespace pando::worker
