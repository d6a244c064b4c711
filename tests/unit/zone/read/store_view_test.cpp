#include "zone/read/store_view.h"

#include "tests/unit/zone/draft/zone_fixture.h"

namespace pando::zone {
namespace store_view_test {

using testing::dump;
using testing::kSmallZone;
using testing::name;
using testing::record;

class SnapshotTest : public testing::ZoneTest {
 protected:
  void SetUp() override {
    const auto loaded = load("example.", kSmallZone);
    ASSERT_TRUE(loaded) << loaded.error().text;
    zone_ = zone("example.");
    ASSERT_TRUE(zone_);
  }
  ZoneView zone_;
};

TEST_F(SnapshotTest, FindsTheZoneWithTheLongestApex) {
  ASSERT_TRUE(
      load("sub.example.", {"sub.example. 60 SOA a. b. 1 2 3 4 5", "sub.example. 60 NS a."}));
  EXPECT_EQ(view().find_zone(name("x.y.SUB.example.")).apex(), name("sub.example."));
  EXPECT_EQ(view().find_zone(name("sub2.example.")).apex(), name("example."));
  EXPECT_EQ(view().find_zone(name("example.")).apex(), name("example."));
  EXPECT_FALSE(view().find_zone(name("com.")));
  EXPECT_FALSE(view().find_zone(name(".")));
  EXPECT_EQ(view().zone_count(), 2U);
}

TEST_F(SnapshotTest, KnowsWhetherAZoneIsAtOrBelowAName) {
  ASSERT_TRUE(
      load("a.sub.other.", {"a.sub.other. 60 SOA a. b. 1 2 3 4 5", "a.sub.other. 60 NS a."}));
  for (const char* const above : {".", "other.", "SUB.other.", "a.sub.other.", "example."})
    EXPECT_TRUE(view().has_zone_at_or_below(name(above))) << above;
  for (const char* const beside : {"b.sub.other.", "x.a.sub.other.", "su.other.", "www.example."})
    EXPECT_FALSE(view().has_zone_at_or_below(name(beside))) << beside;
}

TEST_F(SnapshotTest, ABookmarkStandsForAZoneAndARecord) {
  const Bookmark bookmark(zone_, zone_.lookup(name("www.example.")).exact);
  EXPECT_TRUE(bookmark.has_record());
  const StoreView again = view();
  const ZoneView zone = again.zone_at(bookmark);
  EXPECT_TRUE(zone.is_same(again.zone_at(name("example."))));
  const RecordView record = bookmark.record_in(zone);
  EXPECT_EQ(zone_.owner_of(record), name("www.example."));
  EXPECT_EQ(record.find(dns::RRType::kA).count(), 2);
  bookmark.fetch_record(zone, 2);

  EXPECT_FALSE(Bookmark(zone_).has_record());
  EXPECT_FALSE(Bookmark(zone_).record_in(zone_));
  EXPECT_FALSE(again.zone_at(Bookmark()));
}

TEST_F(SnapshotTest, TheRootZoneTakesWhatNoOtherZoneHas) {
  ASSERT_TRUE(load(".", {". 60 SOA a. b. 1 2 3 4 5", ". 60 NS a.", "com. 60 NS ns.com."}));
  EXPECT_EQ(view().find_zone(name("a.com.")).apex(), name("."));
  EXPECT_EQ(view().find_zone(name("a.example.")).apex(), name("example."));
  const Match match = zone(".").lookup(name("a.com."));
  EXPECT_TRUE(match.barrier.has_ns());
  EXPECT_EQ(match.barrier_labels, 1);
}

TEST_F(SnapshotTest, ExactNamesAreFoundInAnyCase) {
  const Match match = zone_.lookup(name("WwW.eXample."));
  ASSERT_TRUE(match.exact);
  EXPECT_EQ(match.exact.find(dns::RRType::kA).count(), 2);
  EXPECT_EQ(match.exact.find(dns::RRType::kA).ttl().seconds, 300U);
  EXPECT_FALSE(match.exact.find(dns::RRType::kAAAA));
  EXPECT_EQ(match.encloser_labels, 2);
  EXPECT_FALSE(match.barrier);
}

TEST_F(SnapshotTest, EmptyNonTerminalsExistWithoutRecords) {
  const Match match = zone_.lookup(name("b.c.example."));
  EXPECT_FALSE(match.exact);
  EXPECT_TRUE(match.empty_non_terminal);
  EXPECT_EQ(match.encloser_labels, 3);
}

TEST_F(SnapshotTest, ClosestEncloserMayBeAnEmptyNonTerminal) {
  const Match match = zone_.lookup(name("x.y.c.example."));
  EXPECT_FALSE(match.exact);
  EXPECT_FALSE(match.empty_non_terminal);
  EXPECT_EQ(match.encloser_labels, 2);  // c.example.
}

TEST_F(SnapshotTest, NamesBelowACutMeetTheCut) {
  for (const char* text : {"ns.sub.example.", "other.sub.example.", "x.y.sub.example."}) {
    const Match match = zone_.lookup(name(text));
    ASSERT_TRUE(match.barrier) << text;
    EXPECT_TRUE(match.barrier.has_ns());
    EXPECT_EQ(match.barrier_labels, 2);
  }
  EXPECT_FALSE(zone_.lookup(name("sub.example.")).barrier) << "the cut itself is no ancestor";
  EXPECT_FALSE(zone_.lookup(name("subx.example.")).barrier);
}

TEST_F(SnapshotTest, NamesBelowADnameMeetTheDname) {
  const Match match = zone_.lookup(name("x.d.example."));
  ASSERT_TRUE(match.barrier);
  EXPECT_TRUE(match.barrier.has_dname());
  EXPECT_FALSE(zone_.lookup(name("d.example.")).barrier);
}

TEST_F(SnapshotTest, WildcardsAreFoundBelowTheirEncloser) {
  EXPECT_TRUE(zone_.wildcard_below(name("wild.example.")));
  EXPECT_FALSE(zone_.wildcard_below(name("example.")));
  EXPECT_TRUE(zone_.lookup(name("wild.example.")).empty_non_terminal);
}

TEST_F(SnapshotTest, TheWalkGivesEveryRecordInCanonicalOrder) {
  const std::vector<std::string> expected = {
      "example. 3600 NS ns.example.",
      "example. 3600 SOA ns.example. admin.example. 7 7200 3600 1209600 300",
      "a.b.c.example. 60 A 192.0.2.20",
      "d.example. 600 DNAME target.example.net.",
      "ns.example. 3600 A 192.0.2.1",
      "sub.example. 600 NS ns.sub.example.",
      "ns.sub.example. 600 A 192.0.2.30",
      "*.wild.example. 60 TXT \"any\"",
      "www.example. 300 A 192.0.2.10",
      "www.example. 300 A 192.0.2.11",
  };
  EXPECT_EQ(dump(zone_), expected);
  EXPECT_EQ(zone_.record_count(), expected.size());
  EXPECT_EQ(zone_.name_count(), 8U);
  EXPECT_EQ(zone_.serial().value, 7U);
}

TEST_F(SnapshotTest, LargeSetsLiveInBlocksOfTheirOwn) {
  std::vector<std::string> lines = kSmallZone;
  for (int i = 0; i < 2000; ++i)
    lines.push_back("big.example. 60 TXT \"" + std::string(100, 'x') + std::to_string(10000 + i) +
                    "\"");
  ASSERT_TRUE(load("example.", lines));
  const RRsetView set = zone("example.").record_at(name("big.example.")).find(dns::RRType::kTXT);
  EXPECT_EQ(set.count(), 2000);
  std::size_t seen = 0;
  set.for_each_rdata([&](ByteView rdata) { seen += rdata.size() == 106; });
  EXPECT_EQ(seen, 2000U);
}

TEST_F(SnapshotTest, SignaturesStayWithTheSetTheyCover) {
  std::vector<std::string> lines = kSmallZone;
  std::vector<std::string> signatures;
  for (int i = 0; i < 9; ++i)  // more than the three bits of the count hold
    signatures.push_back("www.example. 300 RRSIG A 13 2 300 20400101000000 20200101000000 " +
                         std::to_string(100 + i) + " example. AAAA");
  lines.insert(lines.end(), signatures.begin(), signatures.end());
  lines.push_back(
      "ns.example. 77 RRSIG AAAA 13 2 300 20400101000000 20200101000000 1 example. AAAA");
  ASSERT_TRUE(load("example.", lines));
  const RecordView www = zone("example.").record_at(name("www.example."));
  EXPECT_EQ(www.rrset_count(), 1U);
  EXPECT_EQ(www.find(dns::RRType::kA).count(), 2);
  EXPECT_EQ(www.find(dns::RRType::kA).signature_count(), 9);
  const RRsetView orphan = zone("example.").record_at(name("ns.example.")).find(dns::RRType::kAAAA);
  EXPECT_EQ(orphan.count(), 0);
  EXPECT_EQ(orphan.signature_count(), 1);
  EXPECT_EQ(orphan.ttl().seconds, 77U);
  const auto all = dump(zone("example."));
  for (const std::string& line : signatures)
    EXPECT_NE(std::find(all.begin(), all.end(), line), all.end()) << line;
}

TEST_F(SnapshotTest, NsecBeforeANameLooksPastGlue) {
  std::vector<std::string> lines = kSmallZone;
  for (const char* owner : {"example.", "a.b.c.example.", "d.example.", "ns.example.",
                            "sub.example.", "*.wild.example.", "www.example."})
    lines.push_back(std::string(owner) + " 300 NSEC next.example. A");
  ASSERT_TRUE(load("example.", lines));
  const ZoneView signed_zone = zone("example.");
  EXPECT_EQ(signed_zone.denial(), Denial::kNsec);
  const auto before = [&](const char* text) {
    return dns::to_text(signed_zone.owner_of(signed_zone.nsec_at_or_before(name(text))));
  };
  EXPECT_EQ(before("www.example."), "www.example.");
  EXPECT_EQ(before("zzz.example."), "www.example.");
  EXPECT_EQ(before("sub2.example."), "sub.example.") << "ns.sub.example. is glue";
  EXPECT_EQ(before("zz.sub.example."), "sub.example.");
  EXPECT_EQ(before("a.example."), "example.");
  EXPECT_EQ(before("b.c.example."), "example.") << "an ENT sorts before what is below it";
}

TEST_F(SnapshotTest, Nsec3RecordsHaveATrieOfTheirOwn) {
  std::vector<std::string> lines = kSmallZone;
  lines.push_back("example. 0 NSEC3PARAM 1 0 2 AB");
  const std::string low = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
  const std::string high = "q04jkcevqvmu85r014c7dkba38o0ji5r";
  lines.push_back(low + ".example. 300 NSEC3 1 0 2 AB " + high + " A");
  lines.push_back(high + ".example. 300 NSEC3 1 0 2 AB " + low + " A");
  lines.push_back("80000000000000000000000000000000.example. 300 NSEC3 1 0 9 - " + low + " A");
  ASSERT_TRUE(load("example.", lines));
  const ZoneView hashed = zone("example.");
  EXPECT_EQ(hashed.denial(), Denial::kNsec3);
  EXPECT_EQ(hashed.nsec3_parameters().iterations, 2);
  EXPECT_FALSE(hashed.lookup(name(low + ".example.")).exact) << "hashed owners are no names";
  bool exact = false;
  std::vector<std::uint8_t> hash(20, 0);
  EXPECT_EQ(hashed.owner_of(hashed.nsec3_match_or_cover(hash, exact)), name(high + ".example."));
  EXPECT_FALSE(exact) << "before the first: the last one covers it";
  hash.assign(20, 0x80);
  EXPECT_EQ(hashed.owner_of(hashed.nsec3_match_or_cover(hash, exact)), name(low + ".example."));
  EXPECT_FALSE(exact);
  Bytes next;  // the hash that `low` names as next is the owner `high`
  hashed.nsec3_match_or_cover(hash, exact)
      .find(dns::RRType::kNSEC3)
      .for_each_rdata([&](ByteView rdata) { next.assign(rdata.begin() + 7, rdata.begin() + 27); });
  EXPECT_EQ(hashed.owner_of(hashed.nsec3_match_or_cover(next, exact)), name(high + ".example."));
  EXPECT_TRUE(exact);
}

TEST_F(SnapshotTest, AnNsec3WhoseNextHashHasAnotherLengthIsPartOfNoChain) {
  std::vector<std::string> lines = kSmallZone;
  const std::string low = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
  const std::string middle = "80000000000000000000000000000000";
  const std::string high = "q04jkcevqvmu85r014c7dkba38o0ji5r";
  lines.push_back("example. 0 NSEC3PARAM 1 0 2 AB");
  lines.push_back(low + ".example. 300 NSEC3 1 0 2 AB " + high + " A");
  lines.push_back(high + ".example. 300 NSEC3 1 0 2 AB " + low + " A");
  std::vector<Record> records;
  for (const std::string& line : lines) records.push_back(record(line));
  // No text and no message brings such a record any more, but an older store may have it.
  Record odd = record(middle + ".example. 300 NSEC3 1 0 2 AB " + high + " A");
  constexpr std::size_t kHashLengthAt = 6;  // algorithm, flags, iterations, salt "AB"
  odd.rdata[kHashLengthAt] = 15;
  odd.rdata.erase(odd.rdata.begin() + kHashLengthAt + 16, odd.rdata.begin() + kHashLengthAt + 21);
  records.push_back(odd);
  ASSERT_TRUE(load_records("example.", records));
  const ZoneView hashed = zone("example.");
  bool exact = false;
  for (const std::uint8_t octet :
       {std::uint8_t{0x40}, std::uint8_t{0x41}}) {  // the middle's hash, and one behind
    Bytes hash(20, 0);
    hash[0] = octet;
    EXPECT_EQ(hashed.owner_of(hashed.nsec3_match_or_cover(hash, exact)), name(low + ".example."));
    EXPECT_FALSE(exact);
    EXPECT_FALSE(hashed.nsec3_at(hash));
  }
}

TEST_F(SnapshotTest, BuildingRefusesWhatNoZoneMayHave) {
  const auto reason = [&](const std::string& extra) {
    std::vector<std::string> lines = kSmallZone;
    lines.push_back(extra);
    const auto loaded = load("example.", lines);
    return loaded ? std::string("loaded") : loaded.error().text;
  };
  EXPECT_EQ(reason("www.example. 60 CNAME x.example."), "www.example.: CNAME and other data");
  EXPECT_EQ(reason("d.example. 60 DNAME other.example."), "d.example.: more than one DNAME record");
  EXPECT_EQ(reason("x.example. 60 SOA a. b. 1 2 3 4 5"), "x.example.: SOA below the apex");
  EXPECT_EQ(reason("example. 60 SOA a. b. 1 2 3 4 5"), "example.: 2 SOA records, one is needed");
  EXPECT_EQ(reason("www.example.org. 60 A 192.0.2.1"),
            "www.example.org. is outside the zone example.");
  EXPECT_FALSE(load("other.", {"other. 60 NS a."}));
  EXPECT_FALSE(load("other.", {"other. 60 SOA a. b. 1 2 3 4 5"}));
  EXPECT_FALSE(load("other.", {}));
  EXPECT_EQ(zone("example.").record_count(), 10U) << "the good version stays";
}

/// The apex is the first of all names, and in neither tree.
TEST_F(SnapshotTest, NeighboursAreThoseOfTheOrderedWalk) {
  using Tree = ZoneView::Tree;
  std::vector<dns::Name> order;
  auto cursor = zone_.begin();
  while (const RecordView record = cursor.next()) order.push_back(zone_.owner_of(record));
  ASSERT_GT(order.size(), 3U);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    EXPECT_EQ(zone_.owner_of(zone_.record_after(Tree::kNames, order[i])), order[i + 1]);
    const RecordView before = zone_.record_before(Tree::kNames, order[i + 1]);
    EXPECT_EQ(static_cast<bool>(before), i != 0);
    if (before) {
      EXPECT_EQ(zone_.owner_of(before), order[i]);
    }
  }
  EXPECT_FALSE(zone_.record_after(Tree::kNames, order.back()));
  EXPECT_EQ(zone_.owner_of(zone_.last_record(Tree::kNames)), order.back());
  EXPECT_FALSE(zone_.last_record(Tree::kNsec3));
  EXPECT_FALSE(zone_.nsec3_record_at(order.back()));
}

TEST_F(SnapshotTest, Nsec3RecordsHaveNeighboursOfTheirOwn) {
  using Tree = ZoneView::Tree;
  const std::string low(32, '0'), high(32, 'v');
  auto lines = kSmallZone;
  lines.push_back(low + ".example. 300 NSEC3 1 0 2 AB " + high + " A");
  lines.push_back(high + ".example. 300 NSEC3 1 0 9 - " + low + " A");
  ASSERT_TRUE(load("example.", lines));
  const ZoneView hashed = zone("example.");
  EXPECT_TRUE(hashed.nsec3_record_at(name(low + ".example.")));
  EXPECT_TRUE(hashed.nsec3_record_at(name(high + ".EXAMPLE."))) << "of whatever chain";
  EXPECT_FALSE(hashed.record_at(name(low + ".example.")));
  EXPECT_EQ(hashed.owner_of(hashed.record_after(Tree::kNsec3, name(low + ".example."))),
            name(high + ".example."));
  EXPECT_EQ(hashed.owner_of(hashed.record_before(Tree::kNsec3, name("v.example."))),
            name(low + ".example."));
  EXPECT_EQ(hashed.owner_of(hashed.last_record(Tree::kNsec3)), name(high + ".example."));
}

/// A loop over neighbours would run for ever if one led back.
TEST_F(SnapshotTest, ARecordOutOfOrderIsNoNeighbour) {
  using Tree = ZoneView::Tree;
  auto lines = kSmallZone;
  for (const char hash : {'1', '2', '3'})
    lines.push_back(std::string(32, hash) + ".example. 300 NSEC3 1 0 2 AB " + std::string(32, '1') +
                    " A");
  ASSERT_TRUE(load("example.", lines));
  const ZoneView hashed = zone("example.");
  const dns::Name first = name(std::string(32, '1') + ".example.");
  const dns::Name last = name(std::string(32, '3') + ".example.");
  const RecordView middle = hashed.record_after(Tree::kNsec3, first);
  ASSERT_TRUE(middle);
  auto* label = const_cast<std::uint8_t*>(middle.relative_owner().data());
  ASSERT_EQ(label[1], '2');
  label[1] = '0';
  EXPECT_FALSE(hashed.record_after(Tree::kNsec3, first));
  label[1] = '4';
  EXPECT_FALSE(hashed.record_before(Tree::kNsec3, last));
}

}  // namespace store_view_test
}  // namespace pando::zone
