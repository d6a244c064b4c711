#include "ipc/busy_zones.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace pando::ipc {
namespace busy_zones_test {

TEST(BusyZones, ACounterHasAZoneAndItsNotes) {
  const auto read = BusyZone::of(BusyZone{0xFFFFFFFF, 7}.value());
  EXPECT_EQ(read.zone, 0xFFFFFFFFU);
  EXPECT_EQ(read.notes, 7U);
  EXPECT_EQ(BusyZone::of(0).notes, 0U);
}

TEST(BusyZones, AZoneIsFoundOrTakesThePlaceWithTheFewestNotes) {
  std::array<std::atomic<std::uint64_t>, kCountersUsed> counters{};
  EXPECT_EQ(find_busy(counters, 0), kBusyBase) << "an empty counter is not the one of zone 0";
  constexpr std::uint32_t kZones = kBusyZones;
  for (std::uint32_t i = 0; i < kZones; ++i)
    counters[kBusyBase + i] = BusyZone{100 + i, 10 + (i + 3) % kZones}.value();
  EXPECT_EQ(find_busy(counters, 105), kBusyBase + 5);
  EXPECT_EQ(find_busy(counters, 7), kBusyBase + kBusyZones - 3);
}

}  // namespace busy_zones_test
}  // namespace pando::ipc
