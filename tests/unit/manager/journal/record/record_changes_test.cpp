#include "manager/journal/record/record_changes.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace record_changes_test {

using testing::name;
using testing::record;

zone::Changeset some_changes() {
  return {name("@"),
          {record("@ 60 SOA ns1 admin 10 3600 600 86400 300"), record("www 300 A 192.0.2.1"),
           record("same 300 TXT x")},
          {record("@ 60 SOA ns1 admin 11 3600 600 86400 300"), record("www 60 A 192.0.2.1"),
           record("same 300 TXT x"), record("new.www 300 AAAA 2001:db8::1")}};
}

std::vector<std::string> lines_of(const std::vector<zone::Record>& records) {
  std::vector<std::string> lines;
  for (const zone::Record& one : records)
    lines.push_back(fmt::format("{} {} {} {}", to_text(one.owner), one.ttl.seconds,
                                to_text(one.type), dns::rdata_to_text(one.type, one.rdata)));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(RecordSteps, WhatStaysIsLeftOut) {
  const RecordChanges by_record = record_changes_of(some_changes());
  const zone::Changeset back = changeset_of(name("@"), by_record);
  EXPECT_EQ(lines_of(back.removed), (Lines{"www.example. 300 A 192.0.2.1"}));
  EXPECT_EQ(lines_of(back.added),
            (Lines{"www.example. 60 A 192.0.2.1", "new.www.example. 300 AAAA 2001:db8::1"}));
}

TEST(RecordSteps, WhatIsGivenAwayComesToTheSameAndIsGone) {
  const zone::Changeset whole = some_changes();
  zone::Changeset given = some_changes();
  RecordChanges by_record = record_changes_of(std::move(given));
  EXPECT_EQ(by_record, record_changes_of(whole));
  EXPECT_TRUE(given.empty());  // NOLINT: that is what it promises
  const zone::Changeset expected = changeset_of(name("@"), by_record);
  const zone::Changeset back = changeset_of(name("@"), std::move(by_record));
  EXPECT_EQ(lines_of(back.removed), lines_of(expected.removed));
  EXPECT_EQ(lines_of(back.added), lines_of(expected.added));
  EXPECT_TRUE(by_record.empty());  // NOLINT
}

}  // namespace record_changes_test
}  // namespace pando::manager
