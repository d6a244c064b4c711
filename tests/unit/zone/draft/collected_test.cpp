#include "zone/draft/collected.h"

#include <gtest/gtest.h>

#include <string>

#include "base/progress.h"

namespace pando::zone {
namespace collected_test {

Bytes labels_of(int number) {
  const std::string digits = std::to_string(1'000'000 + number);
  Bytes labels{static_cast<std::uint8_t>(digits.size())};
  labels.insert(labels.end(), digits.begin(), digits.end());
  return labels;
}

Bytes record_of(int number, std::size_t octets = 4) {
  Bytes record;
  append_record(record, dns::RRType::kTXT, {static_cast<std::uint32_t>(number)}, Bytes(octets, 7));
  return record;
}

void add(LateRecords& late, int number, std::size_t octets = 4) {
  const Bytes labels = labels_of(number);
  ASSERT_TRUE(late.add(labels, TrieKey(labels), record_of(number, octets)));
}

/// More than blocks of entries and of octets hold.
TEST(LateRecords, ComeBackInOrderHoweverMany) {
  constexpr int kNames = 150'000;
  LateRecords late;
  for (int number = kNames; number-- > 0;) add(late, number);
  EXPECT_EQ(late.size(), std::size_t{kNames});
  ASSERT_TRUE(late.sort());
  for (int number = 0; number < kNames; ++number) {
    const auto group = late.next();
    ASSERT_TRUE(group);
    ASSERT_EQ(group->entries.size(), 1U);
    ASSERT_TRUE(same_octets(group->labels, labels_of(number)));
    ASSERT_TRUE(same_octets(late.record(group->entries[0]).octets(), record_of(number)));
  }
  EXPECT_FALSE(late.next());
}

TEST(LateRecords, OfOneNameKeepTheOrderInWhichTheyCame) {
  LateRecords late;
  for (const int number : {5, 3, 5, 4, 5}) add(late, number, 65'535);
  ASSERT_TRUE(late.ends_with(labels_of(5)));
  ASSERT_TRUE(late.add_to_last(record_of(6)));
  ASSERT_TRUE(late.sort());
  EXPECT_TRUE(same_octets(late.next()->labels, labels_of(3)));
  EXPECT_TRUE(same_octets(late.next()->labels, labels_of(4)));
  const auto last = late.next();
  ASSERT_EQ(last->entries.size(), 4U);
  EXPECT_EQ(late.record(last->entries[0]).rdata().size(), 65'535U);
  EXPECT_EQ(late.record(last->entries[3]).ttl().seconds, 6U);
}

TEST(LateRecords, AreTakenOutFromTheEnd) {
  for (const std::size_t left : {0U, 100U, 256U, 300U}) {
    LateRecords late;
    for (int number = 0; number < 1000; ++number) add(late, number);
    late.mark();
    const auto taken = late.take_from(left);
    ASSERT_EQ(taken.size(), 1000 - left);
    EXPECT_TRUE(same_octets(late.labels(taken.front()), labels_of(static_cast<int>(left))));
    EXPECT_FALSE(late.ends_with(labels_of(999))) << "it is not there any more";
    add(late, 2000);
    ASSERT_TRUE(late.sort());
    for (std::size_t at = 0; at < left; ++at)
      ASSERT_TRUE(late.came_before_mark(late.next()->entries[0]));
    EXPECT_FALSE(late.came_before_mark(late.next()->entries[0]));
    EXPECT_FALSE(late.next());
  }
}

TEST(LateRecords, TellHowFarTheyAreSorted) {
  constexpr int kNames = 50'000;
  Progress progress;
  const Progress::Scope scope(&progress);
  LateRecords late;
  for (int i = 0; i < kNames; ++i) add(late, i * 7919 % kNames);
  ASSERT_TRUE(late.sort());
  const Progress::Seen seen = progress.seen();
  EXPECT_EQ(seen.phase, Progress::Phase::kSorting);
  EXPECT_EQ(seen.total, std::uint64_t{kNames});
  EXPECT_GE(seen.done, seen.total / 2) << "as many comparisons as are thought to be needed, about";
  EXPECT_LE(seen.done, seen.total);
}

TEST(LateRecords, AreNotSortedForNobody) {
  Progress progress;
  const Progress::Scope scope(&progress);
  LateRecords late;
  for (int i = 0; i < 50'000; ++i) add(late, i * 7919 % 50'000);
  progress.give_up();
  const auto sorted = late.sort();
  ASSERT_FALSE(sorted);
  EXPECT_EQ(sorted.error().text, kGivenUp);
  EXPECT_LT(progress.seen().done, 1000U);
}

}  // namespace collected_test
}  // namespace pando::zone
