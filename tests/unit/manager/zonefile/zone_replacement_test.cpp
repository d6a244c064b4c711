#include "manager/zonefile/zone_replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace zone_replacement_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kFile;
using testing::Loader;
using testing::name;
using Next = ZoneReplacement::Next;

const Status kFailure = fail(Errc::kIo, "disk full");

/// Findings of a check of "example.", made by hand.
class Replacement : public Loader {
 protected:
  Replacement() {
    file_->job.apex = name("@");
    file_->zone.emplace();
  }
  void load_zone() {
    write(kFile);
    ASSERT_EQ(load().kind, Kind::kLoaded);
  }
  /// The file is to replace the served zone.
  void compare() {
    const zone::ZoneView live = parts_.zone.zone();
    file_->plan.emplace();
    file_->plan->kind = MergePlan::Kind::kReplace;
    file_->plan->compared = live.serial();
    file_->plan->base_file = live.source();
  }
  ZoneReplacement replacement(bool journal_pending = false) { return {file_, journal_pending}; }
  std::vector<RecordKind> journal_of(ZoneReplacement replacement) {
    std::vector<JournalEntry> journal;
    replacement.add_journal_records(journal, parts_.zone.zone());
    std::vector<RecordKind> kinds;
    for (const JournalEntry& entry : journal) kinds.push_back(entry.kind);
    return kinds;
  }
  void add_record_of_recovery() {
    file_->zone->journal.push_back({name("@"), {10}, {10}, {}, RecordKind::kSource});
  }

  std::shared_ptr<ZoneFileCheck> file_ = std::make_shared<ZoneFileCheck>();
};

TEST_F(Replacement, OfAZoneWithoutDataNeedsOneWithoutData) {
  ZoneReplacement first = replacement();
  EXPECT_TRUE(first.check(parts_.zone.zone()));
  EXPECT_EQ(first.after(kFailure), Next::kFail);
  load_zone();
  EXPECT_EQ(first.check(parts_.zone.zone()).error().code, Errc::kExists);
  EXPECT_EQ(first.after(kFailure), Next::kCheckAgain);
}

TEST_F(Replacement, OfAServedZoneNeedsItAsItWasCompared) {
  load_zone();
  compare();
  ZoneReplacement first = replacement();
  EXPECT_TRUE(first.check(parts_.zone.zone()));
  EXPECT_EQ(first.after({}), Next::kServe);
  file_->plan->base_file.file_bytes += 1;
  EXPECT_FALSE(replacement().check(parts_.zone.zone())) << "another merge base";
  compare();
  ZoneReplacement second = replacement();
  update({}, {"dyn 60 A 192.0.2.9"});
  EXPECT_FALSE(second.check(parts_.zone.zone())) << "another serial";
  unload();
  EXPECT_FALSE(second.check(parts_.zone.zone())) << "no data";
}

TEST_F(Replacement, ByACopyNeedsASecondary) {
  file_->job.file_optional = true;
  EXPECT_FALSE(replacement().check(parts_.zone.zone()));
  make_secondary();
  EXPECT_TRUE(replacement().check(parts_.zone.zone()));
}

TEST_F(Replacement, AddsTheRecordsOfRecoveryUnlessTheJournalHasFailed) {
  load_zone();
  add_record_of_recovery();
  EXPECT_THAT(journal_of(replacement()), ElementsAre(RecordKind::kSource));
  EXPECT_THAT(journal_of(replacement(true)), IsEmpty());
}

TEST_F(Replacement, IsTriedWithoutTheJournalOnceIfTheJournalFails) {
  EXPECT_EQ(replacement().after(kFailure), Next::kFail) << "no records";
  add_record_of_recovery();
  EXPECT_EQ(replacement().after(kFailure), Next::kPutWithoutJournal);
  EXPECT_EQ(replacement(true).after(kFailure), Next::kFail);
}

TEST_F(Replacement, TellsTheJournalOfTheNewDataIfItKnowsTheZone) {
  load_zone();
  compare();
  file_->plan->compared = {9};
  EXPECT_THAT(journal_of(replacement()), IsEmpty());
  file_->in_journal = true;
  EXPECT_THAT(journal_of(replacement()), ElementsAre(RecordKind::kBase, RecordKind::kSource));
}

/// Without kGone, a replay could not tell the new zone from the old one.
TEST_F(Replacement, UnderTheSameSerialEndsTheOldRecords) {
  load_zone();
  compare();
  EXPECT_THAT(journal_of(replacement()),
              ElementsAre(RecordKind::kGone, RecordKind::kBase, RecordKind::kSource));
}

}  // namespace zone_replacement_test
}  // namespace pando::manager
