#include "manager/commit/rollback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "manager/commit/zone_diff.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace rollback_test {

using testing::name;
using testing::record;
using testing::ZoneStore;
using Lines = std::vector<std::string>;

std::string soa_line(std::uint32_t serial, int minimum = 300) {
  return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 {}", serial, minimum);
}

Result<zone::Changeset> back_to(const ZoneStore& store, std::uint32_t serial) {
  return rollback_changes(store.zone(), {serial}, config::SerialPolicy::kIncrement, 0);
}

zone::Changeset changes(const Lines& removed, const Lines& added) {
  zone::Changeset result{name("@"), {}, {}};
  for (const std::string& line : removed) result.removed.push_back(record(line));
  for (const std::string& line : added) result.added.push_back(record(line));
  return result;
}

/// Gives the present version a label.
void save(ZoneStore& store, std::string_view label) {
  store.commit([&](zone::Draft& draft) { return draft.take_snapshot(name("@"), label, 1, {}); });
}

Result<zone::Changeset> back_to(const ZoneStore& store, std::string_view label) {
  const auto snapshots = zone::snapshots_of(store.zone());
  const zone::ZoneSnapshot* version = zone::find_snapshot(snapshots, label);
  if (version == nullptr) return fail(Errc::kNotFound, "no {}", label);
  return rollback_changes(store.zone(), *version, config::SerialPolicy::kIncrement, 0);
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

TEST(Rollback, ToALabelIsToItsSerial) {
  ZoneStore store;
  const Lines before = data_of(store);
  save(store, "before");
  EXPECT_TRUE(shm::test::must(back_to(store, "before")).empty());
  store.apply(changes({soa_line(10), "www 300 A 192.0.2.10"}, {soa_line(11, 60)}));
  store.apply(shm::test::must(back_to(store, "before")));
  EXPECT_EQ(store.zone().serial(), dns::Serial{12});
  EXPECT_EQ(data_of(store), before);
}

TEST(Rollback, ToALabelWhoseZoneWasReplaced) {
  ZoneStore store;
  const Lines first = data_of(store);
  save(store, "first");
  store.apply(changes({soa_line(10), "www 300 A 192.0.2.10", "www 300 A 192.0.2.11"},
                      {soa_line(11, 60), "new 60 A 192.0.2.77"}));
  const Lines second = data_of(store);
  save(store, "second");
  store.put({soa_line(40), "@ 60 NS ns1", "ns1 3600 A 192.0.2.1", "www 5 A 192.0.2.10"});
  store.apply(shm::test::must(back_to(store, "first")));
  EXPECT_EQ(store.zone().serial(), dns::Serial{41});
  EXPECT_EQ(data_of(store), first);
  store.apply(shm::test::must(back_to(store, "second")));
  EXPECT_EQ(store.zone().serial(), dns::Serial{42});
  EXPECT_EQ(data_of(store), second);
  EXPECT_TRUE(shm::test::must(back_to(store, "second")).empty()) << "the zone is just that";
}

TEST(Rollback, ToALabelThatWasLostIsRefusedWithTheReason) {
  ZoneStore store;
  save(store, "lost");
  store.apply(changes({}, {"x 60 A 192.0.2.77"}));
  const auto back = back_to(store, "lost");
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, Errc::kNotFound);
  EXPECT_EQ(back.error().text, "snapshot 'lost' of example. was lost: the change history ended");
}

TEST(Rollback, FromAnywhereToAnywhereAgain) {
  const char* const given = std::getenv("PANDO_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  SCOPED_TRACE(fmt::format("again with PANDO_SEED={}", seed));
  std::mt19937_64 random(seed);
  ZoneStore store;
  std::map<std::uint32_t, Lines> versions{{10, data_of(store)}};
  std::map<std::string, Lines> labels;
  for (int step = 0; step < 200; ++step) {
    const std::uint32_t serial = store.zone().serial().value;
    if (random() % 16 == 0 && labels.size() < 10) {
      const std::string label = fmt::format("v{}", step);
      save(store, label);
      labels[label] = data_of(store);
    } else if (random() % 30 == 0) {
      store.put({soa_line(serial + 1), "@ 60 NS ns1", "r1 60 A 192.0.2.1", "r2 90 A 192.0.2.1"});
      versions.clear();  // the history begins anew
    } else if (!labels.empty() && random() % 4 == 0) {
      auto label = labels.begin();
      std::advance(label, static_cast<std::ptrdiff_t>(random() % labels.size()));
      const auto back = shm::test::must(back_to(store, label->first));
      if (!back.empty()) store.apply(back);
      ASSERT_EQ(data_of(store), label->second) << label->first;
    } else if (random() % 4 == 0) {
      auto version = versions.begin();
      std::advance(version, static_cast<std::ptrdiff_t>(random() % versions.size()));
      const Lines wanted = version->second;
      store.apply(shm::test::must(back_to(store, version->first)));
      ASSERT_EQ(data_of(store), wanted);
    } else {
      zone::Changeset next = changes({}, {soa_line(serial + 1, static_cast<int>(random() % 3))});
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

class HistoryDiff : public ::testing::Test {
 protected:
  HistoryDiff() {
    store_.apply(changes({soa_line(10)}, {soa_line(11), "x 60 A 192.0.2.1", "y 60 A 192.0.2.2"}));
    store_.apply(changes({soa_line(11), "x 60 A 192.0.2.1"}, {soa_line(12)}));
    store_.apply(changes({soa_line(12), "www 300 A 192.0.2.10"}, {soa_line(13)}));
  }
  Result<zone::Changeset> between(std::uint32_t from, std::uint32_t to, std::uint64_t most = 100) {
    return history_diff(store_.zone(), {from}, {to}, most);
  }
  /// The lines without owner's zone and SOA.
  static Lines owners(const std::vector<zone::Record>& records) {
    Lines lines;
    for (const zone::Record& record : records)
      lines.push_back(fmt::format("{} {}", to_text(record.owner.view()), to_text(record.type)));
    return lines;
  }

  ZoneStore store_;
};

TEST_F(HistoryDiff, LeadsFromOneSerialToALaterOne) {
  const auto diff = shm::test::must(between(10, 12));
  EXPECT_EQ(owners(diff.removed), Lines{"example. SOA"});
  EXPECT_EQ(owners(diff.added), (Lines{"example. SOA", "y.example. A"}));
  EXPECT_EQ(diff.removed[0].rdata, record(soa_line(10)).rdata);
  EXPECT_EQ(diff.added[0].rdata, record(soa_line(12)).rdata);
  EXPECT_EQ(owners(shm::test::must(between(12, 13)).removed),
            (Lines{"example. SOA", "www.example. A"}));
}

TEST_F(HistoryDiff, LeadsBackToo) {
  const auto diff = shm::test::must(between(13, 10));
  EXPECT_EQ(owners(diff.removed), (Lines{"example. SOA", "y.example. A"}));
  EXPECT_EQ(owners(diff.added), (Lines{"example. SOA", "www.example. A"}));
  EXPECT_TRUE(shm::test::must(between(12, 12)).empty());
}

TEST_F(HistoryDiff, ASerialThatTheHistoryLacksOrALongWayIsRefused) {
  EXPECT_EQ(between(9, 13).error().code, Errc::kNotFound);
  EXPECT_EQ(between(10, 99).error().code, Errc::kNotFound);
  EXPECT_EQ(between(10, 13, 4).error().code, Errc::kFull);
  EXPECT_TRUE(between(10, 11, 4).has_value()) << "what lies behind does not count";
}

}  // namespace rollback_test
}  // namespace pando::manager
