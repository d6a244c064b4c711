#include "ctl/compare/record_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::ctl {
namespace record_set_test {

using ipc::RecordRow;

const RecordRow kSoa{"example.", 60, "SOA", "ns.example. admin.example. 7 1 2 3 4"};

RecordSet set_of(const std::vector<RecordRow>& rows) {
  RecordSet records(dns::Name::from_text("Example.").value());
  for (const RecordRow& row : rows) EXPECT_TRUE(records.add(row)) << row.rdata;
  records.finish();
  return records;
}

std::vector<RecordRow> rows_missing(const RecordSet& from, const RecordSet& in,
                                    std::size_t most = 10) {
  std::vector<RecordRow> rows;
  from.missing_in(in, most, rows);
  return rows;
}

TEST(RecordSet, OrderAndCaseOfNamesMakeNoDifference) {
  const auto one = set_of({kSoa,
                           {"a.example.", 60, "NS", "ns.example."},
                           {"b.example.", 60, "TXT", "\"Text\""}});
  const auto other = set_of({{"B.example.", 60, "TXT", "Text"},
                             {"A.EXAMPLE.", 60, "NS", "NS.example."},
                             {"A.example.", 60, "NS", "ns.example."},
                             kSoa});
  EXPECT_EQ(one.size(), 3U);
  EXPECT_EQ(other.size(), 3U);
  EXPECT_THAT(rows_missing(one, other), ::testing::IsEmpty());
  EXPECT_THAT(rows_missing(other, one), ::testing::IsEmpty());
}

TEST(RecordSet, DataTtlAndCaseOfTextMakeADifference) {
  const RecordRow row{"a.example.", 60, "TXT", "\"text\""};
  const auto set = set_of({row});
  for (const RecordRow& other : {RecordRow{"a.example.", 61, "TXT", "\"text\""},
                                 RecordRow{"a.example.", 60, "SPF", "\"text\""},
                                 RecordRow{"a.example.", 60, "TXT", "\"Text\""},
                                 RecordRow{"b.example.", 60, "TXT", "\"text\""}}) {
    EXPECT_THAT(rows_missing(set, set_of({other})), ::testing::ElementsAre(row));
    EXPECT_THAT(rows_missing(set_of({other}), set), ::testing::ElementsAre(other));
  }
}

TEST(RecordSet, ASerialIsNotARecordsDifference) {
  RecordRow next = kSoa;
  next.rdata = "ns.example. admin.example. 8 1 2 3 4";
  const auto set = set_of({kSoa});
  EXPECT_EQ(set.serial(), 7U);
  EXPECT_EQ(set_of({next}).serial(), 8U);
  EXPECT_THAT(rows_missing(set, set_of({next})), ::testing::IsEmpty());
  next.rdata = "ns.example. admin.example. 8 1 2 3 5";
  EXPECT_THAT(rows_missing(set_of({next}), set), ::testing::ElementsAre(next)) << "with its serial";
  EXPECT_EQ(set_of({{"a.example.", 60, "A", "192.0.2.1"}}).serial(), std::nullopt);
}

TEST(RecordSet, RowsAreBoundedAndTheCountIsNot) {
  std::vector<RecordRow> rows{kSoa};
  for (int i = 0; i < 50; ++i)
    rows.push_back({"a.example.", 60, "A", "192.0.2." + std::to_string(i)});
  std::vector<RecordRow> shown;
  EXPECT_EQ(set_of(rows).missing_in(set_of({kSoa}), 3, shown), 50U);
  EXPECT_EQ(shown.size(), 3U);
}

TEST(RecordSet, RowsThatAreNoRecordsAreRefused) {
  RecordSet records(dns::Name::from_text("example.").value());
  EXPECT_FALSE(records.add({"a..example.", 60, "A", "192.0.2.1"}));
  EXPECT_FALSE(records.add({"a.example.", 60, "NOTYPE", "192.0.2.1"}));
  EXPECT_FALSE(records.add({"a.example.", 60, "A", "192.0.2"}));
  EXPECT_EQ(records.size(), 0U);
}

}  // namespace record_set_test
}  // namespace pando::ctl
