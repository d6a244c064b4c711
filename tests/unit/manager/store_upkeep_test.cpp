#include "manager/store_upkeep.h"

#include <gtest/gtest.h>

#include "manager/soa.h"
#include "manager/zone_diff.h"
#include "tests/unit/manager/parts.h"

namespace pando::manager {
namespace {

using testing::name;
using testing::Parts;
using testing::record;

std::uint64_t octets_in_use(Parts& parts) {
  return parts.zone.store().stats().chunks_in_use * shm::kChunkOctets;
}

void fill(Parts& parts, int names) {
  zone::Changes changes{name("@"), {}, {}};
  for (int i = 0; i < names; ++i)
    changes.added.push_back(record(fmt::format("host{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
  auto result = parts.submit(std::move(changes));
  ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
  ASSERT_TRUE((*result)->has_value());
}

/// Clients that each change one address, many at a time: the next update is sent when one is
/// answered.
class Churn {
 public:
  Churn(Parts& parts, int names, int total) : parts_(parts), names_(names), total_(total) {}

  void run(int parallel) {
    for (int i = 0; i < parallel; ++i) next();
    EXPECT_TRUE(parts_.run_until([this] { return answered_ == total_; }));
    EXPECT_EQ(failed_, 0);
  }
  std::uint64_t largest = 0;

 private:
  void next() {
    if (sent_ == total_) return;
    const int number = sent_++;
    parts_.committer.apply(
        [this, number](const zone::Snapshot& snapshot) -> Result<zone::Changes> {
          const dns::Name owner = name(fmt::format("host{}", (number * 7919) % names_));
          const auto found = snapshot.zone_at(name("@")).record_at(owner).find(dns::RRType::kA);
          const ByteView old = found.first_rdata();
          Bytes fresh(4);
          store_be32(fresh.data(), static_cast<std::uint32_t>(number));
          zone::Changes changes{name("@"), {}, {}};
          changes.removed.push_back(
              {owner, dns::RRType::kA, dns::Ttl{300}, Bytes(old.begin(), old.end())});
          changes.added.push_back({owner, dns::RRType::kA, dns::Ttl{300}, fresh});
          return changes;
        },
        {},
        [this](Result<zone::Applied> applied) {
          ++answered_;
          failed_ += applied ? 0 : 1;
          largest = std::max(largest, octets_in_use(parts_));
          next();
        });
  }

  Parts& parts_;
  int names_, total_;
  int sent_ = 0, answered_ = 0, failed_ = 0;
};

TEST(StoreUpkeep, AZoneUnderManySmallUpdatesStaysWithinOneAndAHalfTimesItsSize) {
  Parts parts;
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  fill(parts, 10'000);
  const std::uint64_t start = octets_in_use(parts);
  upkeep.start();
  Churn churn(parts, 10'000, 40'000);
  churn.run(16);
  EXPECT_LE(churn.largest, start + start / 2) << "started with " << start;
  EXPECT_GT(upkeep.counters().walks, 2U);
  EXPECT_TRUE(parts.zone.store().check().has_value());
  upkeep.stop();
}

TEST(StoreUpkeep, AReplacedZoneIsGivenBack) {
  Parts parts;
  fill(parts, 10'000);
  const std::uint64_t full = parts.zone.store().stats().live_octets;
  bool unloaded = false;
  parts.committer.edit([](zone::Draft& draft) { return draft.unload_zone(name("@")); },
                       [&](const Status&) { unloaded = true; });
  ASSERT_TRUE(parts.run_until([&] { return unloaded; }));
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.start();
  EXPECT_TRUE(parts.run_until([&] { return parts.zone.store().stats().live_octets < full / 20; }));
  EXPECT_TRUE(parts.run_until([&] { return octets_in_use(parts) < 8 * shm::kChunkOctets; }));
  upkeep.stop();
}

TEST(StoreUpkeep, AnIdleStoreIsLeftAlone) {
  Parts parts;
  fill(parts, 1000);
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.start();
  const std::uint64_t version = parts.committer.current().version();
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  EXPECT_EQ(parts.committer.current().version(), version);
  EXPECT_EQ(upkeep.counters().steps, 0U);
  upkeep.stop();
}

/// An update with the next serial.
void move_on(Parts& parts, int number) {
  const auto before = soa_record(parts.committer.current().zone_at(name("@")));
  ASSERT_TRUE(before);
  zone::Record after = *before;
  set_soa_serial(after.rdata, soa_serial(before->rdata).next());
  zone::Changes changes{name("@"), {*before}, {after}};
  changes.added.push_back(record(fmt::format("moved{} 300 A 10.0.0.1", number)));
  auto result = parts.submit(std::move(changes));
  ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
  ASSERT_TRUE((*result)->has_value());
}

TEST(StoreUpkeep, HistoriesAboveTheirTotalAreShortened) {
  Parts parts;
  for (int number = 0; number < 100; ++number) move_on(parts, number);
  const std::uint64_t before = parts.committer.current().history_octets();
  ASSERT_GT(before, 100U * 100);
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.set_history_total(before / 3);
  upkeep.start();
  EXPECT_TRUE(
      parts.run_until([&] { return parts.committer.current().history_octets() <= before / 3; }));
  EXPECT_GT(parts.committer.current().history_octets(), before / 6);
  upkeep.set_history_total(0);
  EXPECT_TRUE(parts.run_until([&] { return parts.committer.current().history_octets() == 0; }));
  upkeep.stop();
}

TEST(StoreUpkeep, WhatASnapshotNeedsIsLeftAndNotTriedAgainAndAgain) {
  Parts parts;
  for (int number = 0; number < 30; ++number) move_on(parts, number);
  bool saved = false;
  parts.committer.edit(
      [](zone::Draft& draft) { return draft.save_version(name("@"), "here", 1, {}); },
      [&](const Status& status) { saved = status.has_value(); });
  ASSERT_TRUE(parts.run_until([&] { return saved; }));
  const std::uint64_t before = parts.committer.current().history_octets();
  for (int number = 30; number < 40; ++number) move_on(parts, number);
  const std::uint64_t needed = parts.committer.current().history_octets() - before;
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.set_history_total(0);
  upkeep.start();
  EXPECT_TRUE(
      parts.run_until([&] { return parts.committer.current().history_octets() == needed; }));
  // A walk that frees nothing, and then none.
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  const std::uint64_t steps = upkeep.counters().steps;
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  EXPECT_EQ(upkeep.counters().steps, steps);
  EXPECT_EQ(parts.committer.current().history_octets(), needed);
  upkeep.stop();
}

}  // namespace
}  // namespace pando::manager
