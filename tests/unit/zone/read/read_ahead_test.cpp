#include "zone/read/read_ahead.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/worker/zone_store.h"

namespace pando::zone {
namespace read_ahead_test {

using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;

constexpr const char* kText = R"($TTL 300
@ SOA ns1 admin 1 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.80
a.b.c A 192.0.2.81
cut NS ns1.cut
ns1.cut A 192.0.2.53
*.wild TXT "x"
)";

/// A signed zone in which addresses of servers, which have no NSEC, stand before many names.
constexpr const char* kSigned = R"($TTL 300
@ SOA ns1 admin 1 3600 600 86400 60
@ NS ns1
@ NSEC a.b.c SOA NS NSEC
a.b.c A 192.0.2.81
a.b.c NSEC cut A NSEC
cut NS ns.a.cut
cut NSEC empty.d NS NSEC
a.cut A 192.0.2.53
ns.a.cut A 192.0.2.53
ns.b.cut A 192.0.2.53
empty.d A 192.0.2.54
empty.d NSEC moved A NSEC
moved DNAME elsewhere.test.
moved NSEC ns1 DNAME NSEC
x.moved A 192.0.2.55
ns1 A 192.0.2.1
ns1 NSEC @ A NSEC
none A 192.0.2.2
)";

/// Zones of which some lie below others, and one has no data.
ZoneStore make_store(int count) {
  std::vector<TestZone> zones{{"example.com.", kText},
                              {"sub.example.com.", kText},
                              {"none.test.", ""},
                              {"signed.test.", kSigned}};
  for (int i = 0; i < count; ++i) zones.push_back({"z" + std::to_string(i) + ".test.", kText});
  return ZoneStore(zones);
}

dns::Name random_name(std::mt19937& random) {
  static const char* const kBelow[] = {"",        "www.", "a.b.c.",   "b.c.", "x.b.c.",  "y.cut.",
                                       "q.wild.", "WWW.", "nothing.", "d.",   "cuu.",    "cutx.",
                                       "moved0.", "0.",   "b.",       "zz.",  "y.moved."};
  static const char* const kAbove[] = {"example.com.", "sub.example.com.", "none.test.", "z1.test.",
                                       "z77.test.",    "z999.test.",       "com.",       "arpa.",
                                       "signed.test."};
  return name(std::string(kBelow[random() % std::size(kBelow)]) +
              kAbove[random() % std::size(kAbove)]);
}

void expect_same(const Match& same, const Match& alone, const dns::Name& wanted) {
  EXPECT_EQ(same.exact, alone.exact) << dns::to_text(wanted);
  EXPECT_EQ(same.empty_non_terminal, alone.empty_non_terminal) << dns::to_text(wanted);
  EXPECT_EQ(same.encloser_labels, alone.encloser_labels) << dns::to_text(wanted);
  EXPECT_EQ(same.barrier, alone.barrier) << dns::to_text(wanted);
  EXPECT_EQ(same.barrier_labels, alone.barrier_labels) << dns::to_text(wanted);
  EXPECT_EQ(same.nsec, alone.nsec) << dns::to_text(wanted);
  EXPECT_EQ(same.damaged, alone.damaged) << dns::to_text(wanted);
}

void expect_same_lookups(const StoreView& store) {
  std::mt19937 random(11);
  ReadAhead ahead;
  for (int round = 0; round < 600; ++round) {
    std::vector<dns::Name> names;
    std::vector<bool> dnssec_ok;
    for (std::size_t i = 0; i < 1 + random() % ReadAhead::kNames; ++i) {
      names.push_back(random_name(random));
      dnssec_ok.push_back(random() % 2 == 0);
    }
    ahead.clear();
    for (std::size_t i = 0; i < names.size(); ++i) ahead.add(names[i], dnssec_ok[i]);
    ahead.run(store);
    ASSERT_EQ(ahead.count(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ZoneView zone = store.find_zone(names[i]);
      ASSERT_TRUE(ahead.zone(i).is_same(zone)) << dns::to_text(names[i]);
      if (!zone) {
        expect_same(ahead.match(i), Match(), names[i]);
        continue;
      }
      const auto wanted = wanted_in(zone, dnssec_ok[i]);
      expect_same(ahead.match(i), zone.lookup(names[i], wanted), names[i]);
      // A lookup by a key with a remembered descent finds the same as one by name.
      using Wanted = ZoneView::Wanted;
      for (const Wanted other : {Wanted::kMatch, Wanted::kNsecToo})
        expect_same(zone.lookup(ahead.key(i), other), zone.lookup(names[i], other), names[i]);
    }
  }
}

TEST(ReadAhead, TheRecordBeforeANameIsThatOfItsNsec) {
  const ZoneStore store(std::vector<TestZone>{{"signed.test.", kSigned}});
  const ZoneView zone = store.view().find_zone(name("signed.test."));
  ASSERT_EQ(zone.denial(), Denial::kNsec);
  const std::pair<const char*, const char*> pairs[] = {
      {"0.signed.test.", "signed.test."},        {"b.signed.test.", "signed.test."},
      {"cuu.signed.test.", "cut.signed.test."},  {"d.signed.test.", "cut.signed.test."},
      {"mp.signed.test.", "moved.signed.test."}, {"zz.signed.test.", "ns1.signed.test."}};
  for (const auto& [asked, before] : pairs) {
    const Match match = zone.lookup(name(asked), ZoneView::Wanted::kNsecToo);
    EXPECT_EQ(match.nsec, zone.record_at(name(before))) << asked;
    EXPECT_EQ(match.nsec, zone.nsec_at_or_before(name(asked))) << asked;
  }
}

TEST(ReadAhead, FindsWhatLookupsFindAmongFewZones) { expect_same_lookups(make_store(2).view()); }
TEST(ReadAhead, FindsWhatLookupsFindAmongManyZones) { expect_same_lookups(make_store(100).view()); }

TEST(ReadAhead, FindsNothingInAStoreWithoutZones) {
  const ZoneStore store(std::vector<TestZone>{});
  const dns::Name wanted = name("www.example.com.");
  ReadAhead ahead;
  ahead.add(wanted, true);
  ahead.run(store.view());
  EXPECT_FALSE(ahead.zone(0));
  EXPECT_FALSE(ahead.match(0).exact);
}

}  // namespace read_ahead_test
}  // namespace pando::zone
