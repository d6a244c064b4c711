#include "zone/read/read_ahead.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
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

/// Zones of which some lie below others, and one has no data.
ZoneStore make_store(int count) {
  std::vector<TestZone> zones{
      {"example.com.", kText}, {"sub.example.com.", kText}, {"none.test.", ""}};
  for (int i = 0; i < count; ++i) zones.push_back({"z" + std::to_string(i) + ".test.", kText});
  return ZoneStore(zones);
}

dns::Name random_name(std::mt19937& random) {
  static const char* const kBelow[] = {"",       "www.",    "a.b.c.", "b.c.",    "x.b.c.",
                                       "y.cut.", "q.wild.", "WWW.",   "nothing."};
  static const char* const kAbove[] = {"example.com.", "sub.example.com.", "none.test.", "z1.test.",
                                       "z77.test.",    "z999.test.",       "com.",       "arpa."};
  return name(std::string(kBelow[random() % std::size(kBelow)]) +
              kAbove[random() % std::size(kAbove)]);
}

void expect_same_lookups(const StoreView& store) {
  std::mt19937 random(11);
  ReadAhead ahead;
  for (int round = 0; round < 300; ++round) {
    std::vector<dns::Name> names;
    for (std::size_t i = 0; i < 1 + random() % ReadAhead::kNames; ++i)
      names.push_back(random_name(random));
    ahead.clear();
    for (const dns::Name& wanted : names) ahead.add(wanted);
    ahead.run(store);
    ASSERT_EQ(ahead.count(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ZoneView zone = store.find_zone(names[i]);
      ASSERT_EQ(static_cast<bool>(ahead.zone(i)), static_cast<bool>(zone))
          << dns::to_text(names[i]);
      if (!zone) continue;
      EXPECT_TRUE(ahead.zone(i).apex() == zone.apex());
      const Match alone = zone.lookup(names[i], ZoneView::Wanted::kNsecToo);
      const Match same = ahead.zone(i).lookup(ahead.key(i), ZoneView::Wanted::kNsecToo);
      EXPECT_EQ(same.exact, alone.exact) << dns::to_text(names[i]);
      EXPECT_EQ(same.empty_non_terminal, alone.empty_non_terminal);
      EXPECT_EQ(same.encloser_labels, alone.encloser_labels);
      EXPECT_EQ(same.barrier, alone.barrier);
      EXPECT_EQ(same.nsec, alone.nsec);
      EXPECT_EQ(same.damaged, alone.damaged);
    }
  }
}

TEST(ReadAhead, FindsWhatLookupsFindAmongFewZones) { expect_same_lookups(make_store(2).view()); }
TEST(ReadAhead, FindsWhatLookupsFindAmongManyZones) { expect_same_lookups(make_store(100).view()); }

TEST(ReadAhead, FindsNothingInAStoreWithoutZones) {
  const ZoneStore store(std::vector<TestZone>{});
  const dns::Name wanted = name("www.example.com.");
  ReadAhead ahead;
  ahead.add(wanted);
  ahead.run(store.view());
  EXPECT_FALSE(ahead.zone(0));
}

}  // namespace read_ahead_test
}  // namespace pando::zone
