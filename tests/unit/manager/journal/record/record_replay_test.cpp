#include "manager/journal/record/record_replay.h"

#include <gmock/gmock.h>

#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace record_replay_test {

using Data = RecordReplay::Data;
using testing::name;

JournalRecord record(RecordKind kind, std::uint32_t from, std::uint32_t to, Bytes payload = {}) {
  return {7, 7, kind, name("@"), {from}, {to}, std::move(payload)};
}

JournalRecord removal() {
  JournalRecord gone = record(RecordKind::kGone, 10, 10);
  gone.payload = removed_entry(name("@"), {10}, 1).payload;
  return gone;
}

ReplayedZone zone(std::uint32_t serial) { return {dns::Serial{serial}}; }
ReplayedZone doubtful(std::uint32_t serial) { return {dns::Serial{serial}, true}; }
constexpr ReplayedZone kNoData{};

/// A rule, and what it gives for each kind of data.
struct Rule {
  const char* what;
  JournalRecord record;
  ReplayedZone zone;
  ReplayStep live;
  ReplayStep image;
  ReplayStep file;
};

std::vector<Rule> rules() {
  using enum ReplayStep;
  using enum RecordKind;
  return {
      {"a changeset follows", record(kChangeset, 10, 11), zone(10), kApply, kApply, kApply},
      {"an IXFR follows", record(kTransfer, 10, 11), zone(10), kApply, kApply, kApply},
      {"a file edit follows", record(kFileEdit, 10, 11), zone(10), kApply, kApply, kApply},
      {"it is older", record(kChangeset, 8, 9), zone(10), kSkip, kReload, kSkip},
      {"it is later", record(kChangeset, 12, 13), zone(10), kSkip, kReload, kSkip},
      {"it is older behind a gap", record(kChangeset, 8, 9), doubtful(10), kSkip, kSkip, kSkip},
      {"it has no data to follow", record(kChangeset, 10, 11), kNoData, kSkip, kNothing, kSkip},
      {"a file edit left the zone", record(kFileEdit, 10, 10), zone(10), kNothing, kNothing,
       kNothing},
      {"it left another zone", record(kFileEdit, 9, 9), zone(10), kNothing, kReload, kNothing},
      {"it left another zone behind a gap", record(kFileEdit, 9, 9), doubtful(10), kNothing, kSkip,
       kNothing},
      {"a zone was sent whole", record(kTransfer, 10, 10), zone(10), kNothing, kReload, kNothing},
      {"it equals its file", record(kBase, 5, 10), zone(10), kNothing, kConfirm, kNothing},
      {"another one does", record(kBase, 5, 77), zone(10), kNeverTookPlace, kReload, kNothing},
      {"a zone without data does", record(kBase, 5, 77), kNoData, kNothing, kNothing, kNothing},
      {"it differs from its file", record(kDynamicChanges, 5, 10), zone(10), kNothing, kConfirm,
       kNothing},
      {"another one differs", record(kDynamicChanges, 5, 77), doubtful(10), kNeverTookPlace,
       kReload, kNothing},
      {"its file is named", record(kSource, 10, 10), zone(10), kNameFile, kNameFile, kNothing},
      {"another one's is", record(kSource, 11, 11), zone(10), kNothing, kReload, kNothing},
      {"it is, behind a gap", record(kSource, 11, 11), doubtful(10), kNothing, kNothing, kNothing},
      {"a zone without data has a file", record(kSource, 10, 10), kNoData, kNothing, kNothing,
       kNothing},
      {"its role changed", record(kPrimary, 10, 10), zone(10), kNothing, kNothing, kNothing},
      {"a signed changeset follows", record(kSigned, 10, 11, {1}), zone(10), kApply, kApply, kApply},
      {"it is later", record(kSigned, 12, 13, {1}), zone(10), kSkip, kReload, kSkip},
      {"the zone was signed", record(kSigned, 10, 11, {0}), zone(11), kNothing, kConfirm, kSkip},
      {"it was to be", record(kSigned, 10, 11, {0}), zone(10), kNeverTookPlace, kReload, kApply},
      {"it left", removal(), zone(10), kRemove, kForget, kNothing},
      {"it left without data", removal(), kNoData, kRemove, kForget, kNothing},
      {"it was purged", record(kGone, 10, 10), zone(10), kRemove, kForget, kNothing},
  };
}

TEST(RecordReplayTest, EachKindOfRecordHasOneRuleForEachKindOfData) {
  for (const Rule& rule : rules()) {
    EXPECT_EQ(RecordReplay(Data::kLiveStore).step(rule.record, rule.zone), rule.live) << rule.what;
    EXPECT_EQ(RecordReplay(Data::kImage).step(rule.record, rule.zone), rule.image) << rule.what;
    EXPECT_EQ(RecordReplay(Data::kFile).step(rule.record, rule.zone), rule.file) << rule.what;
  }
}

/// A live store is told apart: all that was acknowledged is in it, so it never has a gap.
TEST(RecordReplayTest, BehindAGapALaterSerialIsTaken) {
  for (const Data data : {Data::kImage, Data::kFile}) {
    const RecordReplay rules(data);
    const JournalRecord later = record(RecordKind::kChangeset, 12, 13);
    EXPECT_EQ(rules.step(later, doubtful(10)), ReplayStep::kApplyBehindGap);
    EXPECT_EQ(rules.step(later, doubtful(13)), ReplayStep::kSkip);
    EXPECT_EQ(rules.step(later, doubtful(12)), ReplayStep::kApply);
    ReplayedZone without_data;
    without_data.may_lack = true;
    EXPECT_NE(rules.step(later, without_data), ReplayStep::kApplyBehindGap);
  }
}

/// RFC 1982: serials wrap around.
TEST(RecordReplayTest, ALaterSerialMayBeASmallerNumber) {
  const RecordReplay rules(Data::kFile);
  const JournalRecord later = record(RecordKind::kChangeset, 3, 4);
  EXPECT_EQ(rules.step(later, doubtful(UINT32_MAX)), ReplayStep::kApplyBehindGap);
}

TEST(RecordReplayTest, AZoneOfAnImageThatLacksRecordsIsLoadedAnewAtTheNextWholeState) {
  ReplayedZone lacking = doubtful(10);
  lacking.lacks = true;
  EXPECT_EQ(RecordReplay(Data::kImage).step(record(RecordKind::kBase, 10, 10), lacking),
            ReplayStep::kReload);
}

TEST(RecordReplayTest, RecordsThatDoNotFitTheDataAreAnErrorOfALiveStoreAlone) {
  EXPECT_EQ(RecordReplay(Data::kLiveStore).unfitting(zone(10)), std::nullopt);
  EXPECT_EQ(RecordReplay(Data::kImage).unfitting(zone(10)), ReplayStep::kReload);
  EXPECT_EQ(RecordReplay(Data::kImage).unfitting(doubtful(10)), ReplayStep::kSkip);
}

TEST(RecordReplayTest, APutIsThePurgeAndTheComparisonBehindItInOneGroup) {
  const JournalRecord purge = record(RecordKind::kGone, 10, 10);
  JournalRecord put = record(RecordKind::kBase, 10, 10);
  put.position = 8;
  EXPECT_TRUE(is_put_behind(purge, put));
  EXPECT_FALSE(is_put_behind(removal(), put)) << "the zone left the configuration";
  JournalRecord other = put;
  other.zone = name("other.");
  EXPECT_FALSE(is_put_behind(purge, other));
  other = put;
  other.group_first = 8;
  EXPECT_FALSE(is_put_behind(purge, other));
  other = put;
  other.position = 9;
  EXPECT_FALSE(is_put_behind(purge, other));
  other = put;
  other.kind = RecordKind::kSource;
  EXPECT_FALSE(is_put_behind(purge, other));
}

}  // namespace record_replay_test
}  // namespace pando::manager
