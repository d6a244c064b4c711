#include "manager/merge/file_merge.h"

#include <gtest/gtest.h>

#include "manager/commit/zone_diff.h"
#include "manager/merge/zone_recovery.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace file_merge_test {

using testing::name;
using testing::record;
using testing::ZoneStore;
using Lines = std::vector<std::string>;

const Lines kApex = {"@ 60 SOA ns1 admin 10 3600 600 86400 300", "@ 60 NS ns1"};

Lines with_apex(Lines lines) {
  lines.insert(lines.begin(), kApex.begin(), kApex.end());
  return lines;
}

/// The store was lost before the edit was merged: the same comes out.
void expect_recovered_alike(const DynamicChanges& changes, const ZoneStore& edited,
                            const ZoneStore& merged) {
  ZoneRecovery recovery(changes.entries());
  Lines rest;
  for (const std::string& line : edited.lines()) {
    const zone::Record one = record(line);
    if (!recovery.take(one.owner, one.type, one.ttl, one.rdata)) rest.push_back(line);
  }
  auto outcome = std::move(recovery).result();
  outcome.records.push_back(*outcome.soa);
  for (const zone::Record& one : outcome.records)
    rest.push_back(fmt::format("{} {} {} {}", to_text(one.owner), one.ttl.seconds,
                               to_text(one.type), dns::rdata_to_text(one.type, one.rdata)));
  const ZoneStore recovered(rest);
  EXPECT_EQ(recovered.lines(), merged.lines());
  DynamicChanges expected;
  expected.updated(record_changes_of(*diff_zones(edited.zone(), recovered.zone(), UINT64_MAX)));
  EXPECT_EQ(outcome.dynamic_changes.entries(), expected.entries());
}

/// A zone's life: loaded from a file, changed by an update, its file edited. `merged` is what is
/// served then, without the apex, and `changes` what the journal's records fold to.
struct Life {
  Lines file, updated, edited;
  Lines merged;
  DynamicChanges changes;

  void run() {
    const ZoneStore first(with_apex(file)), now(with_apex(edited));
    ZoneStore live(with_apex(updated));
    changes.updated(record_changes_of(*diff_zones(first.zone(), live.zone(), UINT64_MAX)));
    const RecordChanges edit =
        file_changes(record_changes_of(*diff_zones(live.zone(), now.zone(), UINT64_MAX)), changes);
    EXPECT_EQ(edit, record_changes_of(*diff_zones(first.zone(), now.zone(), UINT64_MAX)))
        << "how the file changed comes out without the old file";
    const DynamicChanges before = changes;
    const RecordChanges served =
        record_changes_of(live.apply(merge_edit(live.zone(), edit)).effective);
    changes.edited(served, held_back(edit, served));
    DynamicChanges expected;
    expected.updated(record_changes_of(*diff_zones(now.zone(), live.zone(), UINT64_MAX)));
    EXPECT_EQ(changes.entries(), expected.entries())
        << "served zone = file, changed by the changes";
    expect_recovered_alike(before, now, live);
    for (const std::string& line : live.lines())
      if (!line.starts_with("example. ")) merged.push_back(line);
  }
};

Lines merge(const Lines& file, const Lines& updated, const Lines& edited) {
  Life life{file, updated, edited, {}, {}};
  life.run();
  return life.merged;
}

constexpr const char* kOne = "r.example. 60 A 192.0.2.1";
constexpr const char* kOneSlow = "r.example. 90 A 192.0.2.1";
constexpr const char* kTwo = "r.example. 60 A 192.0.2.2";
constexpr const char* kTwoSlow = "r.example. 90 A 192.0.2.2";
constexpr const char* kThreeSlow = "r.example. 90 A 192.0.2.3";
constexpr const char* kThree = "r.example. 60 A 192.0.2.3";

TEST(FileMerge, WithoutAnEditNothingChanges) {
  EXPECT_EQ(merge({kOne}, {kTwo}, {kOne}), (Lines{kTwo}));
}
TEST(FileMerge, WithoutAnUpdateTheFileIsServed) {
  EXPECT_EQ(merge({kOne, kTwo}, {kOne, kTwo}, {kTwoSlow}), (Lines{kTwoSlow}));
}

TEST(FileMerge, EditAddsBesideAnAddedRecord) {
  EXPECT_EQ(merge({}, {kOne}, {kTwo}), (Lines{kOne, kTwo}));
}
TEST(FileMerge, EditAddsWhatAnUpdateAdded) { EXPECT_EQ(merge({}, {kOne}, {kOne}), (Lines{kOne})); }
TEST(FileMerge, EditAddsBesideARemovedRecord) {
  EXPECT_EQ(merge({kOne}, {}, {kOne, kTwo}), (Lines{kTwo}));
}
TEST(FileMerge, EditAddsToASetThatAnUpdateRetimed) {
  EXPECT_EQ(merge({kOne}, {kOneSlow}, {kOne, kTwo}), (Lines{kOneSlow, kTwoSlow}));
}
TEST(FileMerge, EditAddsAnUpdatedRecordWithAnotherTtl) {
  EXPECT_EQ(merge({}, {kOneSlow}, {kOne}), (Lines{kOneSlow}));
}

TEST(FileMerge, EditRemovesBesideAnAddedRecord) {
  EXPECT_EQ(merge({kOne}, {kOne, kTwo}, {}), (Lines{kTwo}));
}
TEST(FileMerge, EditRemovesWhatAnUpdateRemoved) {
  EXPECT_EQ(merge({kOne, kTwo}, {kTwo}, {kTwo}), (Lines{kTwo}));
}
TEST(FileMerge, EditRemovesWhatAnUpdateRetimed) {
  EXPECT_EQ(merge({kOne}, {kOneSlow}, {}), Lines());
}
TEST(FileMerge, EditRemovesFromASetThatAnAddedRecordRetimed) {
  EXPECT_EQ(merge({kOne}, {kOneSlow, kTwoSlow}, {}), (Lines{kTwoSlow}));
}

TEST(FileMerge, EditRetimesWhatAnUpdateRemoved) {
  EXPECT_EQ(merge({kOne, kTwo}, {kTwo}, {kOneSlow, kTwoSlow}), (Lines{kTwoSlow}));
}
TEST(FileMerge, EditRetimesWhatAnUpdateRetimed) {
  EXPECT_EQ(merge({kOne}, {"r.example. 120 A 192.0.2.1"}, {kOneSlow}),
            (Lines{"r.example. 120 A 192.0.2.1"}));
}
TEST(FileMerge, EditRetimesASetWithAnAddedRecord) {
  EXPECT_EQ(merge({kOne}, {kOne, kTwo}, {kOneSlow}), (Lines{kOne, kTwo}));
}
TEST(FileMerge, EditRetimesAndAddsToASetWithAnAddedRecord) {
  EXPECT_EQ(merge({kOne}, {kOne, kTwo}, {kOneSlow, kThreeSlow}), (Lines{kOne, kTwo, kThree}));
}
TEST(FileMerge, EditReplacesASetWithAnotherTtl) {
  EXPECT_EQ(merge({kOne, kTwo}, {kOne, kTwo}, {kThreeSlow}), (Lines{kThreeSlow}));
  EXPECT_EQ(merge({kOne, kTwo}, {kTwo}, {kThreeSlow}), (Lines{kThreeSlow}));
}

TEST(FileMerge, OtherTypesAndNamesAreOtherSets) {
  EXPECT_EQ(merge({"r 60 A 192.0.2.1"}, {"r 60 A 192.0.2.1", "r 60 TXT x"},
                  {"r 90 A 192.0.2.1", "s 90 TXT y"}),
            (Lines{"r.example. 60 TXT \"x\"", kOneSlow, "s.example. 90 TXT \"y\""}));
}

/// The zone went on while the file was read: the edit meets what is there by then.
TEST(FileMerge, AnEditMeetsAZoneThatHasMovedOn) {
  const ZoneStore first(with_apex({kOne, kTwo})), now(with_apex({kTwo, kThree}));
  ZoneStore live(with_apex({kOne, kTwo}));
  const RecordChanges edit = record_changes_of(*diff_zones(first.zone(), now.zone(), UINT64_MAX));
  live.apply({name("@"), {record(kTwo)}, {record(kThreeSlow)}});
  live.apply(merge_edit(live.zone(), edit));
  EXPECT_EQ(live.at("r"), (Lines{"90 A 192.0.2.3"}));
}

TEST(FileMerge, SoaFieldsFollowTheFileUnlessAnUpdateChangedThem) {
  const zone::Record old = record("@ 60 SOA ns1 admin 10 3600 600 86400 300");
  const zone::Record edited = record("@ 60 SOA ns1 admin 5 7200 600 86400 300");
  const zone::Record updated = record("@ 60 SOA ns2 admin 12 3600 600 86400 300");
  const RecordChanges edit = record_changes_of({name("@"), {old}, {edited}});
  zone::Record live = old;
  EXPECT_EQ(dns::rdata_to_text(live.type, merged_soa(live, edit).rdata),
            "ns1.example. admin.example. 10 7200 600 86400 300");
  EXPECT_EQ(merged_soa(updated, edit).rdata, updated.rdata);
  EXPECT_EQ(merged_soa(live, {}).rdata, live.rdata);
}

TEST(FileMerge, DynamicChangesThatTheZoneContradictsAreDropped) {
  const ZoneStore live(with_apex({kOne}));
  DynamicChanges changes;
  changes.updated(record_changes_of({name("@"), {}, {record(kOne), record(kTwo)}}));
  EXPECT_EQ(drop_stale(changes, live.zone()), 1U);
  EXPECT_EQ(changes.entries().size(), 1U);
  EXPECT_EQ(drop_stale(changes, live.zone()), 0U);
}

}  // namespace file_merge_test
}  // namespace pando::manager
