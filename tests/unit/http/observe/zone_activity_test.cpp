#include "http/observe/zone_activity.h"

#include <gtest/gtest.h>

#include "shm/counts/zone_counts.h"
#include "tests/unit/shm/support.h"

namespace pando::http {
namespace zone_activity_test {

using ipc::ZoneCounter;
using ipc::ZoneTransfer;

std::size_t at(auto counter) { return static_cast<std::size_t>(counter); }

std::vector<ZoneFacts> zones_with_keys(std::initializer_list<std::uint64_t> keys) {
  std::vector<ZoneFacts> zones;
  for (const std::uint64_t key : keys) zones.emplace_back().count_key = key;
  return zones;
}

TEST(ZoneActivity, IsOfAllWorkersTogether) {
  const shm::test::Folder folder;
  std::vector<shm::SlotCopy> slots(2);
  slots[0].transfers = {{7, {1, 2, 0, 0}}, {8, {0, 0, 5, 0}}};
  slots[1].transfers = {{7, {10, 0, 0, 3}}, {9, {1, 1, 1, 1}}};
  auto zones = zones_with_keys({7, 8, 10});
  EXPECT_FALSE(add_activity(zones, slots, folder.path())) << "the manager counts nothing";
  EXPECT_EQ(zones[0].transfers_out[at(ZoneTransfer::kAxfr)], 11U);
  EXPECT_EQ(zones[0].transfers_out[at(ZoneTransfer::kIxfr)], 2U);
  EXPECT_EQ(zones[0].transfers_out[at(ZoneTransfer::kFailed)], 3U);
  EXPECT_EQ(zones[1].transfers_out[at(ZoneTransfer::kCurrent)], 5U);
  EXPECT_EQ(zones[2].transfers_out, decltype(ZoneFacts::transfers_out){});
}

TEST(ZoneActivity, HasTheManagersCounts) {
  const shm::test::Folder folder;
  auto counts = shm::test::must(shm::ZoneCounts::open(folder.path(), 10));
  counts.count(7, at(ZoneCounter::kUpdatesAccepted));
  counts.count(7, at(ZoneCounter::kUpdatesAccepted));
  counts.count(8, at(ZoneCounter::kTransfersInIxfr));
  auto zones = zones_with_keys({7, 8, 9});
  EXPECT_EQ(add_activity(zones, {}, folder.path()), 0U);
  EXPECT_EQ(zones[0].counted[at(ZoneCounter::kUpdatesAccepted)], 2U);
  EXPECT_EQ(zones[0].counted[at(ZoneCounter::kTransfersInIxfr)], 0U);
  EXPECT_EQ(zones[1].counted[at(ZoneCounter::kTransfersInIxfr)], 1U);
  EXPECT_EQ(zones[2].counted, decltype(ZoneFacts::counted){});
}

}  // namespace zone_activity_test
}  // namespace pando::http
