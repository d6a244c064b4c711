#include "worker/respond/answer_table.h"

#include <gtest/gtest.h>

namespace pando::worker {
namespace answer_table_test {

struct Head {
  std::uint32_t zone = 1;
  std::uint64_t data_version = 1;
  int number = 0;
};
using Table = AnswerTable<Head>;

int number_at(const Table& table, AnswerPlace place, int wanted) {
  const Head* const found =
      table.find(place, [&](const Head& head) { return head.number == wanted; });
  return found == nullptr ? -1 : found->number;
}

AnswerPlace place(std::uint16_t set, int tag) { return {set, static_cast<std::uint16_t>(tag)}; }

TEST(AnswerTable, KeepsSevenAnswersOfOneSet) {
  Table table;
  for (int i = 0; i < 7; ++i) table.store(place(5, 2 * i + 1), Head{1, 1, i}, {});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(number_at(table, place(5, 2 * i + 1), i), i);
  EXPECT_EQ(number_at(table, {6, 1}, 0), -1) << "another set";
}

TEST(AnswerTable, TellsKeysOfOneTagApart) {
  Table table;
  for (int i = 0; i < 7; ++i) table.store({5, 9}, Head{1, 1, i}, {});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(number_at(table, {5, 9}, i), i);
  EXPECT_EQ(number_at(table, {5, 9}, 7), -1);
}

TEST(AnswerTable, TheOctetsOfAnEntryStandBehindItsHead) {
  Table table;
  const Bytes name = {1, 'a', 0};
  const Bytes records(300, 7);
  table.store({5, 1}, Head{1, 1, 4}, {name, {}, records});
  table.store({5, 3}, Head{1, 1, 5}, {records});
  const Head* const found = table.find({5, 1}, [](const Head&) { return true; });
  ASSERT_NE(found, nullptr);
  const std::uint8_t* const octets = Table::behind(*found);
  EXPECT_EQ(Bytes(octets, octets + 3), name);
  EXPECT_EQ(Bytes(octets + 3, octets + 303), records);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(octets) % 8, 0U);
  EXPECT_EQ(table.bytes(), 2 * 384U) << "whole lines of 64 octets";
}

TEST(AnswerTable, AskingForMemoryChangesNothing) {
  Table table;
  table.fetch({5, 9});
  table.fetch_entry({5, 9});
  EXPECT_EQ(table.bytes(), 0U);
  EXPECT_EQ(number_at(table, {5, 9}, 0), -1);
  table.store({5, 9}, Head{1, 1, 4}, {});
  table.fetch({5, 9});
  table.fetch_entry({5, 9});
  table.fetch_entry({5, 11});
  EXPECT_EQ(number_at(table, {5, 9}, 4), 4);
  EXPECT_FALSE(table.wants({5, 11})) << "no miss was noted";
}

TEST(AnswerTable, TheNextEntryTakesThePlaceOfADroppedOne) {
  Table table;
  for (int i = 0; i < 7; ++i) table.store(place(5, 2 * i + 1), Head{1, 1, i}, {});
  const Head* const entry = table.find(place(5, 7), [](const Head&) { return true; });
  ASSERT_NE(entry, nullptr);
  table.drop(place(5, 7), *entry);
  EXPECT_EQ(number_at(table, place(5, 7), 3), -1);
  table.store(place(5, 15), Head{2, 1, 7}, {});
  for (const int i : {0, 1, 2, 4, 5, 6, 7}) EXPECT_EQ(number_at(table, place(5, 2 * i + 1), i), i);
}

TEST(AnswerTable, TheLastMissIsNoEntry) {
  Table table;
  EXPECT_FALSE(table.wants({5, 9}));
  table.fetch_entry({5, 9});
  EXPECT_EQ(number_at(table, {5, 9}, 0), -1);
  EXPECT_TRUE(table.wants({5, 9})) << "missed twice in a row";
  table.store({5, 9}, Head{1, 1, 4}, {});
  EXPECT_EQ(number_at(table, {5, 9}, 4), 4);
  EXPECT_FALSE(table.wants({5, 9})) << "it is there";
}

TEST(AnswerTable, AnAnswerOfTheZonesFormerStateGoesFirst) {
  Table table;
  for (int i = 0; i < 7; ++i) table.store(place(5, 2 * i + 1), Head{1, i == 3 ? 1U : 2U, i}, {});
  table.store({5, 99}, Head{1, 2, 7}, {});
  EXPECT_EQ(number_at(table, {5, 99}, 7), 7);
  EXPECT_EQ(number_at(table, {5, 7}, 3), -1);
  for (const int i : {0, 1, 2, 4, 5, 6}) EXPECT_EQ(number_at(table, place(5, 2 * i + 1), i), i);
}

TEST(AnswerTable, AnEntryInPlaceOfAnotherTakesItsMemoryOver) {
  Table table;
  const Bytes records(600);
  for (int i = 0; i < 7; ++i) table.store(place(5, 2 * i + 1), Head{1, 1, i}, {records});
  const std::size_t before = table.bytes();
  table.store({5, 99}, Head{1, 1, 7}, {});
  EXPECT_EQ(table.bytes(), before - 640 + 64);
}

TEST(AnswerTable, IsEmptiedWhenItIsFull) {
  Table table;
  const Bytes large(Table::kMaxEntryOctets - sizeof(Head));
  constexpr std::uint16_t kFitting = kAnswerTableBytes / Table::kMaxEntryOctets;
  for (std::uint16_t i = 0; i < kFitting; ++i) table.store({i, 1}, Head{}, {large});
  EXPECT_EQ(table.bytes(), kFitting * Table::kMaxEntryOctets);
  EXPECT_EQ(number_at(table, {0, 1}, 0), 0);
  table.store({kFitting, 1}, Head{}, {large});
  EXPECT_EQ(table.bytes(), Table::kMaxEntryOctets);
  EXPECT_EQ(number_at(table, {0, 1}, 0), -1);
  EXPECT_EQ(number_at(table, {kFitting, 1}, 0), 0);
}

}  // namespace answer_table_test
}  // namespace pando::worker
