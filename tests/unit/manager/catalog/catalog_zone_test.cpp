#include "manager/catalog/catalog_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace catalog_zone_test {

using testing::name;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

/// The members that a catalog with these records besides SOA and NS has.
Result<std::vector<CatalogMember>> read(Lines lines) {
  lines.insert(lines.begin(),
               {"@ 0 SOA invalid. invalid. 1 3600 600 2147483646 0", "@ 0 NS invalid."});
  const testing::ZoneStore store(lines);
  return read_catalog(store.zone());
}

std::string fault_of(const Lines& lines) {
  const auto members = read(lines);
  return members ? "none" : members.error().text;
}

TEST(CatalogZone, HasMembersWithTheirProperties) {
  const auto members = read({"version 0 TXT \"2\"",
                             "a1.zones 0 PTR member.test.",
                             "group.a1.zones 0 TXT \"gold\"",
                             "B2.ZONES 0 PTR Other.test.",
                             "coo.b2.zones 0 PTR next-catalog.test.",
                             "group.b2.zones 0 TXT \"one\" \"two\"",
                             "group.b2.zones 0 TXT \"three\""});
  ASSERT_TRUE(members) << members.error().text;
  ASSERT_EQ(members->size(), 2U);
  EXPECT_EQ((*members)[0], (CatalogMember{name("member.test."), "a1", {"gold"}, {}}));
  EXPECT_EQ((*members)[1].zone, name("other.test."));
  EXPECT_EQ((*members)[1].id, "b2");
  EXPECT_EQ((*members)[1].new_catalog, name("next-catalog.test."));
  EXPECT_THAT((*members)[1].groups, ::testing::UnorderedElementsAre("onetwo", "three"));
}

TEST(CatalogZone, MayBeEmpty) { EXPECT_TRUE(read({"version 0 TXT 2"})->empty()); }

TEST(CatalogZone, LeavesOutWhatItDoesNotKnow) {
  const auto members = read({"version 0 TXT 2", "version.ext 0 TXT x", "a.zones 0 PTR a.test.",
                             "zones 0 PTR no-member.test.", "other.a.zones 0 TXT x",
                             "x.group.a.zones 0 TXT deeper", "a.zones 0 TXT \"beside it\"",
                             "group.lonely.zones 0 TXT \"no member\"", "b.zone 0 PTR b.test."});
  ASSERT_TRUE(members) << members.error().text;
  EXPECT_THAT(*members, ElementsAre(CatalogMember{name("a.test."), "a", {}, {}}));
}

TEST(CatalogZone, IsBrokenWithoutVersion2) {
  EXPECT_EQ(fault_of({"a.zones 0 PTR a.test."}), "it has no version: TXT \"2\" at 'version'");
  EXPECT_EQ(fault_of({"version 0 TXT 1"}), "version.example. is '1', not 2");
  EXPECT_EQ(fault_of({"version 0 TXT 2", "version 0 TXT 3"}),
            "version.example. has 2 TXT records");
}

TEST(CatalogZone, IsBrokenWhereAMemberIsNotOneZone) {
  EXPECT_EQ(fault_of({"version 0 TXT 2", "a.zones 0 PTR a.test.", "a.zones 0 PTR b.test."}),
            "a.zones.example. has 2 PTR records");
  EXPECT_EQ(fault_of({"version 0 TXT 2", "a.zones 0 PTR a.test.", "b.zones 0 PTR A.test."}),
            "b.zones.example. has zone A.test., which another member is already");
  EXPECT_THAT(fault_of({"version 0 TXT 2", "a.zones 0 PTR a.test.", "coo.a.zones 0 PTR x.",
                        "coo.a.zones 0 PTR y."}),
              HasSubstr("coo.a.zones.example. has 2 PTR records"));
}

}  // namespace catalog_zone_test
}  // namespace pando::manager
