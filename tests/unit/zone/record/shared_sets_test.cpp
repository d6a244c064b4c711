#include "zone/record/shared_sets.h"

#include <algorithm>

#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/draft/compaction.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/record/record_codec.h"

namespace pando::zone {
namespace shared_sets_test {

using testing::dump;
using testing::name;

constexpr int kDelegations = 12'000;
constexpr std::uint64_t kNever = UINT64_MAX;

/// A registry's zone: delegations to 50 name server sets, some with servers of their own.
class SharedSetsTest : public testing::ZoneTest {
 protected:
  static std::string owner(int i) { return "d" + std::to_string(i) + ".tld. "; }
  static std::string server(int set, int number) {
    return "ns" + std::to_string(number) + ".operator-of-domains-" + std::to_string(set) +
           ".example.";
  }
  static std::vector<std::string> registry() {
    std::vector<std::string> lines = {"tld. 60 SOA a.tld. b.tld. 1 2 3 4 5", "tld. 60 NS ns.tld.",
                                      "ns.tld. 60 A 192.0.2.1"};
    for (int i = 0; i < kDelegations; ++i) {
      const int set = i % 100 == 99 ? 1000 + i : i % 50;
      for (const int number : {1, 2, 3}) lines.push_back(owner(i) + "60 NS " + server(set, number));
      if (i % 10 == 0) lines.push_back(owner(i) + "60 DS 1 13 2 " + std::string(64, 'A'));
    }
    return lines;
  }
  Status load_registry(std::uint64_t worth) { return load("tld.", registry(), {}, worth); }
  void dismantle() {
    for (bool done = false; !done;) {
      const auto step = commit([](Draft& draft) { return dismantle_discarded(draft, 1000); });
      ASSERT_TRUE(step) << step.error().text;
      done = *step;
    }
    store_->reclaim();
  }
  std::uint64_t live() const { return store_->stats().live_bytes; }
  /// Where delegation `i` has its name servers, 0 = in its own record.
  std::uint32_t place_of(int i) const {
    return zone("tld.").record_at(name("d" + std::to_string(i) + ".tld.")).shared_set(kSharedType);
  }
};

TEST_F(SharedSetsTest, RepeatedSetsStandOnceAndAllIsReadAsWritten) {
  ASSERT_TRUE(load_registry(kNever));
  const auto alone = dump(zone("tld."));
  const std::uint64_t bytes_alone = live();
  ASSERT_TRUE(load_registry(0));
  dismantle();
  EXPECT_EQ(dump(zone("tld.")), alone);
  // 120 octets of three servers become 8.
  EXPECT_LT(live() + kDelegations * 80U, bytes_alone);
  EXPECT_NE(place_of(kDelegations - 51), 0U);
  EXPECT_EQ(place_of(kDelegations - 51), place_of(kDelegations - 151)) << "the same set";
  EXPECT_NE(place_of(kDelegations - 51), place_of(kDelegations - 52)) << "another set";
  EXPECT_EQ(place_of(99), 0U) << "a set that no other delegation has";
}

TEST_F(SharedSetsTest, LateRecordsOfTheNameKeepTheSetShared) {
  ASSERT_TRUE(load_registry(0));
  const auto expected = dump(zone("tld."));
  std::vector<std::string> lines = registry();
  std::sort(lines.begin() + 3, lines.end());
  std::stable_partition(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(" DS ") == std::string::npos;
  });
  ASSERT_TRUE(load("tld.", lines, {}, 0));
  EXPECT_EQ(dump(zone("tld.")), expected);
  for (const int with_ds : {kDelegations - 60, kDelegations - 160})
    EXPECT_NE(place_of(with_ds), 0U) << with_ds;
}

TEST_F(SharedSetsTest, ASetWithALateServerIsNotTheSharedOne) {
  std::vector<std::string> lines = registry();
  std::sort(lines.begin() + 3, lines.end());
  const int changed = kDelegations - 51;
  lines.push_back(owner(changed) + "60 NS late.example.");
  lines.push_back(owner(changed + 3) +
                  "60 RRSIG NS 13 2 60 20300101000000 20200101000000 1 tld. AAAA");
  ASSERT_TRUE(load("tld.", lines, {}, 0));
  EXPECT_EQ(place_of(changed), 0U);
  EXPECT_EQ(place_of(changed + 3), 0U);
  const auto record = zone("tld.").record_at(name("d" + std::to_string(changed) + ".tld."));
  EXPECT_EQ(record.find(kSharedType).count(), 4U);
}

TEST_F(SharedSetsTest, WhatSavesLittleIsNotShared) {
  ASSERT_TRUE(load_registry(kNever));
  for (int i = 0; i < kDelegations; ++i) ASSERT_EQ(place_of(i), 0U);
  ASSERT_TRUE(load_registry(std::uint64_t{100} * kDelegations / 2));
  int shared = 0;
  for (int i = 0; i < kDelegations; ++i) shared += place_of(i) != 0 ? 1 : 0;
  EXPECT_GT(shared, kDelegations / 4) << "from where it was known to be worth a page";
  EXPECT_LT(shared, kDelegations * 3 / 4);
}

TEST_F(SharedSetsTest, OtherChangesOfTheNameKeepTheSetShared) {
  ASSERT_TRUE(load_registry(0));
  const int i = kDelegations - 51;
  const std::uint32_t before = place_of(i);
  const std::uint64_t octets = live();
  ASSERT_NE(before, 0U);
  ASSERT_TRUE(apply("tld.", {}, {owner(i) + "60 DS 7 13 2 " + std::string(64, 'B')}));
  EXPECT_EQ(place_of(i), before);
  EXPECT_LT(live(), octets + 100);
  std::vector<std::string> newer;  // another TTL of the whole set
  for (const int number : {1, 2, 3}) newer.push_back(owner(i) + "61 NS " + server(i % 50, number));
  ASSERT_TRUE(apply("tld.", {}, newer));
  EXPECT_EQ(place_of(i), before);
  const auto ns = zone("tld.").record_at(name("d" + std::to_string(i) + ".tld.")).find(kSharedType);
  EXPECT_EQ(ns.ttl().seconds, 61U);
  EXPECT_EQ(ns.count(), 3U);
}

TEST_F(SharedSetsTest, AChangedSetIsTheNamesOwn) {
  ASSERT_TRUE(load_registry(0));
  for (const int removed : {1, 2, 3}) {
    const int i = kDelegations - 51 - 100 * removed;
    const int other = i - 1000;
    ASSERT_NE(place_of(i), 0U);
    const std::uint32_t shared = place_of(other);
    ASSERT_NE(shared, 0U);
    ASSERT_TRUE(apply("tld.", {owner(i) + "60 NS " + server(i % 50, removed)},
                      {owner(i) + "60 NS ns.new." + server(i % 50, removed)}));
    EXPECT_EQ(place_of(i), 0U);
    EXPECT_EQ(place_of(other), shared);
    std::vector<std::string> lines;
    for (const std::string& line : dump(zone("tld.")))
      if (line.starts_with(owner(i)) && line.find(" NS ") != std::string::npos)
        lines.push_back(line);
    ASSERT_EQ(lines.size(), 3U);
    for (const int number : {1, 2, 3}) {
      const bool whole = std::find(lines.begin(), lines.end(),
                                   owner(i) + "60 NS " + server(i % 50, number)) != lines.end();
      EXPECT_EQ(whole, number != removed) << number << " after " << removed;
    }
  }
  // The first ones of a set may go on being shared, and are what is left.
  const int i = kDelegations - 51;
  ASSERT_TRUE(apply("tld.", {owner(i) + "60 NS " + server(i % 50, 3)}, {}));
  EXPECT_EQ(
      zone("tld.").record_at(name("d" + std::to_string(i) + ".tld.")).find(kSharedType).count(),
      2U);
}

TEST_F(SharedSetsTest, CompactionAndReplacementLeaveNothingBehind) {
  ASSERT_TRUE(load("tld.", {"tld. 60 SOA a.tld. b.tld. 1 2 3 4 5", "tld. 60 NS ns.tld."}));
  const std::uint64_t empty = live();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(load_registry(0));
    for (int i = 0; i < kDelegations; i += 40) {
      ASSERT_TRUE(apply("tld.", {owner(i) + "60 DS 1 13 2 " + std::string(64, 'A')}, {}));
    }
    const auto before = dump(zone("tld."));
    ASSERT_GT(store_->choose_victims(101, 10'000), 0U);
    CompactCursor cursor;
    for (bool done = false; !done;) {
      const auto step = commit([&](Draft& draft) { return compact(draft, cursor, 500); });
      ASSERT_TRUE(step) << step.error().text;
      done = *step;
    }
    store_->reclaim();
    EXPECT_EQ(dump(zone("tld.")), before);
    EXPECT_NE(place_of(kDelegations - 51), 0U);
  }
  ASSERT_TRUE(load("tld.", {"tld. 60 SOA a.tld. b.tld. 1 2 3 4 5", "tld. 60 NS ns.tld."}));
  dismantle();
  EXPECT_LE(live(), empty + 4096);
}

}  // namespace shared_sets_test
}  // namespace pando::zone
