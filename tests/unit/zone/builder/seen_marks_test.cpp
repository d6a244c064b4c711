#include "zone/builder/seen_marks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace pando::zone {
namespace seen_marks_test {

TEST(SeenMarks, AreThoseThatWereMade) {
  std::mt19937 random(7);
  SeenMarks marks;
  std::set<std::uint32_t> names;
  std::map<std::uint32_t, std::set<std::uint32_t>> records;
  const auto ref = [&] { return 17'000'000 + 3 * static_cast<std::uint32_t>(random() % 20'000); };
  for (int i = 0; i < 30'000; ++i) {
    const std::uint32_t at = ref();
    const std::uint32_t record =
        random() % 10 == 0 ? SeenMarks::kMaxRecords - 1 : static_cast<std::uint32_t>(random() % 5);
    if (random() % 4 == 0) {
      marks.mark_name(at);
      names.insert(at);
    } else {
      marks.mark(at, record);
      records[at].insert(record);
    }
  }
  for (std::uint32_t at = 17'000'000; at < 17'060'000; ++at) {
    const std::set<std::uint32_t>& expected = records[at];
    ASSERT_EQ(marks.has_name(at), names.contains(at));
    ASSERT_EQ(marks.has_any(at, 0, 2), expected.contains(0) || expected.contains(1));
    ASSERT_EQ(marks.has_any(at, 2, SeenMarks::kMaxRecords),
              expected.upper_bound(1) != expected.end());
    std::set<std::uint32_t> found;
    marks.for_each(at, [&](std::uint32_t record) { EXPECT_TRUE(found.insert(record).second); });
    ASSERT_EQ(found, expected);
    const auto count = static_cast<std::uint32_t>(expected.size());
    ASSERT_TRUE(count == 0 || marks.has_all(at, count));
    ASSERT_EQ(marks.has_all(at, count + 1), names.contains(at));
    ASSERT_EQ(marks.has_some(at), count > 0 || names.contains(at));
  }
}

TEST(SeenMarks, TakeNoMoreHoweverOftenTheyAreMade) {
  SeenMarks marks;
  for (int i = 0; i < 1'000'000; ++i) marks.mark(20'000'000, static_cast<std::uint32_t>(i % 3));
  EXPECT_TRUE(marks.has_all(20'000'000, 3));
  EXPECT_LT(marks.octets(), 64U << 10);
}

TEST(SeenMarks, OfAnotherNameAreNotFoundBeyondTheMostThatOneHas) {
  SeenMarks marks;
  marks.mark(20'000'001, 0);
  EXPECT_FALSE(marks.has_any(20'000'000, 0, SeenMarks::kMaxRecords + 1));
}

TEST(SeenMarks, NothingIsMarkedAtFirst) {
  SeenMarks marks;
  EXPECT_FALSE(marks.has_name(0));
  EXPECT_FALSE(marks.has_name(UINT32_MAX));
  EXPECT_FALSE(marks.has_any(20'000'000, 0, 5));
  EXPECT_FALSE(marks.has_all(20'000'000, 1));
  EXPECT_EQ(marks.octets(), 0U);
}

}  // namespace seen_marks_test
}  // namespace pando::zone
