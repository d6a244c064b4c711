#include "manager/change/change_list.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace change_list_test {

using testing::name;

TEST(ChangeList, HasTheChangeOfAZoneUntilItIsRemoved) {
  ChangeList list;
  const dns::Name zone = name("a");
  const ChangeUnderWay change{ChangeSource::kFile};
  list.add(zone, change);
  EXPECT_FALSE(list.oldest(name("b")));
  const auto found = list.oldest(name("A"));
  ASSERT_TRUE(found) << "in any case of letters";
  EXPECT_EQ(found->source, ChangeSource::kFile);
  EXPECT_EQ(found->step, ChangeStep::kStaging);
  list.remove(zone, change);
  EXPECT_FALSE(list.oldest(zone));
  EXPECT_TRUE(list.empty());
}

TEST(ChangeList, TellsTheChangeWhoseStepBeganFirst) {
  ChangeList list;
  const dns::Name zone = name("a");
  ChangeUnderWay update{ChangeSource::kUpdate};
  ChangeUnderWay transfer{ChangeSource::kTransfer};
  transfer.since = update.since + std::chrono::seconds(1);
  list.add(zone, transfer);
  list.add(zone, update);
  EXPECT_EQ(list.oldest(zone)->source, ChangeSource::kUpdate);
  update.reach(ChangeStep::kJournalling);
  update.since = transfer.since + std::chrono::seconds(1);
  EXPECT_EQ(list.oldest(zone)->source, ChangeSource::kTransfer);
  list.remove(zone, transfer);
  EXPECT_EQ(list.oldest(zone)->step, ChangeStep::kJournalling);
}

TEST(ChangeList, HasAChangeOfSeveralZonesAtEachOfThem) {
  ChangeList list;
  const dns::Name zones[] = {name("a"), name("b")};
  const ChangeUnderWay change{ChangeSource::kEdit};
  for (const dns::Name& zone : zones) list.add(zone, change);
  list.remove(zones[0], change);
  EXPECT_FALSE(list.oldest(zones[0]));
  EXPECT_TRUE(list.oldest(zones[1]));
}

}  // namespace change_list_test
}  // namespace pando::manager
