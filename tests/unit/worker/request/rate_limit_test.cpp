#include "worker/request/rate_limit.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"

namespace pando::worker {
namespace rate_limit_test {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::TestZone;
using Verdict = RateLimiter::Verdict;

constexpr std::uint64_t kNow = 1'700'000'000;

IpAddress address(const char* text) { return IpAddress::from_text(text).value(); }

zone::RateLimit limit(std::uint32_t responses, std::uint32_t slip = 2,
                      std::uint32_t ipv4_prefix = 24) {
  zone::RateLimit rules;
  rules.responses = responses;
  rules.slip = slip;
  rules.ipv4_prefix = ipv4_prefix;
  return rules;
}

/// `count` responses in a row; how many came to each verdict.
std::map<Verdict, int> judge(RateLimiter& limiter, const zone::RateLimit& rules, const char* client,
                             const ResponseKind& kind, int count, std::uint64_t now = kNow) {
  std::map<Verdict, int> verdicts;
  for (int i = 0; i < count; ++i) ++verdicts[limiter.judge(rules, address(client), kind, now)];
  return verdicts;
}

const Bytes kOwner{3, 'w', 'w', 'w'};
const Bytes kOtherOwner{2, 'n', 's'};
const ResponseKind kKind{ResponseClass::kAnswer, 1, kOwner, RRType::kA};

TEST(RateLimiter, SendsUpToTheLimitAndSlipsEachNth) {
  RateLimiter limiter(1);
  auto verdicts = judge(limiter, limit(10, 3), "192.0.2.1", kKind, 40);
  EXPECT_EQ(verdicts[Verdict::kSend], 10);
  EXPECT_EQ(verdicts[Verdict::kSlip], 10);
  EXPECT_EQ(verdicts[Verdict::kDrop], 20);
}

TEST(RateLimiter, SlipOneTruncatesAllAndZeroDropsAll) {
  RateLimiter limiter(1);
  EXPECT_EQ(judge(limiter, limit(5, 1), "192.0.2.1", kKind, 9)[Verdict::kSlip], 4);
  EXPECT_EQ(judge(limiter, limit(5, 0), "192.0.3.1", kKind, 9)[Verdict::kDrop], 4);
}

TEST(RateLimiter, BeginsAnewWithEachSecond) {
  RateLimiter limiter(1);
  const zone::RateLimit rules = limit(5);
  for (std::uint64_t second = 0; second < 3; ++second)
    EXPECT_EQ(judge(limiter, rules, "192.0.2.1", kKind, 9, kNow + second)[Verdict::kSend], 5);
}

TEST(RateLimiter, APrefixIsOneClientOthersAreNot) {
  RateLimiter limiter(1);
  const zone::RateLimit rules = limit(5, 0);
  EXPECT_EQ(judge(limiter, rules, "192.0.2.1", kKind, 5)[Verdict::kSend], 5);
  EXPECT_EQ(judge(limiter, rules, "192.0.2.254", kKind, 1)[Verdict::kDrop], 1);
  EXPECT_EQ(judge(limiter, rules, "192.0.3.1", kKind, 1)[Verdict::kSend], 1);
  EXPECT_EQ(judge(limiter, rules, "2001:db8:0:100::1", kKind, 5)[Verdict::kSend], 5);
  EXPECT_EQ(judge(limiter, rules, "2001:db8:0:1ff::2", kKind, 1)[Verdict::kDrop], 1);
  EXPECT_EQ(judge(limiter, rules, "2001:db8:0:200::1", kKind, 1)[Verdict::kSend], 1);
}

TEST(RateLimiter, KindsAreCountedApart) {
  RateLimiter limiter(1);
  const zone::RateLimit rules = limit(5, 0);
  EXPECT_EQ(judge(limiter, rules, "192.0.2.1", kKind, 6)[Verdict::kDrop], 1);
  const ResponseKind others[] = {{ResponseClass::kNameError, 1, kOwner, RRType::kA},
                                 {ResponseClass::kAnswer, 2, kOwner, RRType::kA},
                                 {ResponseClass::kAnswer, 1, kOtherOwner, RRType::kA},
                                 {ResponseClass::kAnswer, 1, kOwner, RRType::kAAAA}};
  for (const ResponseKind& other : others)
    EXPECT_EQ(judge(limiter, rules, "192.0.2.1", other, 5)[Verdict::kSend], 5);
}

TEST(RateLimiter, MoreClientsThanItHoldsDoNotFreeTheOnesOverTheLimit) {
  RateLimiter limiter(7);
  const zone::RateLimit rules = limit(5, 0, 32);
  judge(limiter, rules, "192.0.2.1", kKind, 100);
  for (std::uint32_t i = 0; i < 4 * RateLimiter::kSets * RateLimiter::kWays; ++i) {
    IpAddress other = address("10.0.0.0");
    store_be32(other.octets.data() + 12, 0x0A000000 + i);
    EXPECT_EQ(limiter.judge(rules, other, kKind, kNow), Verdict::kSend);
  }
  EXPECT_EQ(judge(limiter, rules, "192.0.2.1", kKind, 1)[Verdict::kDrop], 1);
}

const char* const kZone = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.80
*.wild A 192.0.2.81
sub NS ns.elsewhere.test.
)";

const char* const kSignedZone = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ NS ns1
@ NSEC ns1 NS SOA NSEC
ns1 A 192.0.2.1
ns1 NSEC *.wild A NSEC
*.wild CNAME nowhere
*.wild NSEC f.wild CNAME NSEC
f.wild A 192.0.2.2
f.wild NSEC p.wild A NSEC
p.wild A 192.0.2.3
p.wild NSEC @ A NSEC
)";

/// A responder that sends three responses of a kind per second.
class LimitedResponderTest : public ::testing::Test {
 protected:
  LimitedResponderTest() {
    zone::ServerSettings settings;
    settings.identity = "ns1";
    settings.rate_limit = {.responses = 3, .slip = 2, .exempt = {}};
    settings.rate_limit.exempt = {*IpPrefix::from_text("198.51.100.0/24")};
    store_ = std::make_unique<pando::testing::ZoneStore>(
        std::vector{TestZone{"example.com.", kZone}, TestZone{"signed.test.", kSignedZone}},
        settings);
    ipc::Keys keys;
    keys.cookie_secrets = {ipc::CookieSecret{1, 2, 3}};
    keys.shared = {signing_key()};
    responder_.set_keys(make_key_set(std::move(keys)));
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }
  static dns::TsigKey signing_key() {
    return {pando::testing::name("query."), dns::TsigAlgorithm::kSha256, Bytes(32, 0x42)};
  }
  Outcome ask(const Query& query) { return ask(query.octets()); }
  Outcome ask(const Bytes& message) {
    message_ = message;
    responder_.begin(store_->view(), kNow, true);
    return responder_.handle(message_, client_, space_);
  }
  Outcome ask_signed(const Query& query) {
    dns::TsigKeyring ring;
    EXPECT_TRUE(ring.add(signing_key()));
    auto session = dns::TsigSession::for_request(*ring.find(pando::testing::name("query.")));
    Bytes message = query.octets();
    EXPECT_TRUE(session.sign(message, kNow));
    if (spoils_signature_) message[2] ^= 1;  // RD, which the signature covers
    return ask(message);
  }
  /// How many of `count` such questions are answered in full; `make` gets the number of each.
  int answered(int count, const std::function<Query(int)>& make) {
    int full = 0;
    for (int i = 0; i < count; ++i) {
      const Outcome outcome = ask(make(i));
      if (outcome.action != Action::kRespond) continue;
      const auto response = pando::testing::read_response({space_.data(), outcome.size});
      if (response.header.tc) {
        EXPECT_TRUE(response.answer.empty());
        ++slipped_;
      } else {
        ++full;
      }
    }
    return full;
  }
  std::uint64_t count(Counter counter) const {
    return (*counters_)[ipc::counter_index(counter)].load();
  }

  std::unique_ptr<pando::testing::ZoneStore> store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder responder_{*counters_,
                       [this](std::uint32_t index) { return store_->store().side(index); }};
  Client client_;
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
  int slipped_ = 0;
  Bytes message_;
  bool spoils_signature_ = false;
};

TEST_F(LimitedResponderTest, LimitsOneAnswerAndCounts) {
  EXPECT_EQ(answered(9, [](int) { return Query{}; }), 3);
  EXPECT_EQ(slipped_, 3);
  EXPECT_EQ(count(Counter::kRateLimited), 6U);
  EXPECT_EQ(count(Counter::kRateSlipped), 3U);
  EXPECT_EQ(count(Counter::kDropped), 3U);
  EXPECT_EQ(answered(3, [](int) { return Query{.qname = "ns1.example.com."}; }), 3)
      << "another answer";
}

TEST_F(LimitedResponderTest, ChangedNamesAreNoWayAround) {
  const auto numbered = [](const char* below) {
    return [below](int i) { return Query{.qname = "n" + std::to_string(i) + below}; };
  };
  EXPECT_EQ(answered(9, numbered(".example.com.")), 3) << "NXDOMAIN";
  EXPECT_EQ(answered(9, numbered(".wild.example.com.")), 3) << "wildcard";
  EXPECT_EQ(answered(9, numbered(".sub.example.com.")), 3) << "referral";
}

TEST_F(LimitedResponderTest, AnAliasToNowhereIsOneKindWhateverProvesItsWildcard) {
  const char* const names[] = {"a.wild.signed.test.", "k.wild.signed.test.", "x.wild.signed.test."};
  const auto make = [&](int i) {
    return Query{.qname = names[i % 3], .edns = true, .dnssec_ok = true};
  };
  EXPECT_EQ(answered(9, make), 3);
}

TEST_F(LimitedResponderTest, UpdatesOpenNoNewAccounts) {
  const auto update = [&](int i) {
    auto transaction = store_->store().begin();
    const auto current = store_->store().current();
    zone::Draft draft(transaction, current.root, current.number + 1);
    zone::Changeset changes;
    changes.zone = pando::testing::name("example.com.");
    const auto last = static_cast<std::uint8_t>(i + 1);
    changes.added = {{pando::testing::name("www.example.com."),
                      RRType::kA,
                      dns::Ttl{300},
                      {198, 51, 100, last}}};
    ASSERT_TRUE(draft.apply(changes, {}));
    const auto root = draft.root();
    ASSERT_TRUE(store_->store().publish(std::move(transaction), root, 0));
  };
  for (const char* qname : {"no.example.com.", "www.example.com."}) {
    int full = 0;
    for (int i = 0; i < 9; ++i) {
      update(i);
      full += answered(1, [&](int) { return Query{.qname = qname}; });
    }
    EXPECT_EQ(full, 3) << qname;
  }
}

TEST_F(LimitedResponderTest, AnswersWithoutDataAreOneKind) {
  const RRType types[] = {RRType::kMX, RRType::kTXT, RRType::kAAAA, RRType::kSRV};
  EXPECT_EQ(answered(8, [&](int i) { return Query{.qtype = types[i % 4]}; }), 3);
}

TEST_F(LimitedResponderTest, ExemptAddressesAreNotLimited) {
  client_.remote = Endpoint::from_text("198.51.100.9@4711").value();
  EXPECT_EQ(answered(9, [](int) { return Query{}; }), 9);
}

TEST_F(LimitedResponderTest, TcpIsNotLimited) {
  client_.transport = ipc::Transport::kTcp;
  EXPECT_EQ(answered(9, [](int) { return Query{}; }), 9);
}

TEST_F(LimitedResponderTest, AValidCookieIsNotLimited) {
  const Bytes client_cookie{1, 2, 3, 4, 5, 6, 7, 8};
  const Outcome first = ask({.edns = true, .options = option(dns::kOptionCookie, client_cookie)});
  const auto response = pando::testing::read_response({space_.data(), first.size});
  const auto found = dns::find_option(response.edns->options, dns::kOptionCookie);
  ASSERT_TRUE(found);
  const Bytes cookie(found->begin(), found->end());
  const auto with = [](const Bytes& shown) {
    return
        [shown](int) { return Query{.edns = true, .options = option(dns::kOptionCookie, shown)}; };
  };
  EXPECT_EQ(answered(9, with(cookie)), 9);
  EXPECT_EQ(answered(9, with(client_cookie)), 2) << "one of three was used up";
}

/// REFUSED, FORMERR, NOTIMP, NOTAUTH: whatever was asked, and of whichever zone.
TEST_F(LimitedResponderTest, ErrorsOfAllKindsAreOneAccount) {
  const std::vector<std::function<Query(int)>> kinds = {
      [](int i) { return Query{.qname = "n" + std::to_string(i) + ".elsewhere."}; },
      [](int) { return Query{.questions = 2}; },
      [](int) { return Query{.opcode = 2}; },
      [](int) { return Query{.opcode = 5, .qname = "example.com.", .qtype = RRType::kSOA}; },
      [](int i) {
        return Query{.opcode = 4, .qname = "n" + std::to_string(i) + ".", .qtype = RRType::kSOA};
      },
      [](int) { return Query{.qname = "example.com.", .qtype = RRType::kAXFR}; },
      [](int) { return Query{.qname = "version.bind.", .qtype = RRType::kTXT, .qclass = 3}; },
      [](int) { return Query{.qname = "example.com.", .qclass = 7}; }};
  int full = 0;
  for (const auto& kind : kinds) full += answered(3, kind);
  EXPECT_EQ(full, 3);
  EXPECT_EQ(count(Counter::kRateLimited), 3 * kinds.size() - 3);
  EXPECT_EQ(static_cast<std::size_t>(slipped_), count(Counter::kRateSlipped));
  EXPECT_EQ(answered(3, [](int) { return Query{}; }), 3) << "answers are another account";
}

/// Of class CHAOS; the spelling of a name opens no account.
TEST_F(LimitedResponderTest, AnswersWithoutAZoneAreLimited) {
  const char* const names[] = {"id.server.", "ID.server.", "id.SERVER."};
  EXPECT_EQ(answered(9,
                     [&](int i) {
                       return Query{.qname = names[i % 3], .qtype = RRType::kTXT, .qclass = 3};
                     }),
            3);
}

TEST_F(LimitedResponderTest, AValidSignatureIsNotLimitedAndAWrongOneIs) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(ask_signed({}).action, Action::kRespond);
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(ask_signed({.qname = "elsewhere."}).action, Action::kRespond);
  spoils_signature_ = true;
  int sent = 0;
  for (int i = 0; i < 9; ++i) sent += ask_signed({}).action == Action::kRespond ? 1 : 0;
  EXPECT_EQ(sent, 6) << "three, and each second one of the others";
}

TEST_F(LimitedResponderTest, RepliesOfTheManagerAreLimited) {
  static_cast<void>(ask(Query{.opcode = 5, .qname = "example.com.", .qtype = RRType::kSOA}));
  const auto sent = [&](const ReplyLimit& limit, dns::Rcode rcode) {
    int replies = 0;
    for (int i = 0; i < 9; ++i) {
      Bytes reply(dns::kHeaderOctets);
      reply[3] = static_cast<std::uint8_t>(rcode);
      if (!responder_.sends_reply(limit, reply)) continue;
      constexpr std::uint8_t kTc = 0x02;
      if ((reply[2] & kTc) == 0) ++replies;
    }
    return replies;
  };
  ReplyLimit limit = responder_.reply_limit();
  ASSERT_TRUE(limit.client);
  EXPECT_EQ(sent(limit, dns::Rcode::kNoError), 3);
  EXPECT_EQ(sent(limit, dns::Rcode::kRefused), 2) << "the request of above has had one error";
  limit.is_signed = true;
  EXPECT_EQ(sent(limit, dns::Rcode::kRefused), 9) << "the manager has found the signature right";
  EXPECT_EQ(sent(limit, dns::Rcode::kNotAuth), 0) << "it has found it wrong";
  EXPECT_EQ(sent(limit, dns::Rcode::kServFail), 0) << "nobody has checked it";
  client_.remote = Endpoint::from_text("198.51.100.9@4711").value();
  static_cast<void>(ask(Query{}));
  EXPECT_FALSE(responder_.reply_limit().client) << "an exempt client";
}

}  // namespace rate_limit_test
}  // namespace pando::worker
