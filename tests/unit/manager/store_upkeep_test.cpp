#include "manager/store_upkeep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "manager/soa.h"
#include "manager/zone_diff.h"
#include "shm/reserve.h"
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

/// Takes all room that the group's version still has, so that no root block fits behind it.
Status take_all_room(Stage& stage) {
  stage.transaction.use_reserve();
  for (std::size_t octets = shm::kChunkOctets; octets >= shm::kUnit; octets /= 2)
    while (stage.transaction.allocate(octets)) {
    }
  return {};
}

TEST(StoreUpkeep, AStepWhoseVersionFindsNoRoomIsNotRepeatedAsItWas) {
  constexpr int kNames = 10'000;
  Parts parts(8 << 20);
  fill(parts, kNames);
  zone::Changes scattered{name("@"), {}, {}};
  for (int i = 0; i < kNames; ++i)
    if (i % 5 < 3)
      scattered.removed.push_back(
          record(fmt::format("host{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
  const auto deleted = parts.submit(std::move(scattered));
  ASSERT_TRUE(parts.run_until([&] { return deleted->has_value(); }));
  ASSERT_TRUE((*deleted)->has_value());
  const std::uint64_t before = octets_in_use(parts);
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.start();
  // Upkeep begins its steps itself; what rides along with them comes behind, in the same version.
  bool crowded = true;
  std::vector<std::uint64_t> steps;  // octets that each moved
  parts.committer.on_idle_room([&]() -> std::optional<CommitRequest> {
    if (!crowded) return std::nullopt;
    CommitRequest neighbour;
    neighbour.stage = [&](Stage& stage) {
      steps.push_back(stage.transaction.allocated_octets());
      return take_all_room(stage);
    };
    neighbour.done = [](const Result<std::uint64_t>& version) { EXPECT_FALSE(version); };
    return neighbour;
  });
  constexpr std::size_t kEndless = 50;
  ASSERT_TRUE(
      parts.run_until([&] { return upkeep.counters().walks > 1 || steps.size() >= kEndless; }));
  EXPECT_LT(steps.size(), kEndless) << "the first walk does not end";
  EXPECT_TRUE(std::is_sorted(steps.rbegin(), steps.rend())) << "a step grew that found no room";
  EXPECT_LT(steps.back(), steps.front() / 4);
  crowded = false;
  EXPECT_TRUE(parts.run_until([&] { return octets_in_use(parts) < before * 3 / 4; }));
  EXPECT_TRUE(parts.zone.store().check().has_value());
  upkeep.stop();
}

/// A store that its clients have filled to the limit, and what they then do.
class FullStore : public ::testing::Test {
 protected:
  explicit FullStore(std::uint64_t size_limit = 4 << 20)
      : parts_(size_limit), upkeep_(parts_.io, parts_.zone.store(), parts_.committer, {}) {
    upkeep_.start();
  }
  ~FullStore() override { upkeep_.stop(); }

  bool submit(zone::Changes changes) {
    auto result = parts_.submit(std::move(changes));
    EXPECT_TRUE(parts_.run_until([&] { return result->has_value(); }));
    const bool done = result->has_value() && (*result)->has_value();
    if (!done) {
      EXPECT_EQ((*result)->error().code, Errc::kFull) << (*result)->error().text;
    }
    return done;
  }
  /// As a client that tries again and again; false when that leads nowhere.
  bool delete_steadily(const zone::Changes& changes) {
    for (int tries = 0; tries < 1000; ++tries) {
      if (submit(changes)) return true;
      parts_.io.restart();
      parts_.io.run_one_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  /// Adds groups of `group` records that `line` gives until there is no room; returns how many.
  int fill_up(int from, int group, const std::function<std::string(int)>& line) {
    for (int number = from;; number += group) {
      zone::Changes changes{name("@"), {}, {}};
      for (int i = 0; i < group; ++i) changes.added.push_back(record(line(number + i)));
      if (!submit(std::move(changes))) return number - from;
    }
  }
  /// That it comes to rest, and stays so for longer than its pauses are.
  void expect_rest() {
    using Clock = std::chrono::steady_clock;
    std::uint64_t steps = upkeep_.counters().steps;
    auto since = Clock::now();
    const bool rests = parts_.run_until([&] {
      if (std::exchange(steps, upkeep_.counters().steps) != steps) since = Clock::now();
      return Clock::now() - since > std::chrono::milliseconds(2500);
    });
    EXPECT_TRUE(rests);
    EXPECT_TRUE(parts_.zone.store().check().has_value());
  }

  Parts parts_;
  StoreUpkeep upkeep_;
};

std::string small_line(int number) {
  return fmt::format("host{} 300 A 10.{}.{}.{}", number, number >> 16, number >> 8 & 255,
                     number & 255);
}

std::string large_line(int number, int octets) {
  std::string line = fmt::format("large{} 300 TXT", number);
  for (int i = 0; i < octets / 250; ++i) line += fmt::format(" \"{:0>249}\"", number);
  return line;
}

TEST_F(FullStore, OfSmallRecordsTakesScatteredDeletesOneByOneAndThenAll) {
  const int names = fill_up(0, 100, small_line);
  ASSERT_GT(names, 10'000);
  expect_rest();
  std::vector<bool> there(static_cast<std::size_t>(names), true);
  // Each copies a path of the trie: some times what the reserve has.
  for (int i = 0; i < 3000; ++i) {
    const int number = static_cast<int>(i * 7919LL % names);
    ASSERT_TRUE(delete_steadily({name("@"), {record(small_line(number))}, {}})) << i;
    there[static_cast<std::size_t>(number)] = false;
  }
  EXPECT_GT(upkeep_.counters().walks, 0U);
  zone::Changes rest{name("@"), {}, {}};
  for (int number = 0; number < names; ++number) {
    if (there[static_cast<std::size_t>(number)]) rest.removed.push_back(record(small_line(number)));
    if (rest.removed.size() < 50 && number + 1 < names) continue;
    ASSERT_TRUE(delete_steadily(std::exchange(rest, {name("@"), {}, {}}))) << number;
  }
  EXPECT_TRUE(parts_.run_until([&] { return octets_in_use(parts_) < 8 * shm::kChunkOctets; }));
  EXPECT_GT(fill_up(names, 100, small_line), names * 9 / 10);
  expect_rest();
}

TEST_F(FullStore, OfLargeRecordsGivesBackWhatEverySecondDeleteLeft) {
  const auto line = [](int number) { return large_line(number, 14'000); };
  const int names = fill_up(0, 1, line);
  ASSERT_GT(names, 100);
  for (int number = 0; number < names; number += 2)
    ASSERT_TRUE(delete_steadily({name("@"), {record(line(number))}, {}})) << number;
  // Half of each chunk is free, and all of that is to be had again.
  EXPECT_TRUE(
      parts_.run_until([&] { return octets_in_use(parts_) < (std::uint64_t{4} << 20) * 3 / 4; }));
  EXPECT_GT(fill_up(names, 1, line), names / 3);
  for (int number = 1; number < names; number += 2)
    ASSERT_TRUE(delete_steadily({name("@"), {record(line(number))}, {}})) << number;
  expect_rest();
}

TEST_F(FullStore, WithoutGarbageIsNotWalkedAgainAndAgain) {
  ASSERT_GT(fill_up(0, 1000, small_line), 10'000);
  expect_rest();
  // What is refused changes nothing.
  for (int i = 1; i <= 20; ++i) fill_up(i * 100'000, 1000, small_line);
  expect_rest();
}

/// Small additions that find room behind others must not use up what deletes need.
TEST_F(FullStore, KeepsItsReserveFromSmallAdditions) {
  ASSERT_GT(fill_up(0, 100, small_line), 10'000);
  upkeep_.stop();
  while (fill_up(1'000'000 + static_cast<int>(parts_.committer.counters().requests), 1,
                 small_line) > 0) {
  }
  const auto stats = parts_.zone.store().stats();
  const std::uint64_t limit = stats.limit_octets / shm::kChunkOctets;
  // A root block may take one.
  EXPECT_GE(limit - stats.chunks_in_use + 1, shm::reserve_chunks(limit));
  for (int number = 0; number < 50; ++number)
    EXPECT_TRUE(submit({name("@"), {record(small_line(number))}, {}})) << number;
  EXPECT_GE(limit - parts_.zone.store().stats().chunks_in_use + 1, shm::compaction_chunks(limit));
}

}  // namespace
}  // namespace pando::manager
