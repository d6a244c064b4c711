#include "config/settings/zone_table.h"

#include <gtest/gtest.h>

namespace pando::config {
namespace zone_table_test {

dns::Name name(const std::string& text) { return *dns::Name::from_text(text); }

TEST(ZoneTable, KeepsZonesInTheirOrder) {
  ZoneTable table("/etc/pando");
  const auto plain = table.add_options({});
  ZoneOptions secondary;
  secondary.primaries = {"upstream"};
  const auto other = table.add_options(secondary);
  ASSERT_TRUE(table.add(name("b.example"), "b.zone", plain));
  ASSERT_TRUE(table.add(name("A.example"), "/abs/a.zone", other));
  ASSERT_TRUE(table.add(name("."), "", other));
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(dns::to_text(table[0].name), "b.example.");
  EXPECT_EQ(table[0].file, "b.zone");
  EXPECT_FALSE(table[0].options->is_secondary());
  EXPECT_EQ(dns::to_text(table[1].name), "A.example.") << "case is kept";
  EXPECT_TRUE(table[1].options->is_secondary());
  EXPECT_EQ(table.path(0), "/etc/pando/b.zone");
  EXPECT_EQ(table.path(1), "/abs/a.zone");
  EXPECT_EQ(table.path(2), "");
}

TEST(ZoneTable, FindsNamesInAnyCase) {
  ZoneTable table;
  table.add_options({});
  EXPECT_FALSE(table.find(name("a.")));
  ASSERT_TRUE(table.add(name("Example.COM"), "f", 0));
  EXPECT_EQ(table.find(name("eXAMPLE.com")), 0U);
  EXPECT_FALSE(table.find(name("com")));
  EXPECT_EQ(table.options_of(name("eXAMPLE.com")), table[0].options);
  EXPECT_EQ(table.options_of(name("com")), nullptr);
}

TEST(ZoneTable, RefusesASecondZoneOfTheSameName) {
  ZoneTable table;
  table.add_options({});
  ASSERT_TRUE(table.add(name("example.com"), "f", 0));
  const auto again = table.add(name("EXAMPLE.com"), "g", 0);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kExists);
  EXPECT_EQ(table.size(), 1U);
}

TEST(ZoneTable, HoldsManyZones) {
  constexpr std::size_t kZones = 20000;
  ZoneTable table;
  table.add_options({});
  for (std::size_t i = 0; i < kZones; ++i)
    ASSERT_TRUE(table.add(name(fmt::format("z{}.example", i)), fmt::format("f{}", i), 0));
  for (std::size_t i = 0; i < kZones; ++i)
    ASSERT_EQ(table.find(name(fmt::format("Z{}.example", i))), i);
  EXPECT_EQ(table[kZones - 1].file, fmt::format("f{}", kZones - 1));
  EXPECT_FALSE(table.find(name("z20000.example")));
}

}  // namespace zone_table_test
}  // namespace pando::config
