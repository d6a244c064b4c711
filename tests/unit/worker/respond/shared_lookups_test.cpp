#include "worker/respond/shared_lookups.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"

namespace pando::worker {
namespace shared_lookups_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::TestZone;
using Kind = AnswerTemplates::Kind;

constexpr std::uint64_t kNow = 1'700'000'000;
constexpr std::uint64_t kVersion = 7;

/// The tag of the part that is cached for the name; 0: nothing is cached.
int part_at(SharedLookups& table, const SharedLookups::Key& key, std::uint64_t version = kVersion) {
  const SharedLookups::Result* const found = table.find(SharedLookups::Sought(key), version);
  return found == nullptr ? 0 : found->part.tag;
}

bool insert(SharedLookups& table, const SharedLookups::Key& key, int part,
            Kind kind = Kind::kReferral) {
  const SharedLookups::Sought sought(key);
  if (!table.wants(sought, kind)) return false;
  table.insert(sought, kVersion, {{}, {1, static_cast<std::uint16_t>(part)}, kind});
  return true;
}

TEST(SharedLookups, AreFoundInAnySpelling) {
  SharedLookups table;
  const dns::Name cut = name("com.");
  const dns::Name spelled = name("cOm.");
  EXPECT_EQ(table.labels(), 0U);
  EXPECT_EQ(part_at(table, {cut, false, false}), 0);
  EXPECT_TRUE(insert(table, {cut, false, false}, 5));
  EXPECT_EQ(table.labels(), 1U);
  EXPECT_EQ(part_at(table, {cut, false, false}), 5);
  EXPECT_EQ(part_at(table, {spelled, false, false}), 5);
}

TEST(SharedLookups, ServeTheSameKeyInTheSameVersion) {
  SharedLookups table;
  const dns::Name cut = name("com.");
  const dns::Name other = name("net.");
  insert(table, {cut, false, true}, 5);
  EXPECT_EQ(part_at(table, {other, false, true}), 0);
  EXPECT_EQ(part_at(table, {cut, true, true}), 0);
  EXPECT_EQ(part_at(table, {cut, false, false}), 0);
  EXPECT_EQ(part_at(table, {cut, false, true}, kVersion + 1), 0);
  EXPECT_EQ(part_at(table, {cut, false, true}, kVersion), 5);
}

TEST(SharedLookups, ANameThatDoesNotExistIsCachedWhenItIsMissedTwice) {
  SharedLookups table;
  const dns::Name absent = name("local.");
  EXPECT_FALSE(insert(table, {absent, false, false}, 5, Kind::kNameError));
  EXPECT_TRUE(insert(table, {absent, false, false}, 5, Kind::kNameError));
  EXPECT_EQ(part_at(table, {absent, false, false}), 5);
}

TEST(SharedLookups, LongNamesAreNotCached) {
  SharedLookups table;
  const dns::Name longest = name(std::string(34, 'a') + ".");  // 36 octets
  const dns::Name longer = name(std::string(35, 'a') + ".");
  EXPECT_TRUE(insert(table, {longest, false, false}, 5));
  EXPECT_EQ(part_at(table, {longest, false, false}), 5);
  EXPECT_FALSE(insert(table, {longer, false, false}, 6));
  EXPECT_EQ(part_at(table, {longer, false, false}), 0);
}

TEST(SharedLookups, ARoundWithFewOfThemIsFollowedByAPause) {
  SharedLookups table;
  const dns::Name cut = name("com.");
  insert(table, {cut, false, false}, 5);
  const auto round = [&](int found) {
    for (int i = 0; i < found; ++i) part_at(table, {cut, false, false});
    for (int names = 0; names < 256; names += 16)
      if (!table.begin(16)) return false;
    return true;
  };
  EXPECT_TRUE(round(32));
  EXPECT_TRUE(round(256));
  EXPECT_TRUE(round(31));
  int paused = 0;
  while (!table.begin(16)) paused += 16;
  EXPECT_EQ(paused, 4096);
}

constexpr const char* kZone = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
cut NS ns.cut
ns.cut A 192.0.2.2
shared NS ns.cut
moved DNAME ns
deep.er A 192.0.2.3
)";

constexpr const char* kWild = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ NS ns
* A 192.0.2.7
)";

constexpr const char* kBelow = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ NS ns
www A 192.0.2.80
)";

/// A worker that reads requests together, and one zone below a delegation of another one.
class RecalledLookups : public ::testing::Test {
 protected:
  RecalledLookups() {
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
    responder_.read_ahead_above(0);
  }
  /// Whether the lookup of the question is recalled; its answer goes to `space_`.
  bool is_recalled(const Query& query) {
    const Bytes request = query.octets();
    const Bytes other = Query{.qname = "nowhere."}.octets();
    const std::vector<Arrival> arrivals = {{request, client_}, {other, client_}};
    responder_.begin(store_.view(), kNow, true);
    responder_.read(arrivals);
    size_ = responder_.answer(0, space_).size;
    const Foreseen* const foreseen = responder_.last().foreseen;
    return foreseen != nullptr && foreseen->is_recalled;
  }
  bool is_recalled(const char* qname) { return is_recalled(Query{.qname = qname}); }
  /// Asks until the lookup of a name that does not exist is cached.
  void ask_often(const char* qname) {
    for (int i = 0; i < 3; ++i) is_recalled(qname);
  }
  pando::testing::Response response() {
    return pando::testing::read_response({space_.data(), size_});
  }
  void update() {
    zone::Changeset changes;
    changes.zone = name("below.shared.example.");
    changes.added = {
        {name("new.below.shared.example."), RRType::kA, dns::Ttl{300}, {192, 0, 2, 9}}};
    store_.apply(changes);
  }

  static TestZone with(const char* apex, const zone::ZoneSettings& settings) {
    TestZone zone{apex, kZone};
    zone.settings = settings;
    return zone;
  }
  static zone::ZoneSettings one_client() {
    zone::ZoneSettings settings;
    settings.allow_query = {pando::testing::allow_address("192.0.2.7/32")};
    return settings;
  }
  static zone::ZoneSettings secondary() {
    zone::ZoneSettings settings = TestZone{}.settings;
    settings.is_secondary = true;
    return settings;
  }

  pando::testing::ZoneStore store_{std::vector<TestZone>{{"example.", kZone},
                                                         {"below.shared.example.", kBelow},
                                                         with("closed.", one_client()),
                                                         with("secondary.", secondary()),
                                                         {"wild.", kWild}}};
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder responder_{*counters_,
                       [this](std::uint32_t index) { return store_.store().side(index); }};
  Client client_;
  Bytes space_ = Bytes(65535);
  std::size_t size_ = 0;
};

TEST_F(RecalledLookups, OfAllNamesBelowADelegation) {
  EXPECT_FALSE(is_recalled("www.cut.example."));
  EXPECT_TRUE(is_recalled("a.b.CUT.example."));
  EXPECT_EQ(response().authority.size(), 1U);
  EXPECT_EQ(response().additional.size(), 1U);
  EXPECT_TRUE(is_recalled({.qname = "x.cut.example.", .qtype = RRType::kDS}));
  EXPECT_FALSE(is_recalled({.qname = "x.cut.example.", .edns = true, .dnssec_ok = true}));
  EXPECT_FALSE(is_recalled({.qname = "x.cut.example.", .qclass = 255}));
}

TEST_F(RecalledLookups, OfTheDelegationItselfButForDs) {
  EXPECT_FALSE(is_recalled("x.cut.example."));
  EXPECT_FALSE(is_recalled("cut.example."));
  EXPECT_TRUE(is_recalled({.qname = "cut.example.", .qtype = RRType::kNS}));
  EXPECT_FALSE(is_recalled({.qname = "cut.example.", .qtype = RRType::kDS}));
  EXPECT_TRUE(response().header.aa);
  EXPECT_FALSE(is_recalled({.qname = "cut.example.", .qtype = RRType::kDS}));
}

TEST_F(RecalledLookups, OfNamesThatDoNotExist) {
  ask_often("a.absent.example.");
  EXPECT_TRUE(is_recalled("b.absent.example."));
  EXPECT_EQ(response().rcode, 3);
  EXPECT_TRUE(response().header.aa);
  EXPECT_FALSE(is_recalled("absent.example.")) << "the name itself, which was not asked for";
}

TEST_F(RecalledLookups, NotOfNamesThatDependOnMore) {
  for (const char* const qname :
       {"ns.example.", "x.moved.example.", "er.example.", "deep.er.example.", "y.er.example.",
        "example.", "x.ns.example."}) {
    ask_often(qname);
    EXPECT_FALSE(is_recalled(qname)) << qname;
  }
}

TEST_F(RecalledLookups, NotWhenAZoneIsBelow) {
  ask_often("x.shared.example.");
  EXPECT_FALSE(is_recalled("x.shared.example."));
  EXPECT_FALSE(is_recalled("www.below.shared.example."));
  EXPECT_EQ(response().answer.size(), 1U);
}

TEST_F(RecalledLookups, ObeyTheRulesOfTheirZone) {
  is_recalled("www.cut.closed.");
  EXPECT_TRUE(is_recalled("www.cut.closed."));
  EXPECT_EQ(response().rcode, 0);
  client_.remote = Endpoint::from_text("192.0.2.8@4711").value();
  EXPECT_TRUE(is_recalled("www.cut.closed."));
  EXPECT_EQ(response().rcode, 5);
}

TEST_F(RecalledLookups, ObeyTheExpiryOfTheirZone) {
  const zone::ZoneView zone = store_.view().zone_at(name("secondary."));
  auto& expires_at = store_.store().side(zone.side_index())->expires_at;
  expires_at.store(kNow + 1);
  is_recalled("www.cut.secondary.");
  EXPECT_TRUE(is_recalled("www.cut.secondary."));
  EXPECT_EQ(response().rcode, 0);
  expires_at.store(kNow);
  EXPECT_TRUE(is_recalled("www.cut.secondary."));
  EXPECT_EQ(response().rcode, 2);
}

TEST_F(RecalledLookups, NotOfNamesWhoseAnswersHaveNoTemplate) {
  ask_often("a.absent.wild.");
  EXPECT_FALSE(is_recalled("b.absent.wild."));
  EXPECT_EQ(response().answer.size(), 1U);
}

TEST_F(RecalledLookups, EndWithTheVersionOfTheStore) {
  is_recalled("www.cut.example.");
  EXPECT_TRUE(is_recalled("www.cut.example."));
  update();
  EXPECT_FALSE(is_recalled("www.cut.example."));
  EXPECT_TRUE(is_recalled("www.cut.example."));
}

}  // namespace shared_lookups_test
}  // namespace pando::worker
