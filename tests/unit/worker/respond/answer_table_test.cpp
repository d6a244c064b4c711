#include "worker/respond/answer_table.h"

#include <gtest/gtest.h>

namespace pando::worker {
namespace answer_table_test {

struct Entry {
  std::uint32_t zone = 1;
  std::uint64_t data_version = 1;
  int number = 0;
  [[nodiscard]] std::size_t octets() const noexcept { return sizeof(Entry); }
};
using Table = AnswerTable<Entry>;

int number_at(const Table& table, AnswerPlace place, int wanted) {
  const Entry* const found =
      table.find(place, [&](const Entry& entry) { return entry.number == wanted; });
  return found == nullptr ? -1 : found->number;
}

TEST(AnswerTable, KeepsSevenAnswersOfOneSet) {
  Table table;
  for (std::uint16_t i = 0; i < 7; ++i)
    table.store({5, static_cast<std::uint16_t>(2 * i + 1)},
                std::make_unique<Entry>(Entry{1, 1, i}));
  for (std::uint16_t i = 0; i < 7; ++i)
    EXPECT_EQ(number_at(table, {5, static_cast<std::uint16_t>(2 * i + 1)}, i), i);
  EXPECT_EQ(number_at(table, {6, 1}, 0), -1) << "another set";
}

TEST(AnswerTable, TellsKeysOfOneTagApart) {
  Table table;
  for (int i = 0; i < 7; ++i) table.store({5, 9}, std::make_unique<Entry>(Entry{1, 1, i}));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(number_at(table, {5, 9}, i), i);
  EXPECT_EQ(number_at(table, {5, 9}, 7), -1);
}

TEST(AnswerTable, TheLastMissIsNoEntry) {
  Table table;
  EXPECT_FALSE(table.wants({5, 9}));
  EXPECT_EQ(number_at(table, {5, 9}, 0), -1);
  EXPECT_TRUE(table.wants({5, 9})) << "missed twice in a row";
  table.store({5, 9}, std::make_unique<Entry>(Entry{1, 1, 4}));
  EXPECT_EQ(number_at(table, {5, 9}, 4), 4);
  EXPECT_FALSE(table.wants({5, 9})) << "it is there";
}

TEST(AnswerTable, AnAnswerOfTheZonesFormerStateGoesFirst) {
  Table table;
  for (std::uint16_t i = 0; i < 7; ++i)
    table.store({5, static_cast<std::uint16_t>(2 * i + 1)},
                std::make_unique<Entry>(Entry{1, i == 3 ? 1U : 2U, i}));
  table.store({5, 99}, std::make_unique<Entry>(Entry{1, 2, 7}));
  EXPECT_EQ(number_at(table, {5, 99}, 7), 7);
  EXPECT_EQ(number_at(table, {5, 7}, 3), -1);
  for (const int i : {0, 1, 2, 4, 5, 6})
    EXPECT_EQ(number_at(table, {5, static_cast<std::uint16_t>(2 * i + 1)}, i), i);
}

TEST(AnswerTable, IsEmptiedWhenItIsFull) {
  struct Large : Entry {
    [[nodiscard]] std::size_t octets() const noexcept { return kAnswerTableBytes; }
  };
  AnswerTable<Large> table;
  table.store({5, 1}, std::make_unique<Large>());
  EXPECT_EQ(table.bytes(), kAnswerTableBytes);
  table.store({6, 1}, std::make_unique<Large>());
  EXPECT_EQ(table.bytes(), kAnswerTableBytes);
  const auto any = [](const Large&) { return true; };
  EXPECT_EQ(table.find({5, 1}, any), nullptr);
  EXPECT_NE(table.find({6, 1}, any), nullptr);
}

}  // namespace answer_table_test
}  // namespace pando::worker
