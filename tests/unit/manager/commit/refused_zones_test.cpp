#include "manager/commit/refused_zones.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace refused_zones_test {

dns::Name zone(const char* text) { return dns::Name::from_text(text).value(); }

TEST(RefusedZones, KeepTheFirstZoneAndItsReason) {
  RefusedZones refused;
  refused.add(zone("b.example."), "full");
  refused.add(zone("a.example."), "fuller");
  RefusedZones more;
  more.add(zone("c.example."), "fullest");
  refused.add(more);
  EXPECT_EQ(refused.zones(), 3U);
  std::string report;
  refused.append_to(report, "zones not added");
  EXPECT_EQ(report, "3 zones not added (b.example. first): full");
  RefusedZones none;
  none.add(more);
  EXPECT_EQ(none.first(), zone("c.example."));
}

TEST(SpaceRefusals, ReportEachKindThatThereWas) {
  SpaceRefusals refusals;
  EXPECT_EQ(refusals.report(), "");
  refusals.unfit.add(zone("a."), "x");
  EXPECT_EQ(refusals.report(), "1 zones not brought in line (a. first): x");
  refusals.not_removed.add(zone("b."), "y");
  EXPECT_EQ(refusals.report(),
            "1 zones not removed (b. first): y; 1 zones not brought in line (a. first): x");
}

}  // namespace refused_zones_test
}  // namespace pando::manager
