#include "shm/counts/zone_counts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace zone_counts_test {

using namespace test;

std::uint64_t counted(const Folder& folder, std::uint64_t key, std::size_t counter) {
  const auto found = must(ZoneCountsView::open(folder.path())).find(key);
  return found ? (*found)[counter] : 0;
}

TEST(ZoneCounts, AreReadByAnother) {
  const Folder folder;
  auto counts = must(ZoneCounts::open(folder.path(), 10));
  for (int i = 0; i < 3; ++i) counts.count(77, 2);
  counts.count(78, kZoneCounters - 1);
  EXPECT_EQ(counted(folder, 77, 2), 3U);
  EXPECT_EQ(counted(folder, 77, 1), 0U);
  EXPECT_EQ(counted(folder, 78, kZoneCounters - 1), 1U);
  EXPECT_FALSE(must(ZoneCountsView::open(folder.path())).find(79));
}

TEST(ZoneCounts, GoOnWithTheNextManager) {
  const Folder folder;
  must(ZoneCounts::open(folder.path(), 10)).count(77, 0);
  must(ZoneCounts::open(folder.path(), 10)).count(77, 0);
  EXPECT_EQ(counted(folder, 77, 0), 2U);
}

TEST(ZoneCounts, BeginAnewWithAnotherNumberOfRows) {
  const Folder folder;
  must(ZoneCounts::open(folder.path(), 10)).count(77, 0);
  auto larger = must(ZoneCounts::open(folder.path(), 100'000));
  EXPECT_EQ(counted(folder, 77, 0), 0U);
  larger.count(77, 0);
  EXPECT_EQ(counted(folder, 77, 0), 1U);
}

TEST(ZoneCounts, OfADamagedFileBeginAnew) {
  const Folder folder;
  must(ZoneCounts::open(folder.path(), 10)).count(77, 0);
  const std::string path = zone_counts_path(folder.path());
  const auto size = std::filesystem::file_size(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).write("nonsense", 8);
  EXPECT_FALSE(ZoneCountsView::open(folder.path()).has_value());
  must(ZoneCounts::open(folder.path(), 10));
  EXPECT_EQ(counted(folder, 77, 0), 0U);
  for (const std::uintmax_t bytes : {std::uintmax_t{0}, std::uintmax_t{31}, size - 1}) {
    std::filesystem::resize_file(path, bytes);
    EXPECT_EQ(ZoneCountsView::open(folder.path()).error().code, Errc::kLayout) << bytes;
    must(ZoneCounts::open(folder.path(), 10));
    EXPECT_EQ(std::filesystem::file_size(path), size);
  }
}

/// Every zone that the server may show has its row, and zones beyond are counted together.
TEST(ZoneCounts, HaveRoomForTheZonesAndSaySoWithout) {
  const Folder folder;
  constexpr std::uint64_t kZones = 1000, kOdd = 0x9E3779B97F4A7C15;
  auto counts = must(ZoneCounts::open(folder.path(), kZones));
  for (std::uint64_t i = 1; i <= kZones; ++i) counts.count(i * kOdd, 0);
  const auto view = must(ZoneCountsView::open(folder.path()));
  EXPECT_EQ(view.without_row(), 0U);
  for (std::uint64_t i = 1; i <= kZones; ++i) EXPECT_TRUE(view.find(i * kOdd)) << i;
  for (std::uint64_t i = kZones + 1; i <= 100 * kZones; ++i) counts.count(i * kOdd, 0);
  EXPECT_GT(view.without_row(), 90 * kZones);
  for (std::uint64_t i = 1; i <= kZones; ++i)
    EXPECT_EQ((*view.find(i * kOdd))[0], 1U) << "older rows stay";
}

TEST(ZoneCounts, AreGoneWhenNobodyWantsThem) {
  const Folder folder;
  must(ZoneCounts::open(folder.path(), 10));
  ZoneCounts::remove(folder.path());
  EXPECT_EQ(ZoneCountsView::open(folder.path()).error().code, Errc::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace zone_counts_test
}  // namespace pando::shm
