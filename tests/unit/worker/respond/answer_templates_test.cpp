#include "worker/respond/answer_templates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/worker/query_builder.h"
#include "worker/answer/render.h"
#include "worker/respond/responder.h"

namespace pando::worker {
namespace answer_templates_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::Response;
using pando::testing::TestZone;

constexpr std::uint64_t kNow = 1'700'000'000;
constexpr int kCuts = 40;

/// A zone of delegations of all sizes: servers below the cut, below other cuts, in the zone and
/// elsewhere, with one address or some, of one family or both, with and without DS.
std::string make_zone(std::mt19937_64& random) {
  std::string text =
      "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\n@ RRSIG SOA 8 1 300 "
      "20300101000000 20200101000000 1 example. AQIDBA==\n@ NSEC c0 SOA NS\n"
      "ns A 192.0.2.1\nns AAAA 2001:db8::1\n";
  const auto number = [&](std::uint64_t below) { return std::to_string(random() % below); };
  for (int i = 0; i < kCuts; ++i) {
    const std::string cut = "c" + std::to_string(i);
    const std::uint64_t servers = 1 + random() % 14;
    for (std::uint64_t server = 0; server < servers; ++server) {
      const std::string below = "ns" + std::to_string(server) + "." + cut;
      const std::string hosts[] = {below, "ns" + number(14) + ".c" + number(kCuts), "ns",
                                   "host" + number(9) + ".elsewhere.test."};
      text += cut + " NS " + hosts[random() % 4] + "\n";
      for (std::uint64_t k = random() % 3; k > 0; --k)
        text += below + " A 192.0.2." + number(250) + "\n";
      if (random() % 2 == 0) text += below + " AAAA 2001:db8::" + number(9999) + "\n";
    }
    if (random() % 2 == 0) text += cut + " DS 1 8 2 " + std::string(64, 'a') + "\n";
    text += cut + " NSEC d" + std::to_string(i) + " NS RRSIG NSEC\n";
    text += cut + " RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==\n";
  }
  return text;
}

TEST(LabelSet, HasEachLabelThatWasAddedInAnyCaseAndFewOthers) {
  const dns::Name added = name("gtld-servers.net.");
  LabelSet set;
  EXPECT_FALSE(set.may_have(added.data()));
  set.add(added.data());
  EXPECT_TRUE(set.may_have(added.data()));
  EXPECT_TRUE(set.may_have(name("GTLD-Servers.example.").data()));
  int others = 0;
  for (int i = 0; i < 640; ++i) others += set.may_have(name("n" + std::to_string(i) + ".").data());
  EXPECT_LT(others, 40);
}

class AnswerTemplatesTest : public ::testing::Test {
 protected:
  AnswerTemplatesTest() {
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }
  void serve(const std::string& zone_text) {
    store_ =
        std::make_unique<pando::testing::ZoneStore>(std::vector{TestZone{"example.", zone_text}});
  }
  Response ask(const Query& query) {
    responder_.begin(store_->view(), kNow, true);
    const Outcome outcome = responder_.handle(query.octets(), client_, space_);
    EXPECT_EQ(outcome.action, Action::kRespond);
    return pando::testing::read_response({space_.data(), outcome.size});
  }
  /// What the pure functions give, without any memory of earlier questions.
  Response compute(const Query& query) {
    const dns::Question question{name(query.qname), query.qtype, dns::RRClass::kIN};
    ResolveOptions options;
    options.dnssec_ok = query.dnssec_ok;
    Answer answer;
    dns::Nsec3Hasher hasher;
    resolve(store_->view().find_zone(question.name), question, options, hasher, answer);
    Bytes space(65535);
    const std::size_t limit = client_.is_udp() ? (query.edns ? query.payload : 512U) : 65535U;
    dns::MessageWriter writer(space, limit);
    dns::Header header;
    header.qr = true;
    writer.put_header(header);
    EXPECT_TRUE(writer.put_question(question.name, question.type, question.rr_class));
    constexpr std::size_t kOptOctets = 11;
    if (query.edns) writer.reserve(kOptOctets);
    render(answer, question, writer);
    const ByteView message = writer.finish();
    return pando::testing::read_response(message);
  }
  void expect_same(const Query& query) {
    const Response expected = compute(query);
    const Response actual = ask(query);
    EXPECT_EQ(actual.header.tc, expected.header.tc);
    EXPECT_FALSE(actual.header.aa);
    EXPECT_EQ(dns::to_text(actual.question->name), query.qname);
    EXPECT_TRUE(actual.answer.empty());
    EXPECT_EQ(actual.text(actual.authority), expected.text(expected.authority));
    EXPECT_EQ(actual.text(actual.additional), expected.text(expected.additional));
  }
  /// The same for any answer, as sets: a cached denial has its records in an order of its own.
  void expect_same_records(const Query& query) {
    const Response expected = compute(query);
    const Response actual = ask(query);
    EXPECT_EQ(actual.header.rcode, expected.header.rcode);
    EXPECT_EQ(actual.header.aa, expected.header.aa);
    EXPECT_EQ(actual.header.tc, expected.header.tc);
    EXPECT_EQ(actual.text(actual.answer), expected.text(expected.answer));
    if (actual.header.tc) return;
    EXPECT_EQ(sorted(actual.text(actual.authority)), sorted(expected.text(expected.authority)));
  }
  static std::vector<std::string> sorted(std::vector<std::string> lines) {
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  std::size_t size_of_answer(const Query& query) {
    responder_.begin(store_->view(), kNow, true);
    return responder_.handle(query.octets(), client_, space_).size;
  }
  void update(const zone::Changeset& changes) { store_->apply(changes); }

  std::unique_ptr<pando::testing::ZoneStore> store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder responder_{*counters_,
                       [this](std::uint32_t index) { return store_->store().side(index); }};
  Client client_;
  Bytes space_ = Bytes(65535);
};

TEST_F(AnswerTemplatesTest, WhatIsCachedIsWhatWouldBeWorkedOut) {
  std::mt19937_64 random(20261121);
  serve(make_zone(random));
  const std::uint16_t payloads[] = {512, 600, 800, 1232};
  for (int i = 0; i < 6000; ++i) {
    Query query;
    query.qname = "c" + std::to_string(random() % kCuts) + ".example.";
    for (std::uint64_t depth = random() % 4; depth > 0; --depth)
      query.qname =
          std::string(1 + random() % 20, static_cast<char>('e' + depth)) + "." + query.qname;
    query.qtype = random() % 2 == 0 ? RRType::kA : RRType::kMX;
    query.edns = random() % 4 != 0;
    query.dnssec_ok = query.edns && random() % 2 == 0;
    query.payload = payloads[random() % 4];
    expect_same(query);
    if (HasFailure()) FAIL() << "question " << i << ": " << query.qname << ' ' << query.payload;
  }
}

/// Such a server's name is shorter in the message than in the template, so all required records may
/// fit. Addresses that are not required are left out as they are in the template.
TEST_F(AnswerTemplatesTest, ReferralsOfNamesBelowAServerFitWhereTheyWouldFitAnew) {
  std::string text = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n";
  const std::string label(50, 'x');
  for (int i = 0; i < 9; ++i) {
    const std::string server = label + std::to_string(i) + ".cut";
    text += "cut NS " + server + "\n" + server + " A 192.0.2.7\n";
  }
  serve(text);
  for (int i = 0; i < 3; ++i) ask({.qname = "www.cut.example.", .edns = true, .payload = 1232});
  for (std::uint16_t payload = 512; payload < 1100; ++payload)
    expect_same({.qname = "y." + label + "3.cut.example.", .edns = true, .payload = payload});
}

/// A zone whose delegations share four sets of servers: elsewhere, in the zone with addresses below
/// one of the cuts, in the zone above all cuts, and a mixture. Cut c1 has the servers of its own
/// names. Signed as a registry's zone; `owners` is the number of cuts.
std::string make_registry(std::mt19937_64& random, int owners) {
  std::string text =
      "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\n@ RRSIG SOA 8 1 300 "
      "20300101000000 20200101000000 1 example. AQIDBA==\n@ NSEC c0 SOA NS\n"
      "ns A 192.0.2.1\nns AAAA 2001:db8::1\n"
      "ns RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==\n";
  const std::string far = ".a-name-server-with-a-long-name.of-some-operator.elsewhere.test.";
  const std::vector<std::vector<std::string>> sets = {
      {"a" + far, "b" + far, "c" + far},
      {"ns1.servers-of-a-hosting-provider.c1", "ns2.servers-of-a-hosting-provider.c1"},
      {"ns", "a" + far, "b.another" + far},
      {"ns1.servers-of-a-hosting-provider.c1", "ns", "d" + far, "e" + far}};
  text +=
      "ns1.servers-of-a-hosting-provider.c1 A 192.0.2.21\n"
      "ns1.servers-of-a-hosting-provider.c1 AAAA 2001:db8::21\n"
      "ns2.servers-of-a-hosting-provider.c1 A 192.0.2.22\n";
  for (int i = 0; i < owners; ++i) {
    const std::string cut = "c" + std::to_string(i);
    const std::size_t set = i == 1 ? 1 : random() % sets.size();
    const std::string ttl = random() % 8 == 0 ? " 600" : "";
    for (const std::string& server : sets[set]) text += cut + ttl + " NS " + server + "\n";
    if (random() % 3 == 0) {
      text += cut + " DS 1 8 2 " + std::string(64, 'a') + "\n";
      text += cut + " RRSIG DS 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==\n";
    }
    text += cut + " NSEC d" + std::to_string(i) + " NS RRSIG NSEC\n";
    text += cut + " RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==\n";
  }
  return text;
}

TEST_F(AnswerTemplatesTest, ReferralsOfSharedServersAreWhatWouldBeWorkedOut) {
  std::mt19937_64 random(20261125);
  constexpr int kOwners = 9000;  // enough for sets to be shared (zone/record/shared_sets.h)
  serve(make_registry(random, kOwners));
  const zone::ZoneView zone = store_->view().find_zone(name("example."));
  ASSERT_TRUE(zone.record_at(name("c8999.example.")).find(RRType::kNS).is_shared());
  const std::uint16_t payloads[] = {512, 600, 800, 1232};
  for (int i = 0; i < 12000; ++i) {
    Query query;
    const std::uint64_t cut = random() % 4 == 0 ? 1 : random() % kOwners;
    query.qname = "c" + std::to_string(cut) + ".example.";
    for (std::uint64_t depth = random() % 4; depth > 0; --depth)
      query.qname =
          std::string(1 + random() % 60, static_cast<char>('e' + depth)) + "." + query.qname;
    query.edns = random() % 4 != 0;
    query.dnssec_ok = query.edns && random() % 2 == 0;
    query.payload = payloads[random() % 4];
    expect_same(query);
    if (HasFailure()) FAIL() << "question " << i << ": " << query.qname << ' ' << query.payload;
  }
}

TEST_F(AnswerTemplatesTest, ANameOfAServerIsAQuestionLikeOthers) {
  std::mt19937_64 random(7);
  serve(make_zone(random));
  client_.transport = ipc::Transport::kTcp;
  for (int round = 0; round < 4; ++round)
    for (int cut = 0; cut < kCuts; ++cut)
      for (int server = 0; server < 14; ++server)
        expect_same(
            {.qname = "ns" + std::to_string(server) + ".c" + std::to_string(cut) + ".example."});
}

const char* const kOneCut = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
sub NS ns.sub
ns.sub A 192.0.2.53
)";

TEST_F(AnswerTemplatesTest, AReferralThatEndsWithAWholeNameIsCached) {
  serve(
      "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n"
      "sub NS ns.elsewhere.test.\n");
  for (int i = 0; i < 5; ++i) expect_same({.qname = "www.sub.example."});
}

TEST_F(AnswerTemplatesTest, AChangeOfTheZoneIsSeenAtOnce) {
  serve(kOneCut);
  const Query query{.qname = "www.sub.example."};
  for (int i = 0; i < 3; ++i) ask(query);
  zone::Changeset changes;
  changes.zone = name("example.");
  changes.removed = {{name("ns.sub.example."), RRType::kA, dns::Ttl{300}, {192, 0, 2, 53}}};
  changes.added = {{name("ns.sub.example."), RRType::kA, dns::Ttl{300}, {192, 0, 2, 99}}};
  update(changes);
  for (int i = 0; i < 3; ++i) {
    const Response response = ask(query);
    EXPECT_EQ(response.text(response.additional),
              std::vector<std::string>{"ns.sub.example. A 192.0.2.99"});
  }
}

TEST_F(AnswerTemplatesTest, IsNotTruncatedWhereItWouldFitOtherwise) {
  std::string zone = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n";
  for (char server = 'a'; server < 'a' + 13; ++server) {
    const std::string host = std::string(1, server) + ".a-rather-long-label.sub";
    zone += "sub NS " + host + "\n" + host + " A 192.0.2.53\n";
  }
  serve(zone);
  for (int i = 0; i < 4; ++i) ask({.qname = "sub.example."});
  for (std::uint16_t payload = 512; payload < 640; ++payload) {
    expect_same({.qname = "a.a-rather-long-label.sub.example.", .edns = true, .payload = payload});
    expect_same({.qname = "other.sub.example.", .edns = true, .payload = payload});
  }
}

TEST_F(AnswerTemplatesTest, ClientsSeeTheirOwnCase) {
  serve(kOneCut);
  for (int i = 0; i < 3; ++i) ask({.qname = "www.sub.example."});
  const Response response = ask({.qname = "WwW.sUb.ExAmPlE."});
  EXPECT_EQ(dns::to_text(response.question->name), "WwW.sUb.ExAmPlE.");
  EXPECT_EQ(dns::to_text(response.authority.front().owner), "sUb.ExAmPlE.");
  EXPECT_EQ(dns::to_text(response.additional.front().owner), "ns.sUb.ExAmPlE.");
}

/// Names at several depths, each with an NSEC and its signature; wildcards below some.
const char* const kSignedNames = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ RRSIG SOA 8 1 300 20300101000000 20200101000000 1 example. AQIDBA==
@ NS ns
@ NSEC bb SOA NS
@ RRSIG NSEC 8 1 300 20300101000000 20200101000000 1 example. AQIDBA==
bb A 192.0.2.1
bb NSEC deep.er.bb A
bb RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
deep.er.bb A 192.0.2.1
deep.er.bb NSEC dd A
deep.er.bb RRSIG NSEC 8 4 300 20300101000000 20200101000000 1 example. AQIDBA==
dd A 192.0.2.1
dd NSEC *.dd A
dd RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
*.dd TXT "a wildcard"
*.dd NSEC ns TXT
*.dd RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
*.dd RRSIG TXT 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
ns A 192.0.2.1
ns NSEC @ A
ns RRSIG NSEC 8 2 300 20300101000000 20200101000000 1 example. AQIDBA==
)";

TEST_F(AnswerTemplatesTest, CachedDenialsAreWhatWouldBeWorkedOut) {
  serve(kSignedNames);
  std::mt19937_64 random(20261125);
  const char* const parents[] = {"", "bb.", "er.bb.", "deep.er.bb.", "dd.", "ns.", "x.er.bb."};
  const std::uint16_t payloads[] = {512, 560, 620, 1232};
  for (int i = 0; i < 4000; ++i) {
    Query query;
    query.qname = std::string(1 + random() % 40, static_cast<char>('a' + random() % 20)) + "." +
                  parents[random() % std::size(parents)] + "example.";
    query.qtype = random() % 2 == 0 ? RRType::kA : RRType::kTXT;
    query.edns = random() % 4 != 0;
    query.dnssec_ok = query.edns && random() % 2 == 0;
    query.payload = payloads[random() % 4];
    expect_same_records(query);
    if (HasFailure()) FAIL() << "question " << i << ": " << query.qname << ' ' << query.payload;
  }
}

TEST_F(AnswerTemplatesTest, NamesInADenialKeepPointersToTheQuestion) {
  serve(kSignedNames);
  const Query query{.qname = "e.er.bb.example.", .edns = true, .dnssec_ok = true};
  const std::size_t whole = size_of_answer(query);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(size_of_answer(query), whole) << "time " << i;
}

TEST_F(AnswerTemplatesTest, AWildcardEndsCachedDenials) {
  serve(kSignedNames);
  const Query query{.qname = "nowhere.example.", .qtype = RRType::kTXT};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ask(query).header.rcode, 3);
  zone::Changeset changes;
  changes.zone = name("example.");
  changes.added = {{name("*.example."), RRType::kTXT, dns::Ttl{300}, {1, 'w'}}};
  update(changes);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ask(query).header.ancount, 1) << "time " << i;
}

TEST_F(AnswerTemplatesTest, TemplatesTakeBoundedMemory) {
  AnswerTemplates cache;
  const std::string wide = std::string(60, 'w') + ".";
  const dns::Name first = name("a.example.");
  const auto key = [](const dns::Name& of) {
    return AnswerTemplates::Key{AnswerTemplates::Kind::kReferral, 1, 7, false, of};
  };
  cache.insert_none(key(first));
  EXPECT_TRUE(cache.find(key(first)));
  for (int i = 0; i < 40'000; ++i)
    cache.insert_none(key(name(std::to_string(i) + "." + wide + wide + wide + "example.")));
  EXPECT_LE(cache.bytes(), AnswerTemplates::kMaxBytes);
  EXPECT_FALSE(cache.find(key(first)));
}

TEST_F(AnswerTemplatesTest, WantsWhatWasMissedTwiceInARow) {
  AnswerTemplates cache;
  const dns::Name cut = name("sub.example.");
  const AnswerTemplates::Key key{AnswerTemplates::Kind::kReferral, 1, 7, false, cut};
  EXPECT_FALSE(cache.wants(key));
  EXPECT_TRUE(cache.wants(key));
  AnswerTemplates::Key later = key;
  later.data_version = 8;
  EXPECT_FALSE(cache.wants(later));
}

}  // namespace answer_templates_test
}  // namespace pando::worker
