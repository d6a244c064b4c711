#include "manager/merge/zone_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace zone_merge_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::name;
using testing::record;
using testing::ZoneStore;

const std::vector<std::string> kLines = {"@ 60 SOA ns1 admin 10 3600 600 86400 300", "@ 60 NS ns1",
                                         "www 60 A 192.0.2.1"};

RecordChanges added(int records) {
  zone::Changeset changes{name("@"), {}, {}};
  for (int i = 0; i < records; ++i)
    changes.added.push_back(record(fmt::format("n{:02} 60 A 192.0.2.1", i)));
  return record_changes_of(changes);
}

TEST(OverriddenText, IsEmptyWithoutSuchRecords) { EXPECT_EQ(overridden_text({}), ""); }

TEST(OverriddenText, NamesTheFirstTenRecords) {
  const std::string some = overridden_text(added(10));
  EXPECT_THAT(some, HasSubstr("10 records"));
  EXPECT_THAT(some, EndsWith("n09.example. A"));
  const std::string many = overridden_text(added(11));
  EXPECT_THAT(many, HasSubstr("11 records"));
  EXPECT_THAT(many, EndsWith("n09.example. A, ..."));
}

TEST(OverriddenText, MarksRecordsThatTheFileRemoved) {
  const zone::Changeset removed{name("@"), {record("www 60 A 192.0.2.1")}, {}};
  EXPECT_THAT(overridden_text(record_changes_of(removed)), EndsWith("www.example. A (removed)"));
}

/// A merge plan of a zone without a journal, and of its file with these lines.
class Plan : public ::testing::Test {
 protected:
  Result<MergePlan> plan(const std::vector<std::string>& file, MergeBase state = {}) {
    const ZoneStore fresh(file);
    auto zone = file_zone(served_.zone(), fresh.zone());
    if (!zone) return pass(zone);
    return plan_merge(served_.zone(), *zone, {}, std::move(state));
  }
  static std::vector<std::string> with(std::string line) {
    std::vector<std::string> lines = kLines;
    lines.push_back(std::move(line));
    return lines;
  }

  ZoneStore served_{kLines};
};

TEST_F(Plan, OfTheServedFileHasNoChanges) {
  const auto found = plan(kLines);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, MergePlan::Kind::kMerge);
  EXPECT_EQ(found->record_count(), 0U);
}

TEST_F(Plan, WithoutDynamicChangesIsThePlainChangeset) {
  const auto found = plan(with("added 60 A 192.0.2.2"));
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->plain);
  EXPECT_EQ(found->plain->added.size(), 1U);
  EXPECT_TRUE(found->dynamic_changes_known);
}

TEST_F(Plan, IsRefusedWhileDynamicChangesAreUnknown) {
  MergeBase unknown;
  unknown.lose();
  const auto found = plan(with("added 60 A 192.0.2.2"), std::move(unknown));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kNotFound);
}

}  // namespace zone_merge_test
}  // namespace pando::manager
