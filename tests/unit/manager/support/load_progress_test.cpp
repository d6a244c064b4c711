#include "manager/support/load_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::manager {
namespace load_progress_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const dns::Name kZone = dns::Name::from_text("example.com.").value();
constexpr LoadProgress::Clock::time_point kStart{seconds(1000)};

TEST(LoadProgress, AZoneIsUnderWayUntilItsLoadIsLetGo) {
  LoadsUnderWay loads;
  auto load = loads.begin(kZone, kStart);
  EXPECT_EQ(loads.find(dns::Name::from_text("EXAMPLE.com.").value()), load);
  EXPECT_EQ(loads.find(dns::Name::from_text("com.").value()), nullptr);
  load.reset();
  EXPECT_EQ(loads.find(kZone), nullptr);
}

TEST(LoadProgress, WhoeverLoadsSeesSoonThatItWasGivenUp) {
  LoadsUnderWay loads;
  const auto load = loads.begin(kZone, kStart);
  GivingUp giving_up(load.get());
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(giving_up.at_next_record());
  loads.give_up();
  EXPECT_TRUE(giving_up.now());
  int records = 0;
  while (!giving_up.at_next_record()) ASSERT_LT(++records, 4096);
  EXPECT_TRUE(giving_up.at_next_record()) << "from then on";
  EXPECT_FALSE(GivingUp(nullptr).now());
}

TEST(LoadProgress, WhatTakesLongIsToldEveryTenSeconds) {
  LoadsUnderWay loads;
  const auto load = loads.begin(kZone, kStart);
  EXPECT_THAT(loads.due(kStart + seconds(9)), IsEmpty());
  EXPECT_THAT(loads.due(kStart + seconds(10)), ElementsAre(load));
  EXPECT_THAT(loads.due(kStart + seconds(19)), IsEmpty());
  EXPECT_THAT(loads.due(kStart + seconds(20)), ElementsAre(load));
}

}  // namespace load_progress_test
}  // namespace pando::manager
