#include "manager/upkeep/history_shortening.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace history_shortening_test {

TEST(HistoryShortening, IsDueAboveTheLimit) {
  HistoryShortening histories;
  EXPECT_FALSE(histories.exceeds(UINT64_MAX)) << "no limit at first";
  histories.set_limit(1000);
  EXPECT_FALSE(histories.exceeds(1000));
  EXPECT_TRUE(histories.exceeds(1001));
}

TEST(HistoryShortening, WaitsForGrowthAfterAFruitlessWalk) {
  HistoryShortening histories;
  histories.set_limit(1000);
  histories.begin_walk(1600);
  EXPECT_TRUE(histories.is_walking());
  histories.end_walk(1600);
  EXPECT_FALSE(histories.is_walking());
  EXPECT_FALSE(histories.exceeds(1800));
  EXPECT_TRUE(histories.exceeds(1801));
  histories.begin_walk(1801);
  histories.end_walk(1700);
  EXPECT_TRUE(histories.exceeds(1001)) << "the walk has gained";
}

TEST(HistoryShortening, GoesOnBehindTheLastZoneWithFewerZonesWhenSpaceIsLow) {
  HistoryShortening histories;
  EXPECT_EQ(histories.zones_per_step(), 8U);
  for (const std::size_t zones : {4U, 2U, 1U, 1U}) {
    histories.step_failed();
    EXPECT_EQ(histories.zones_per_step(), zones);
  }
  const dns::Name zone = dns::Name::from_text("b.example.").value();
  histories.step_done(zone);
  EXPECT_EQ(histories.cursor(), zone);
  EXPECT_EQ(histories.zones_per_step(), 2U);
  for (int step = 0; step < 5; ++step) histories.step_done(zone);
  EXPECT_EQ(histories.zones_per_step(), 8U);
}

}  // namespace history_shortening_test
}  // namespace pando::manager
