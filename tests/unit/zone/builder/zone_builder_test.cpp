#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "base/progress.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/discarded_blocks.h"

namespace pando::zone {
namespace builder_test {

using ::testing::Contains;
using testing::dump;
using ::testing::HasSubstr;
using testing::name;
using testing::record;

using Lines = std::vector<std::string>;

const Lines kApex = {"example. 60 SOA a. b. 7 2 3 4 5", "example. 60 NS ns.elsewhere."};
/// Enough of them to be written while they come.
constexpr int kInOrder = 30;
const std::string kSignature = " 13 2 60 20300101000000 20200101000000 1 example. AAAA";

std::string host(int number) {
  const std::string digits = std::to_string(number);
  return "h" + std::string(6 - digits.size(), '0') + digits + ".example.";
}

/// The apex and `count` names in canonical order.
Lines ordered(int count) {
  Lines lines = kApex;
  for (int i = 0; i < count; ++i) lines.push_back(host(i) + " 60 A 192.0.2.1");
  return lines;
}

Lines with(Lines lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

class ZoneBuilderTest : public testing::ZoneTest {
 protected:
  void add(ZoneBuilder& builder, const Lines& lines) {
    for (const std::string& line : lines) {
      const Record one = record(line);
      ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata)) << line;
    }
  }
  /// What the zone is after these records in this order.
  Lines loaded(const Lines& lines) {
    const auto done = load("example.", lines);
    EXPECT_TRUE(done) << (done ? "" : done.error().text);
    return done ? dump(zone("example.")) : Lines{};
  }
  /// Why there is no zone of these records.
  std::string refused(const Lines& lines, const DataLimits& limits = DataLimits::none()) {
    shm::Transaction transaction = store_->begin_private();
    ZoneBuilder builder(name("example."), transaction, limits);
    add(builder, lines);
    const auto built = builder.finish();
    return built ? "" : built.error().text;
  }
  std::uint64_t live_without_zone() {
    EXPECT_TRUE(commit([](Draft& draft) { return draft.unload_zone(name("example.")); }));
    for (bool done = false; !done;) {
      const auto step = commit([](Draft& draft) { return dismantle_discarded(draft, 1000); });
      EXPECT_TRUE(step);
      done = !step || *step;
    }
    return store_->stats().live_bytes;
  }
};

TEST_F(ZoneBuilderTest, NamesInOrderAreInTheStoreBeforeTheLastOneCame) {
  shm::Transaction transaction = store_->begin_private();
  ZoneBuilder builder(name("example."), transaction);
  add(builder, ordered(5000));
  const std::uint64_t before_the_end = transaction.allocated_bytes();
  ASSERT_TRUE(builder.finish());
  EXPECT_GT(before_the_end, transaction.allocated_bytes() * 99 / 100);
}

TEST_F(ZoneBuilderTest, NamesInNoOrderWaitForTheEnd) {
  shm::Transaction transaction = store_->begin_private();
  ZoneBuilder builder(name("example."), transaction);
  Lines lines = ordered(5000);
  std::reverse(lines.begin(), lines.end());
  add(builder, lines);
  EXPECT_EQ(transaction.allocated_bytes(), 0U);
  const auto built = builder.finish();
  ASSERT_TRUE(built) << built.error().text;
  EXPECT_EQ(builder.record_count(), 5002U);
}

TEST_F(ZoneBuilderTest, OneStragglerDoesNotEndTheOrder) {
  shm::Transaction transaction = store_->begin_private();
  ZoneBuilder builder(name("example."), transaction);
  Lines lines = ordered(5000);
  std::swap(lines[2], lines[2000]);
  add(builder, lines);
  const std::uint64_t early = transaction.allocated_bytes();
  ASSERT_TRUE(builder.finish());
  EXPECT_GT(early, transaction.allocated_bytes() / 2);
}

TEST_F(ZoneBuilderTest, AnyOrderGivesTheSameZone) {
  const Lines expected = loaded(ordered(3000));
  std::mt19937 random(11);
  for (const std::size_t swaps : {1U, 30U, 300U, 3000U}) {
    Lines lines = ordered(3000);
    for (std::size_t i = 0; i < swaps; ++i)
      std::swap(lines[random() % lines.size()], lines[random() % lines.size()]);
    EXPECT_EQ(loaded(lines), expected) << swaps << " swaps";
  }
}

TEST_F(ZoneBuilderTest, ALateRecordJoinsItsName) {
  const Lines late = {host(10) + " 90 A 192.0.2.9", host(10) + " 90 A 192.0.2.1",
                      host(10) + " 90 TXT \"late\""};
  const auto expect_joined = [&](int names) {
    const Lines lines = loaded(with(ordered(names), late));
    EXPECT_EQ(lines.size(), 2U + static_cast<std::size_t>(names) + 2U);
    EXPECT_THAT(lines, Contains(host(10) + " 60 A 192.0.2.1"));
    EXPECT_THAT(lines, Contains(host(10) + " 60 A 192.0.2.9"));
    EXPECT_THAT(lines, Contains(host(10) + " 90 TXT \"late\""));
    EXPECT_EQ(zone("example.").record_count(), lines.size());
    EXPECT_EQ(zone("example.").name_count(), 1U + static_cast<std::size_t>(names));
  };
  expect_joined(1000);  // so few that the trie is changed
  expect_joined(20);    // so many that it is built anew
}

TEST_F(ZoneBuilderTest, NamesThatOnlyCameLateAreThere) {
  Lines late;
  for (int i = 0; i < 40; ++i) late.push_back("z" + host(i * 3) + " 60 A 192.0.2.2");
  for (const int names : {3, 2000}) {
    Lines lines = with(ordered(names), {"zz.example. 60 A 192.0.2.3"});
    const Lines all = loaded(with(lines, late));
    EXPECT_EQ(all.size(), lines.size() + late.size());
    EXPECT_TRUE(std::includes(all.begin() + 2, all.end(), late.begin(), late.end()));
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(zone("example.").record_at(name("z" + host(i * 3))));
  }
}

TEST_F(ZoneBuilderTest, TheApexMayBeCompletedLast) {
  const Lines expected = loaded(ordered(100));
  const Lines all = ordered(100);
  const Lines hosts(all.begin() + 2, all.end());
  EXPECT_EQ(loaded(with(with({kApex[0]}, hosts), {kApex[1]})), expected);
  EXPECT_EQ(loaded(with(with({kApex[1]}, hosts), {kApex[0]})), expected);
  EXPECT_EQ(loaded(with(hosts, kApex)), expected);
  const Lines more = loaded(with(ordered(100), {"example. 60 MX 10 mail.elsewhere."}));
  EXPECT_EQ(more.size(), expected.size() + 1);
  EXPECT_EQ(zone("example.").serial().value, 7U);
}

TEST_F(ZoneBuilderTest, ARuleThatALateRecordBreaksIsBroken) {
  EXPECT_EQ(refused(with(ordered(100), {host(7) + " 60 CNAME x."})),
            host(7) + ": CNAME and other data");
  EXPECT_EQ(refused(with(ordered(100), {"example. 60 SOA a. b. 8 2 3 4 5"})),
            "example.: 2 SOA records, one is needed");
  EXPECT_EQ(refused({"x.example. 60 A 192.0.2.1"}), "example.: no SOA record");
  EXPECT_EQ(refused({kApex[0], "x.example. 60 A 192.0.2.1"}),
            "example.: no NS records at the apex");
}

TEST_F(ZoneBuilderTest, TheFirstBrokenRuleInCanonicalOrderIsTold) {
  const Lines broken = {host(3) + " 60 CNAME x.", host(2) + " 60 CNAME x."};
  Lines before = broken;
  Lines after = with(ordered(kInOrder), broken);
  EXPECT_EQ(refused(with(before, ordered(kInOrder))), host(2) + ": CNAME and other data");
  EXPECT_EQ(refused(after), host(2) + ": CNAME and other data");
  std::sort(after.begin() + 2, after.end());
  EXPECT_EQ(refused(after), host(2) + ": CNAME and other data");
}

TEST_F(ZoneBuilderTest, LimitsCountAllOfANameAndNoDuplicates) {
  DataLimits limits = DataLimits::none();
  limits.rrset_records = 2;
  const Lines two = with(
      ordered(kInOrder),
      {host(50) + " 60 A 192.0.2.1", host(50) + " 60 A 192.0.2.2", host(50) + " 60 A 192.0.2.1"});
  const std::string behind = host(51) + " 60 A 192.0.2.1";
  const std::string third = host(50) + " 60 A 192.0.2.3";
  EXPECT_EQ(refused(two, limits), "");
  EXPECT_EQ(refused(with(two, {behind, two.back()}), limits), "");
  EXPECT_THAT(refused(with(two, {third}), limits), HasSubstr("limits.rrset-records"));
  EXPECT_THAT(refused(with(two, {behind, third}), limits), HasSubstr("limits.rrset-records"));
}

TEST_F(ZoneBuilderTest, ASignaturesTtlGivesWayToThatOfItsSet) {
  const std::string signature = host(50) + " 10 RRSIG A" + kSignature;
  const std::string data = host(50) + " 60 A 192.0.2.1";
  const std::string behind = host(51) + " 60 A 192.0.2.1";
  const Lines expected =
      loaded(with(ordered(kInOrder), {data, host(50) + " 60 RRSIG A" + kSignature, behind}));
  EXPECT_EQ(loaded(with(ordered(kInOrder), {signature, behind, data})), expected);
  EXPECT_EQ(loaded(with(ordered(kInOrder), {data, behind, signature})), expected);
}

/// A file may begin with what sorts last, and have more of it in its place.
TEST_F(ZoneBuilderTest, WhatCameBeforeTheOrderIsTheFirst) {
  const Lines names(ordered(100));
  Lines lines = with(kApex, {"Z.example. 90 A 192.0.2.1", "Z.example. 90 NS c.example."});
  lines.insert(lines.end(), names.begin() + 2, names.end());
  lines = with(
      lines, {"z.example. 60 A 192.0.2.2", "z.example. 60 TXT \"t\"", "zz.example. 60 A 192.0.2.1",
              "z.example. 30 NS C.example.", "z.example. 30 TXT \"u\""});
  const Lines got = loaded(lines);
  const Lines z = {"Z.example. 90 A 192.0.2.1",   "Z.example. 90 A 192.0.2.2",
                   "Z.example. 90 NS c.example.", "Z.example. 60 TXT \"t\"",
                   "Z.example. 60 TXT \"u\"",     "zz.example. 60 A 192.0.2.1"};
  EXPECT_EQ(Lines(got.end() - 6, got.end()), z);
  EXPECT_EQ(zone("example.").record_count(), got.size());
}

TEST_F(ZoneBuilderTest, Nsec3RecordsMayStandBetweenNames) {
  const auto chained = [](int i) {
    return "0p9mhaveqvm6t7vbl5lop2u3t2rp3" + std::to_string(100 + i);
  };
  const auto link = [&](int i) {
    return chained(i) + ".example. 60 NSEC3 1 0 1 AABB " + chained(i + 1) + " A";
  };
  Lines chain;
  for (int i = 0; i < 40; ++i) chain.push_back(link(i));
  const Lines own_order = loaded(with(ordered(40), chain));
  Lines lines = kApex;
  for (int i = 0; i < 40; ++i) {
    lines.push_back(host(i) + " 60 A 192.0.2.1");
    if (i != 7) lines.push_back(chain[static_cast<std::size_t>(i)]);
  }
  lines.push_back(chain[7]);
  EXPECT_EQ(loaded(lines), own_order);
  const std::string signature = chained(9) + ".example. 60 RRSIG NSEC3" + kSignature;
  EXPECT_THAT(loaded(with(lines, {signature})), Contains(signature));
}

TEST_F(ZoneBuilderTest, AnOwnerKeepsItsFirstSpelling) {
  const Lines lines =
      loaded(with(ordered(kInOrder), {"WWW.example. 60 A 192.0.2.1", "x.example. 60 A 192.0.2.1",
                                      "www.example. 60 A 192.0.2.2"}));
  EXPECT_THAT(lines, Contains("WWW.example. 60 A 192.0.2.2"));
}

TEST_F(ZoneBuilderTest, TheApexIsSpelledAsTheSoaSpellsIt) {
  const auto done = load("EXAMPLE.", {"Example. 60 SOA a. b. 7 2 3 4 5", "example. 60 NS ns.other.",
                                      "www.example. 60 A 192.0.2.1"});
  ASSERT_TRUE(done);
  EXPECT_THAT(
      dump(zone("example.")),
      ::testing::UnorderedElementsAre("Example. 60 SOA a. b. 7 2 3 4 5", "Example. 60 NS ns.other.",
                                      "www.Example. 60 A 192.0.2.1"));
}

TEST_F(ZoneBuilderTest, ARecordHasRoomInAMessageBesideASignature) {
  shm::Transaction transaction = store_->begin_private();
  ZoneBuilder builder(name("example."), transaction);
  const dns::Name owner = name("big.example.");
  const Bytes rdata(dns::kMaxRecordOctets - owner.size() - 10);
  const auto type = static_cast<dns::RRType>(65280);
  EXPECT_TRUE(builder.add(owner, type, {60}, rdata));
  Bytes larger = rdata;
  larger.push_back(0);
  EXPECT_THAT(builder.add(owner, type, {60}, larger).error().text,
              HasSubstr("big.example. TYPE65280: record of 64512 octets"));
}

TEST_F(ZoneBuilderTest, WhatIsWrittenTwiceIsGivenBack) {
  const std::string large = " 60 TXT \"" + std::string(200, 't');
  const auto shuffled = [&](std::size_t swaps) {
    Lines lines = ordered(2000);
    for (int i = 0; i < 40; ++i)
      for (int n = 0; n < 6; ++n) lines.push_back(host(i * 40) + large + std::to_string(n) + "\"");
    std::sort(lines.begin() + 2, lines.end());
    std::mt19937 random(5);
    for (std::size_t i = 0; i < swaps; ++i)
      std::swap(lines[2 + random() % (lines.size() - 2)], lines[2 + random() % (lines.size() - 2)]);
    return lines;
  };
  loaded(shuffled(0));
  const std::uint64_t none = live_without_zone();
  for (const std::size_t swaps : {20U, 2000U}) {
    loaded(shuffled(swaps));
    EXPECT_LE(live_without_zone(), none + 1024) << swaps << " swaps";
    EXPECT_TRUE(store_->check());
  }
}

TEST_F(ZoneBuilderTest, AZoneThatIsGivenUpLeavesNothing) {
  const auto before = store_->stats();
  {
    shm::Transaction transaction = store_->begin_private();
    ZoneBuilder builder(name("example."), transaction);
    add(builder, ordered(5000));
    EXPECT_GT(store_->stats().chunks_in_use, before.chunks_in_use);
  }
  EXPECT_EQ(store_->stats().chunks_in_use, before.chunks_in_use);
  EXPECT_EQ(store_->stats().live_bytes, before.live_bytes);
}

/// So few come late that their sorting does not look.
TEST_F(ZoneBuilderTest, PuttingTogetherEndsWhenTheWorkIsGivenUp) {
  Lines lines = kApex, late;
  for (int i = 0; i < 4120; ++i) (i % 8 == 4 ? late : lines).push_back(host(i) + " 60 A 192.0.2.1");
  std::reverse(late.begin(), late.end());  // takes std::sort() the fewest comparisons
  shm::Transaction transaction = store_->begin_private();
  Progress progress;
  const Progress::Scope scope(&progress);
  ZoneBuilder builder(name("example."), transaction);
  add(builder, with(lines, late));
  progress.give_up();
  const auto built = builder.finish();
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().text, kGivenUp);
  EXPECT_EQ(progress.seen().phase, Progress::Phase::kBuilding);
}

TEST_F(ZoneBuilderTest, AFullStoreIsToldAtTheEnd) {
  shm::Transaction all = store_->begin_private();
  while (all.allocate(shm::kChunkBytes)) {
  }
  shm::Transaction transaction = store_->begin_private();
  ZoneBuilder builder(name("example."), transaction);
  add(builder, ordered(5000));
  const auto built = builder.finish();
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, Errc::kFull);
}

}  // namespace builder_test
}  // namespace pando::zone
