#include "manager/rollback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "manager/zone_diff.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace {

using testing::name;
using testing::record;
using testing::ZoneStore;
using Lines = std::vector<std::string>;

std::string soa_line(std::uint32_t serial, int minimum = 300) {
  return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 {}", serial, minimum);
}

Result<zone::Changes> back_to(const ZoneStore& store, std::uint32_t serial) {
  return rollback_changes(store.zone(), {serial}, config::SerialPolicy::kIncrement, 0);
}

zone::Changes changes(const Lines& removed, const Lines& added) {
  zone::Changes result{name("@"), {}, {}};
  for (const std::string& line : removed) result.removed.push_back(record(line));
  for (const std::string& line : added) result.added.push_back(record(line));
  return result;
}

/// The zone's records, without the SOA's serial.
Lines data_of(const ZoneStore& store) {
  Lines lines = store.lines();
  for (std::string& line : lines)
    if (const auto at = line.find(" SOA "); at != std::string::npos)
      line.erase(line.find(std::to_string(store.zone().serial().value), at),
                 std::to_string(store.zone().serial().value).size());
  return lines;
}

TEST(Rollback, TheZoneIsAsItWasUnderALaterSerial) {
  ZoneStore store;
  const Lines before = data_of(store);
  store.apply(changes({soa_line(10), "www 300 A 192.0.2.10"},
                      {soa_line(11, 60), "new 60 A 192.0.2.77", "alias 60 CNAME www"}));
  store.apply(changes({soa_line(11, 60), "a.b.deep 300 TXT \"below an empty non-terminal\""},
                      {soa_line(12, 60)}));
  store.apply(shm::test::must(back_to(store, 10)));
  EXPECT_EQ(store.zone().serial(), dns::Serial{13});
  EXPECT_EQ(data_of(store), before);
}

TEST(Rollback, WhatCameAndWentIsLeftAlone) {
  ZoneStore store;
  store.apply(changes({soa_line(10)}, {soa_line(11), "x 60 A 192.0.2.77"}));
  store.apply(changes({soa_line(11), "x 60 A 192.0.2.77"}, {soa_line(12)}));
  const auto back = shm::test::must(back_to(store, 10));
  EXPECT_EQ(back.removed.size(), 1U) << "the SOA alone";
  EXPECT_EQ(back.added.size(), 1U);
}

TEST(Rollback, TheSerialThatIsServedNeedsNothing) {
  ZoneStore store;
  EXPECT_TRUE(shm::test::must(back_to(store, 10)).empty());
}

TEST(Rollback, BeyondTheHistoryThereIsNothing) {
  ZoneStore store;
  store.apply(changes({soa_line(10)}, {soa_line(11), "x 60 A 192.0.2.77"}));
  for (const std::uint32_t serial : {9U, 12U}) {
    const auto back = back_to(store, serial);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, Errc::kNotFound);
    EXPECT_THAT(back.error().text, ::testing::HasSubstr("does not reach back"));
  }
}

TEST(Rollback, FromAnywhereToAnywhereAgain) {
  const char* const given = std::getenv("PANDO_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  SCOPED_TRACE(fmt::format("again with PANDO_SEED={}", seed));
  std::mt19937_64 random(seed);
  ZoneStore store;
  std::map<std::uint32_t, Lines> versions{{10, data_of(store)}};
  for (int step = 0; step < 200; ++step) {
    const std::uint32_t serial = store.zone().serial().value;
    if (random() % 4 == 0) {
      auto version = versions.begin();
      std::advance(version, static_cast<std::ptrdiff_t>(random() % versions.size()));
      const Lines wanted = version->second;
      store.apply(shm::test::must(back_to(store, version->first)));
      ASSERT_EQ(data_of(store), wanted);
    } else {
      zone::Changes next = changes({}, {soa_line(serial + 1, static_cast<int>(random() % 3))});
      for (std::uint64_t i = random() % 4 + 1; i > 0; --i)
        (random() % 2 == 0 ? next.added : next.removed)
            .push_back(record(fmt::format("r{} {} A 192.0.2.{}", random() % 5,
                                          60 + 30 * (random() % 2), random() % 3)));
      next.removed.push_back(*soa_record(store.zone()));
      store.apply(next);
    }
    versions[store.zone().serial().value] = data_of(store);
  }
}

}  // namespace
}  // namespace pando::manager
