#include "manager/journal/record/journal_payload.h"

#include <gmock/gmock.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace journal_payload_test {

using shm::test::must;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::name;
using testing::record;
using Lines = std::vector<std::string>;

zone::Changeset changes(const Lines& removed, const Lines& added) {
  zone::Changeset list{name("@"), {}, {}};
  for (const std::string& line : removed) list.removed.push_back(record(line));
  for (const std::string& line : added) list.added.push_back(record(line));
  return list;
}
JournalRecord journalled(const JournalEntry& entry) {
  JournalRecord record;
  record.kind = entry.kind;
  record.zone = entry.zone;
  record.from = entry.from;
  record.to = entry.to;
  record.payload = entry.payload;
  return record;
}
JournalRecord update(std::uint32_t from, const Lines& removed, const Lines& added) {
  return journalled({name("@"), {from}, {from + 1}, zone::encode(changes(removed, added))});
}
/// Owners of the dynamic changes.
Lines owners(const DynamicChanges& changes) {
  Lines all;
  for (const auto& [key, entry] : changes.entries()) all.push_back(to_text(key.owner()));
  return all;
}
void take(MergeBase& base, const JournalRecord& record) { must(base.take(record)); }

const zone::ZoneFileInfo kFileInfo{1'000'000'007, 1234, 0xABCDEF, 77};

TEST(JournalPayload, AFileEditHasBothHalves) {
  const Bytes bytes = encode_file_edit({42}, changes({}, {"live 60 A 192.0.2.1"}),
                                       changes({"held 60 A 192.0.2.2"}, {}));
  const FileEdit edit = must(decode_file_edit(bytes));
  EXPECT_EQ(edit.file_serial, dns::Serial{42});
  ASSERT_EQ(edit.live.added.size(), 1U);
  EXPECT_EQ(edit.live.added[0].owner, name("live"));
  ASSERT_EQ(edit.held.removed.size(), 1U);
  EXPECT_EQ(edit.held.removed[0].owner, name("held"));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_file_edit(ByteView(bytes).first(length))) << length;
}

/// The stamp is worthless on another disk, so the journal does not have it; a dump does.
TEST(JournalPayload, AFilesIdentityIsReadWithAndWithoutItsStamp) {
  zone::ZoneFileInfo without = kFileInfo;
  without.stamp = 0;
  EXPECT_EQ(must(decode_source(encode(kFileInfo))), without);
  EXPECT_EQ(must(decode_source(encode_stamped(kFileInfo))), kFileInfo);
  EXPECT_EQ(decode_source(Bytes(23)).error().code, Errc::kCorrupt);
}

TEST(JournalPayload, HashesTellFilesApartAndTimesOnlyWithoutThem) {
  zone::ZoneFileInfo touched = kFileInfo;
  touched.file_mtime_ns += 1;
  EXPECT_TRUE(same_source(kFileInfo, touched));
  zone::ZoneFileInfo edited = kFileInfo;
  edited.hash += 1;
  EXPECT_FALSE(same_source(kFileInfo, edited)) << "an edit that kept size and time";
  touched.hash = 0;
  EXPECT_FALSE(same_source(kFileInfo, touched));
  zone::ZoneFileInfo longer = kFileInfo;
  longer.file_bytes += 1;
  EXPECT_FALSE(same_source(kFileInfo, longer));
}

TEST(JournalPayload, ASignedChangeShowsTheRecordInsideIt) {
  JournalEntry entry{name("@"), {1}, {2}, zone::encode(changes({}, {"new 60 A 192.0.2.1"}))};
  wrap_signed(entry);
  EXPECT_EQ(entry.kind, RecordKind::kSigned);
  EXPECT_EQ(must(decode_signed(entry.payload)).kind, RecordKind::kChangeset);
  EXPECT_EQ(must(served_changes(journalled(entry))).added.size(), 1U);
  EXPECT_FALSE(is_whole_signing(journalled(entry)));
  EXPECT_EQ(decode_signed({}).error().code, Errc::kCorrupt);
  EXPECT_EQ(decode_signed(Bytes{static_cast<std::uint8_t>(RecordKind::kGone)}).error().code,
            Errc::kCorrupt);
}

/// The records of the signer are made anew after each start, under whatever keys there are then.
TEST(JournalPayload, RecordsOfTheSignerAreNoSourceChanges) {
  JournalEntry entry{name("@"),
                     {1},
                     {2},
                     zone::encode(changes({}, {"new 60 A 192.0.2.1", "new 60 NSEC www A NSEC"}))};
  EXPECT_EQ(must(source_changes(journalled(entry))).size(), 2U) << "another server's signatures";
  wrap_signed(entry);
  EXPECT_EQ(must(source_changes(journalled(entry))).size(), 1U);
  EXPECT_EQ(must(served_changes(journalled(entry))).added.size(), 2U);
}

TEST(JournalPayload, ARemovalTellsItsTimeAndAPurgeHasNone) {
  const JournalRecord removed = journalled(removed_entry(name("@"), {5}, 1'700'000'000));
  EXPECT_EQ(removal_time(removed), 1'700'000'000U);
  EXPECT_FALSE(is_purge(removed));
  const JournalRecord purged = journalled(purged_entry(name("@"), {5}));
  EXPECT_EQ(removal_time(purged), std::nullopt);
  EXPECT_TRUE(is_purge(purged));
  EXPECT_FALSE(is_purge(update(1, {}, {})));
}

TEST(JournalPayload, OnlyRecordsThatMoveTheSerialChangeTheZone) {
  EXPECT_TRUE(changes_zone(update(1, {}, {})));
  JournalRecord edit = update(1, {}, {});
  edit.kind = RecordKind::kFileEdit;
  EXPECT_TRUE(changes_zone(edit));
  edit.to = edit.from;
  EXPECT_FALSE(changes_zone(edit)) << "the zone did not follow the file";
  EXPECT_FALSE(changes_zone(journalled(source_entry(name("@"), {1}, kFileInfo))));
}

TEST(JournalMergeBase, UpdatesSinceTheFileAreTheDynamicChanges) {
  MergeBase base;
  take(base, update(1, {}, {"a 60 A 192.0.2.1"}));
  take(base, update(2, {}, {"b 60 A 192.0.2.1"}));
  EXPECT_THAT(owners(base.dynamic_changes), ElementsAre("a.example.", "b.example."));
  EXPECT_EQ(base.file_serial, dns::Serial{1});
  EXPECT_EQ(base.serial, dns::Serial{3});
}

/// A gap proves lost records, so nobody can say what the file lacks.
TEST(JournalMergeBase, AGapMakesTheDynamicChangesUnknown) {
  MergeBase base;
  take(base, update(1, {}, {"a 60 A 192.0.2.1"}));
  take(base, update(5, {}, {"b 60 A 192.0.2.1"}));
  EXPECT_FALSE(base.dynamic_changes.known());
  MergeBase passing;
  passing.passes_gaps = true;
  take(passing, update(1, {}, {"a 60 A 192.0.2.1"}));
  take(passing, update(5, {}, {"b 60 A 192.0.2.1"}));
  EXPECT_TRUE(passing.dynamic_changes.known());
}

TEST(JournalMergeBase, AMergedFileIsTheNewBase) {
  MergeBase base;
  take(base, update(1, {}, {"a 60 A 192.0.2.1"}));
  JournalRecord edit = update(2, {}, {});
  edit.kind = RecordKind::kFileEdit;
  edit.payload = encode_file_edit({20}, changes({}, {"c 60 A 192.0.2.1"}), changes({}, {}));
  take(base, edit);
  EXPECT_EQ(base.file_serial, dns::Serial{20});
  EXPECT_THAT(owners(base.dynamic_changes), ElementsAre("a.example."))
      << "the zone followed the file: c is in both";
  take(base, journalled(source_entry(name("@"), {3}, kFileInfo)));
  EXPECT_TRUE(base.is_merged({20}, kFileInfo));
  EXPECT_FALSE(base.is_merged({21}, kFileInfo));
  EXPECT_TRUE(base.is_base_file({20}, kFileInfo));
}

TEST(JournalMergeBase, ASecondaryThatBecomesAPrimaryKeepsItsOwnUpdates) {
  const auto secondary = [] {
    MergeBase base;
    take(base, update(1, {}, {"before 60 A 192.0.2.1"}));
    JournalRecord transfer = update(2, {}, {"primary 60 A 192.0.2.1"});
    transfer.kind = RecordKind::kTransfer;
    take(base, transfer);
    take(base, update(3, {}, {"mine 60 A 192.0.2.1"}));
    return base;
  };
  MergeBase with_other_file = secondary();
  take(with_other_file, journalled(primary_entry(name("@"), {4}, false)));
  EXPECT_THAT(owners(with_other_file.dynamic_changes), ElementsAre("mine.example."));
  MergeBase with_base_file = secondary();
  take(with_base_file, journalled(primary_entry(name("@"), {4}, true)));
  EXPECT_THAT(owners(with_base_file.dynamic_changes),
              ElementsAre("before.example.", "mine.example.", "primary.example."));
}

TEST(JournalMergeBase, APurgeForgetsAllAndARemovalNothing) {
  MergeBase base;
  take(base, update(1, {}, {"a 60 A 192.0.2.1"}));
  take(base, journalled(removed_entry(name("@"), {2}, 1)));
  EXPECT_THAT(owners(base.dynamic_changes), ElementsAre("a.example."));
  take(base, journalled(purged_entry(name("@"), {2})));
  EXPECT_THAT(owners(base.dynamic_changes), IsEmpty());
  EXPECT_EQ(base.serial, std::nullopt);
}

}  // namespace journal_payload_test
}  // namespace pando::manager
