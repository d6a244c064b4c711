#include "shm/counts/count_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace pando::shm {
namespace count_rows_test {

using Row = CountRow<2>;

TEST(CountRows, CountForTheirKeyAlone) {
  std::vector<Row> rows(64);
  for (std::uint64_t key = 1; key <= 40; ++key)
    for (std::uint64_t i = 0; i < key; ++i) {
      Row* row = take_count_row(std::span(rows), key * 7);
      ASSERT_NE(row, nullptr) << key;
      count_in_row(*row, i % 2);
    }
  for (std::uint64_t key = 1; key <= 40; ++key) {
    const Row* row = find_count_row(std::span(rows), key * 7);
    ASSERT_NE(row, nullptr) << key;
    EXPECT_EQ(row->counters[0].load() + row->counters[1].load(), key);
  }
  EXPECT_EQ(find_count_row(std::span(rows), 1), nullptr);
}

/// Keys that all begin at one row stay findable, up to the number of tries.
TEST(CountRows, HaveABoundOfTries) {
  std::vector<Row> rows(1024);
  for (std::uint64_t i = 1; i <= kCountRowTries; ++i)
    EXPECT_NE(take_count_row(std::span(rows), i << 10), nullptr) << i;
  EXPECT_EQ(take_count_row(std::span(rows), (kCountRowTries + 1) << 10), nullptr);
  for (std::uint64_t i = 1; i <= kCountRowTries; ++i)
    EXPECT_NE(find_count_row(std::span(rows), i << 10), nullptr) << i;
}

TEST(CountRows, AFullTableTakesNoMore) {
  std::vector<Row> rows(4);
  for (std::uint64_t key = 1; key <= 4; ++key)
    EXPECT_NE(take_count_row(std::span(rows), key), nullptr);
  EXPECT_EQ(take_count_row(std::span(rows), 5), nullptr);
  EXPECT_EQ(find_count_row(std::span(rows), 5), nullptr);
  EXPECT_EQ(take_count_row(std::span<Row>(), 1), nullptr) << "no table at all";
}

}  // namespace count_rows_test
}  // namespace pando::shm
