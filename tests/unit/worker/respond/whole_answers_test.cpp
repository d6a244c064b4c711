#include "worker/respond/whole_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"

namespace pando::worker {
namespace whole_answers_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::Response;
using pando::testing::TestZone;

constexpr std::uint64_t kNow = 1'700'000'000;

const char* const kZone = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ RRSIG SOA 8 1 300 20300101000000 20200101000000 1 example. AQIDBA==
@ NS ns
@ NS ns.elsewhere.test.
@ MX 10 mail
@ MX 20 mail.elsewhere.test.
@ NSEC alias SOA NS MX
@ RRSIG NSEC 8 1 300 20300101000000 20200101000000 1 example. AQIDBA==
ns A 192.0.2.1
ns AAAA 2001:db8::1
mail A 192.0.2.2
mail AAAA 2001:db8::2
mail RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
www A 192.0.2.3
alias CNAME www
chain CNAME alias
away CNAME www.elsewhere.test.
tree DNAME other
leaf.other TXT "leaf"
*.wild A 192.0.2.4
*.wild MX 5 mail
sub NS ns.sub
ns.sub A 192.0.2.5
srv SRV 1 2 53 www
long TXT "0123456789012345678901234567890123456789012345678901234567890123456789"
long TXT "1123456789012345678901234567890123456789012345678901234567890123456789"
long TXT "2123456789012345678901234567890123456789012345678901234567890123456789"
long TXT "3123456789012345678901234567890123456789012345678901234567890123456789"
long TXT "4123456789012345678901234567890123456789012345678901234567890123456789"
long TXT "5123456789012345678901234567890123456789012345678901234567890123456789"
)";

/// Many servers, whose addresses are left out of a small message.
std::string with_servers() {
  std::string text = kZone;
  for (int i = 0; i < 12; ++i) {
    const std::string host = "server-number-" + std::to_string(i);
    text += "many MX 10 " + host + "\n" + host + " A 192.0.2.9\n" + host + " AAAA 2001:db8::9\n";
  }
  return text;
}

/// A responder that remembers, and for each question another one that has nothing to remember.
class WholeAnswersTest : public ::testing::Test {
 protected:
  WholeAnswersTest() {
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
    serve(with_servers());
  }
  void serve(const std::string& zone_text, bool is_secondary = false) {
    TestZone zone{"example.", zone_text};
    zone.settings.is_secondary = is_secondary;
    store_ = std::make_unique<pando::testing::ZoneStore>(std::vector{zone}, settings_);
  }
  Bytes ask(Responder& responder, const Query& query) {
    responder.begin(store_->view(), now_, true);
    const Outcome outcome = responder.handle(query.octets(), client_, space_);
    if (outcome.action != Action::kRespond) return {};
    return {space_.begin(), space_.begin() + static_cast<std::ptrdiff_t>(outcome.size)};
  }
  Bytes ask_other(const Query& query) {
    const auto counters = std::make_unique<CounterArray>();
    Responder other(*counters, [this](std::uint32_t index) { return store_->store().side(index); });
    return ask(other, query);
  }
  Response read(const Query& query) { return pando::testing::read_response(ask(warm_, query)); }
  void expect_same(const Query& query) {
    const Bytes expected = ask_other(query);
    ASSERT_EQ(ask(warm_, query), expected) << query.qname << ' ' << query.payload;
  }
  /// Publishes a version with these changes, which may be none.
  void update(const zone::Changeset& changes) { store_->apply(changes); }
  std::uint64_t count(ipc::Counter counter) const {
    return (*counters_)[ipc::counter_index(counter)].load();
  }

  zone::ServerSettings settings_;
  std::unique_ptr<pando::testing::ZoneStore> store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder warm_{*counters_, [this](std::uint32_t index) { return store_->store().side(index); }};
  Client client_;
  std::uint64_t now_ = kNow;
  Bytes space_ = Bytes(65535);
};

TEST_F(WholeAnswersTest, RepeatedAnswersAreWhatWouldBeWorkedOut) {
  std::mt19937_64 random(20261126);
  const char* const owners[] = {"",      "www.",    "WWW.",    "mail.",      "alias.",  "chain.",
                                "away.", "a.tree.", "A.tree.", "leaf.tree.", "x.wild.", "y.x.wild.",
                                "sub.",  "w.sub.",  "srv.",    "long.",      "many.",   "other.",
                                "ns.",   "no.",     "a.no.",   "b.wild."};
  const RRType types[] = {RRType::kA,   RRType::kAAAA, RRType::kMX,  RRType::kNS,   RRType::kTXT,
                          RRType::kSOA, RRType::kANY,  RRType::kSRV, RRType::kCNAME};
  const std::uint16_t payloads[] = {512, 540, 700, 1232, 4096};
  for (int i = 0; i < 8000; ++i) {
    Query query;
    query.id = static_cast<std::uint16_t>(random());
    query.rd = random() % 2 == 0;
    query.cd = random() % 2 == 0;
    query.qname = std::string(owners[random() % std::size(owners)]) + "example.";
    query.qtype = types[random() % std::size(types)];
    query.qclass = random() % 16 == 0 ? 255 : 1;
    query.edns = random() % 4 != 0;
    query.dnssec_ok = query.edns && random() % 2 == 0;
    query.payload = payloads[random() % std::size(payloads)];
    if (query.edns && random() % 8 == 0)  // ZONEVERSION and EXPIRE tell of the zone
      query.options = pando::testing::option(random() % 2 == 0 ? 19 : 9, {});
    client_.transport = random() % 4 == 0 ? ipc::Transport::kTcp : ipc::Transport::kUdp;
    expect_same(query);
    if (HasFailure()) FAIL() << "question " << i;
  }
}

TEST_F(WholeAnswersTest, AChangeOfTheZoneIsSeenAtOnce) {
  const Query query{.qname = "www.example."};
  for (int i = 0; i < 4; ++i) read(query);
  zone::Changeset changes;
  changes.zone = name("example.");
  changes.removed = {{name("www.example."), RRType::kA, dns::Ttl{300}, {192, 0, 2, 3}}};
  changes.added = {{name("www.example."), RRType::kA, dns::Ttl{300}, {192, 0, 2, 99}}};
  update(changes);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(read(query).answer_text(), std::vector<std::string>{"www.example. A 192.0.2.99"});
}

TEST_F(WholeAnswersTest, AZoneThatHasExpiredGivesNoCachedAnswer) {
  serve(kZone, true);
  const Query query{.qname = "www.example."};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read(query).rcode, 0);
  store_->store().side(0)->expires_at.store(kNow + 1);
  EXPECT_EQ(read(query).rcode, 0);
  now_ = kNow + 2;
  EXPECT_EQ(read(query).rcode, 2);
}

TEST_F(WholeAnswersTest, RepeatedAnswersAreCountedAndLimited) {
  settings_.rate_limit.responses = 5;
  settings_.rate_limit.slip = 2;
  serve(kZone);
  const Query query{.qname = "x.wild.example."};
  int whole = 0, truncated = 0, dropped = 0;
  for (int i = 0; i < 25; ++i) {
    const Bytes response = ask(warm_, query);
    if (response.empty())
      ++dropped;
    else
      ++(pando::testing::read_response(response).header.tc ? truncated : whole);
  }
  EXPECT_EQ(whole, 5);
  EXPECT_EQ(truncated, 10);
  EXPECT_EQ(dropped, 10);
  EXPECT_EQ(count(ipc::Counter::kRateLimited), 20U);
  EXPECT_EQ(count(ipc::Counter::kRateSlipped), 10U);
  EXPECT_EQ(count(ipc::Counter::kDropped), 10U);
  EXPECT_TRUE(ask(warm_, {.qname = "y.wild.example."}).empty() ||
              count(ipc::Counter::kRateLimited) == 21U)
      << "all names of a wildcard count as one";
}

TEST_F(WholeAnswersTest, AnAnswerOutlivesVersionsThatChangeOtherZones) {
  store_ = std::make_unique<pando::testing::ZoneStore>(
      std::vector{TestZone{"example.", kZone},
                  TestZone{"other.test.", "$TTL 300\n@ SOA ns admin 1 1 1 1 1\n@ NS ns\n"}},
      settings_);
  const Query query{.qname = "x.sub.example."};
  for (int i = 0; i < 3; ++i) expect_same(query);
  zone::Changeset changes;
  changes.zone = name("other.test.");
  for (std::uint8_t i = 1; i < 5; ++i) {
    changes.added = {{name("other.test."), RRType::kA, dns::Ttl{300}, {192, 0, 2, i}}};
    update(changes);
    expect_same(query);
    expect_same({.qname = "other.test."});
  }
}

TEST_F(WholeAnswersTest, AZoneBelowTakesItsNamesFromTheZoneAbove) {
  const Query query{.qname = "host.sub.example."};
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(read(query).header.aa) << "a referral";
  store_->add({"sub.example.", "$TTL 300\n@ SOA ns admin 1 1 1 1 1\n@ NS ns\nhost A 192.0.2.77\n"});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(read(query).answer_text(),
              std::vector<std::string>{"host.sub.example. A 192.0.2.77"});
}

class WholeAnswersTable : public ::testing::Test {
 protected:
  static WholeAnswers::Key key_of(const dns::Name& owner) {
    return {owner.view(), RRType::kA, 1232, false, false};
  }
  WholeAnswers::Answered answered(std::uint16_t only_room = 0) const {
    WholeAnswers::Answered result;
    result.zone = store_.view().zone_at(name("example."));
    result.version = store_.view().version();
    result.records = records_;
    result.only_room = only_room;
    return result;
  }

  pando::testing::ZoneStore store_{std::vector{TestZone{"example.", kZone}}, {}};
  Bytes records_ = Bytes(100, 7);
  WholeAnswers table_;
  dns::Name owner_ = name("www.example.");
  WholeAnswers::Key key_ = key_of(owner_);
  AnswerPlace place_ = WholeAnswers::place_of(key_);
};

TEST_F(WholeAnswersTable, AQuestionIsWantedAtItsSecondMiss) {
  EXPECT_FALSE(table_.find(key_, place_));
  EXPECT_FALSE(table_.wants(place_));
  EXPECT_TRUE(table_.wants(place_));
}

TEST_F(WholeAnswersTable, KeysThatDifferInOnePartHaveAnswersOfTheirOwn) {
  table_.insert(key_, place_, answered());
  ASSERT_TRUE(table_.find(key_, place_));
  EXPECT_TRUE(std::ranges::equal(table_.find(key_, place_)->records(), records_));
  const dns::Name capitals = name("WWW.example.");
  std::vector<WholeAnswers::Key> others(5, key_);
  others[0].name = capitals.view();
  others[1].type = RRType::kAAAA;
  others[2].limit = 512;
  others[3].dnssec_ok = true;
  others[4].minimal_responses = true;
  for (const WholeAnswers::Key& other : others)
    EXPECT_FALSE(table_.find(other, place_)) << "even at its place";
}

TEST_F(WholeAnswersTable, AnAnswerThatLackedRoomSuitsThisRoomAlone) {
  table_.insert(key_, place_, answered());
  EXPECT_FALSE(table_.find(key_, place_)->suits(99));
  EXPECT_TRUE(table_.find(key_, place_)->suits(100));
  EXPECT_TRUE(table_.find(key_, place_)->suits(1000));
  WholeAnswers crowded;
  crowded.insert(key_, place_, answered(120));
  EXPECT_FALSE(crowded.find(key_, place_)->suits(119));
  EXPECT_TRUE(crowded.find(key_, place_)->suits(120));
  EXPECT_FALSE(crowded.find(key_, place_)->suits(121));
}

TEST_F(WholeAnswersTable, AnotherVersionNeedsTheSameDataOfTheZone) {
  table_.insert(key_, place_, answered());
  const auto zone = answered().zone;
  ASSERT_TRUE(table_.renew(*table_.find(key_, place_), place_, zone, 77));
  EXPECT_EQ(table_.find(key_, place_)->version, 77U);
  EXPECT_FALSE(table_.renew(*table_.find(key_, place_), place_, {}, 78)) << "no zone answers now";
  EXPECT_FALSE(table_.find(key_, place_));
  EXPECT_FALSE(table_.wants(place_)) << "its place is free for its next answer";
  EXPECT_TRUE(table_.wants(place_));
}

TEST_F(WholeAnswersTable, MemoryIsBounded) {
  for (int i = 0; i < 40000; ++i) {
    const dns::Name owner = name(std::string(60, 'a') + "." + std::to_string(i) + ".example.");
    const WholeAnswers::Key key = key_of(owner);
    const auto place = WholeAnswers::place_of(key);
    table_.insert(key, place, answered());
    ASSERT_LE(table_.bytes(), WholeAnswers::kMaxBytes);
    ASSERT_TRUE(table_.find(key, place));
  }
}

}  // namespace whole_answers_test
}  // namespace pando::worker
