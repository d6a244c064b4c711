#include "worker/respond/foreseen.h"

#include <gtest/gtest.h>

#include <random>
#include <span>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"

namespace pando::worker {
namespace foreseen_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::TestZone;

constexpr std::uint64_t kNow = 1'700'000'000;

TEST(Foreseen, APlaceIsThatOfOneKindAndOneNameOfTheQuestion) {
  const dns::Name question = name("www.sub.example.");
  const dns::Name same_text = name("sub.example.");
  Foreseen foreseen;
  foreseen.part_kind = AnswerTemplates::Kind::kReferral;
  foreseen.part_name = question.view().parent();
  EXPECT_FALSE(foreseen.is_part(foreseen.part_kind, foreseen.part_name)) << "there is none";
  foreseen.has_part = true;
  EXPECT_TRUE(foreseen.is_part(foreseen.part_kind, foreseen.part_name));
  EXPECT_FALSE(foreseen.is_part(AnswerTemplates::Kind::kNameError, foreseen.part_name));
  EXPECT_FALSE(foreseen.is_part(foreseen.part_kind, question.view()));
  EXPECT_FALSE(foreseen.is_part(foreseen.part_kind, same_text.view()));
  EXPECT_FALSE(
      foreseen.is_part(foreseen.part_kind, {foreseen.part_name.data(), question.view().size()}));
}

/// A signed zone with delegations, addresses of servers between its names, a DNAME and a wildcard.
/// One delegation is of a zone that this server has, too.
constexpr const char* kParent = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ RRSIG SOA 8 1 300 20300101000000 20200101000000 1 example. AQIDBA==
@ NS ns
@ NSEC cut SOA NS
@ RRSIG NSEC 8 1 300 20300101000000 20200101000000 1 example. AQIDBA==
cut NS ns.a.cut
cut NS ns
cut NSEC deep.er NS
cut RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
ns.a.cut A 192.0.2.53
deep.er A 192.0.2.1
deep.er NSEC moved A
deep.er RRSIG NSEC 8 3 300 20300101000000 20200101000000 1 example. AQIDBA==
moved DNAME deep.er
moved NSEC ns DNAME
moved RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
ns A 192.0.2.1
ns NSEC sub A
ns RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
sub NS ns.sub
sub DS 1 8 2 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
sub NSEC *.wild NS DS
sub RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
ns.sub A 192.0.2.54
*.wild A 192.0.2.2
*.wild NSEC @ A
*.wild RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
)";

constexpr const char* kChild = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.54
www A 192.0.2.80
cut NS ns.cut
ns.cut A 192.0.2.55
)";

/// Two workers of the same past: one answers requests alone, the other those that it reads
/// together.
class ReadTogether : public ::testing::Test {
 protected:
  ReadTogether() {
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
    together_.read_ahead_above(0);
  }
  static Query random_query(std::mt19937_64& random) {
    static const char* const kBelow[] = {"",         "www.", "a.b.", "cut.", "x.cut.",  "er.",
                                         "moved.",   "ns.",  "zz.",  "0.",   "wild.",   "q.wild.",
                                         "deep.er.", "sub.", "cuu.", "cuu.", "y.moved."};
    static const char* const kZones[] = {"example.",    "example.",   "sub.example.",
                                         "other.test.", "none.test.", "nowhere."};
    static constexpr RRType kTypes[] = {RRType::kA, RRType::kA, RRType::kDS, RRType::kNS};
    Query query;
    query.qname =
        std::string(kBelow[random() % std::size(kBelow)]) + kZones[random() % std::size(kZones)];
    query.qtype = kTypes[random() % std::size(kTypes)];
    query.edns = random() % 4 != 0;
    query.dnssec_ok = query.edns && random() % 2 == 0;
    return query;
  }
  void begin() {
    for (Responder* each : {&alone_, &together_}) each->begin(store_.view(), kNow, true);
  }
  Bytes alone(const Bytes& request) {
    const Outcome outcome = alone_.handle(request, client_, space_);
    return {space_.begin(), space_.begin() + static_cast<long>(outcome.size)};
  }
  /// That the requests get the answers that they get alone.
  void expect_same(std::span<const Bytes> requests) {
    std::vector<Arrival> arrivals;
    std::vector<Bytes> expected;
    for (const Bytes& request : requests) {
      arrivals.push_back({request, client_});
      expected.push_back(alone(request));
    }
    together_.read(arrivals);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Outcome outcome = together_.answer(i, space_);
      ASSERT_EQ(Bytes(space_.begin(), space_.begin() + static_cast<long>(outcome.size)),
                expected[i])
          << "request " << i << " of " << requests.size();
    }
  }
  void update(const char* zone, const zone::Record& record) {
    zone::Changeset changes;
    changes.zone = name(zone);
    changes.added = {record};
    store_.apply(changes);
  }

  pando::testing::ZoneStore store_{std::vector<TestZone>{{"example.", kParent},
                                                         {"sub.example.", kChild},
                                                         {"other.test.", kChild},
                                                         {"none.test.", ""}}};
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder alone_{*counters_, [this](std::uint32_t index) { return store_.store().side(index); }};
  Responder together_{*counters_,
                      [this](std::uint32_t index) { return store_.store().side(index); }};
  Client client_;
  Bytes space_ = Bytes(65535);
};

TEST_F(ReadTogether, AnswersAreThoseOfRequestsAlone) {
  std::mt19937_64 random(20261127);
  for (int group = 0; group < 1200; ++group) {
    begin();
    std::vector<Bytes> requests;
    for (std::size_t left = 2 + random() % (Responder::kTogether - 1); left > 0; --left)
      requests.push_back(random_query(random).octets());
    expect_same(requests);
    if (HasFatalFailure()) FAIL() << "group " << group;
    if (group % 100 != 99) continue;
    // The data's next state: what was foreseen for the former one is of no use.
    const std::uint8_t last = static_cast<std::uint8_t>(group / 100);
    update(group % 200 == 99 ? "example." : "sub.example.",
           {name(group % 200 == 99 ? "ns.a.cut.example." : "ns.cut.sub.example."),
            RRType::kA,
            dns::Ttl{300},
            {192, 0, 3, last}});
  }
}

// A DS question for the apex of a zone is answered by the zone above; the lookup in the zone itself
// was foreseen.
TEST_F(ReadTogether, AnAnswerFromTheZoneAboveTakesNothingForeseenInTheZoneBelow) {
  const std::vector<Bytes> requests(
      4, Query{.qname = "sub.example.", .qtype = RRType::kDS, .edns = true, .dnssec_ok = true}
             .octets());
  begin();
  expect_same(requests);
  const auto response = pando::testing::read_response(alone(requests[0]));
  ASSERT_EQ(response.answer.size(), 1U);
  EXPECT_EQ(response.answer[0].type, RRType::kDS);
}

// Each place of the responder has a request's context, which the next request there takes over.
TEST_F(ReadTogether, ALaterRequestTakesNothingForeseenForAnEarlierOne) {
  const std::vector<Bytes> before = {Query{.qname = "ns.example."}.octets(),
                                     Query{.qname = "x.cut.example."}.octets(),
                                     Query{.qname = "zz.example."}.octets()};
  const std::vector<Bytes> later = {Query{.qname = "deep.er.example."}.octets(),
                                    Query{.qname = "q.wild.example."}.octets(),
                                    Query{.qname = "x.cut.example.", .qclass = 3}.octets(),
                                    Query{.opcode = 4, .qname = "example."}.octets()};
  for (const Bytes& request : later) {
    begin();
    expect_same(before);
    // A request alone, which is read at the first place without looking ahead.
    const Bytes expected = alone(request);
    const Outcome outcome = together_.handle(request, client_, space_);
    EXPECT_EQ(Bytes(space_.begin(), space_.begin() + static_cast<long>(outcome.size)), expected);
    expect_same(std::span(&request, 1));
    // And one after requests about which nothing can be foreseen.
    expect_same(before);
    const std::vector<Bytes> others = {Query{.qname = "www.none.test."}.octets(),
                                       Query{.qname = "nowhere."}.octets(), request};
    expect_same(others);
  }
}

}  // namespace foreseen_test
}  // namespace pando::worker
