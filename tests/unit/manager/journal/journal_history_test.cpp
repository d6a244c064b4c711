#include "manager/journal/journal_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/journal/snapshot_maker.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace journal_history_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::IsEmpty;
using testing::name;
using testing::record;

constexpr const char* kFolder = "/journal";

/// Journal files made record by record.
class History : public ::testing::Test {
 protected:
  /// A changeset of `zone` that adds "r<to>".
  static JournalRecord delta(const char* zone, std::uint32_t from, std::uint32_t to) {
    zone::Changeset changes{name(zone), {}, {record(fmt::format("r{} 60 A 192.0.2.1", to))}};
    return {0, 0, RecordKind::kChangeset, name(zone), {from}, {to}, zone::encode(changes)};
  }
  static JournalRecord note(RecordKind kind, const char* zone, std::uint32_t from, std::uint32_t to,
                            Bytes payload = {}) {
    return {0, 0, kind, name(zone), {from}, {to}, std::move(payload)};
  }

  /// A segment whose first record has position `first`; each record is a group.
  void segment(std::uint64_t first, std::vector<JournalRecord> records,
               std::uint64_t void_from = 0) {
    const SegmentHeader header{first, void_from == 0 ? first : void_from,
                               first};
    Bytes bytes = encode_segment_header(header);
    for (JournalRecord& one : records) {
      offsets_.push_back(bytes.size());
      one.position = one.group_first = first++;
      append_record(bytes, one, header.nonce);
    }
    bytes.resize(bytes.size() + 4096);
    const std::string path = fmt::format("{}/{:016x}.journal", kFolder, header.first);
    ASSERT_TRUE(write_file_atomically(disk_, path, bytes).has_value());
    files_.segments.push_back({path, header});
  }
  void snapshot(std::uint64_t position, const std::vector<zone::DumpItem>& items) {
    files_.snapshot = std::string(kFolder) + "/x.snapshot";
    files_.snapshot_position = position;
    const Bytes bytes = testing::snapshot_of(position, items);
    ASSERT_TRUE(write_file_atomically(disk_, files_.snapshot, bytes).has_value());
  }
  void damage_record(std::size_t index) {
    disk_.contents(files_.segments.back().path)[offsets_[index] + kRecordHeaderBytes] ^= 1;
  }

  std::shared_ptr<const JournalHistory> read() {
    notes_.clear();
    return JournalHistory::read(disk_, files_,
                                [this](const JournalNote& note) { notes_.push_back(note.text); });
  }
  MergeBase state(const char* zone, std::uint64_t up_to = UINT64_MAX) {
    auto state = read()->merge_base(name(zone), up_to);
    EXPECT_TRUE(state.has_value());
    return state.value_or(MergeBase{});
  }

  FakeDisk disk_;
  JournalFiles files_;
  std::vector<std::size_t> offsets_;
  std::vector<std::string> notes_;
};

TEST_F(History, FoldsTheRecordsOfEachZoneUpToAPosition) {
  segment(1, {delta("a", 1, 2), delta("b", 5, 6), delta("a", 2, 3)});
  EXPECT_EQ(state("a").dynamic_changes.entries().size(), 2U);
  EXPECT_EQ(state("a").serial, dns::Serial{3});
  EXPECT_EQ(state("a", 2).serial, dns::Serial{2});
  EXPECT_EQ(state("A").file_serial, dns::Serial{1}) << "names have no case";
  EXPECT_TRUE(state("c").dynamic_changes.empty());
  EXPECT_FALSE(state("c").serial.has_value());
  EXPECT_THAT(read()->zone_names(), ElementsAre(name("a"), name("b")));
  EXPECT_FALSE(read()->damaged());
}

JournalRecord left(const char* zone, std::uint32_t serial, std::uint64_t time) {
  const JournalEntry entry = removed_entry(name(zone), {serial}, time);
  return {0, 0, entry.kind, entry.zone, entry.from, entry.to, entry.payload};
}

TEST_F(History, AZoneThatLeftWaitsWithItsRecords) {
  segment(1, {delta("a", 1, 2), left("a", 2, 1234), left("none", 7, 1234)});
  EXPECT_THAT(read()->zone_names(), ElementsAre(name("a"))) << "a zone without records leaves none";
  EXPECT_EQ(read()->removed_at(name("A")), 1234U);
  EXPECT_EQ(state("a").serial, dns::Serial{2});
  EXPECT_TRUE(state("a").dynamic_changes.known());
  EXPECT_EQ(state("a").dynamic_changes.entries().size(), 1U);
  segment(4, {delta("a", 2, 3)});
  EXPECT_EQ(read()->removed_at(name("a")), std::nullopt) << "it came back";
  EXPECT_EQ(state("a").dynamic_changes.entries().size(), 2U);
}

/// All its records may be lost before that. Its leaving tells the serial then.
TEST_F(History, AZoneThatLeftBehindDamageIsKnown) {
  segment(1, {delta("a", 1, 2), delta("b", 1, 2), left("a", 2, 1234)});
  damage_record(0);
  EXPECT_TRUE(read()->knows(name("a")));
  EXPECT_TRUE(read()->may_have_lost(name("a")));
  EXPECT_GT(read()->unused_serial(name("a"), dns::Serial{1}).value, 2U);
  EXPECT_EQ(read()->removed_at(name("a")), 1234U);
  segment(4, {note(RecordKind::kGone, "a", 2, 2), left("a", 1, 1235)});
  EXPECT_FALSE(read()->knows(name("a"))) << "nothing before the purge counts";
}

/// The journal lacks records of the zone: no serial may be used again.
TEST_F(History, AZoneThatLeftWithALaterSerialHasUnknownChangesAndThatSerial) {
  segment(1, {delta("a", 1, 2), left("a", 9, 1234)});
  EXPECT_FALSE(state("a").dynamic_changes.known());
  EXPECT_EQ(state("a").serial, dns::Serial{9});
}

TEST_F(History, APurgedZoneIsForgotten) {
  segment(1, {delta("a", 1, 2), note(RecordKind::kGone, "a", 2, 2), delta("b", 1, 2)});
  EXPECT_FALSE(read()->knows(name("a")));
  EXPECT_THAT(read()->zone_names(), ElementsAre(name("b")));
  segment(4, {delta("a", 100, 101)});
  EXPECT_EQ(state("a").file_serial, dns::Serial{100});
  EXPECT_TRUE(state("a").dynamic_changes.known());
  EXPECT_EQ(state("a").dynamic_changes.entries().size(), 1U);
}

TEST_F(History, DamageMakesDynamicChangesUnknownWhereItMayHaveHit) {
  segment(1, {delta("a", 1, 2), delta("hit", 1, 2), delta("b", 1, 2)});
  damage_record(1);
  EXPECT_FALSE(state("a").dynamic_changes.known()) << "its next record may be what is missing";
  EXPECT_FALSE(state("b").dynamic_changes.known()) << "the record before may be";
  EXPECT_FALSE(state("hit").dynamic_changes.known());
  EXPECT_TRUE(read()->damaged());
  EXPECT_EQ(notes_.size(), 1U);
}

TEST_F(History, AfterDamageDynamicChangesAreKnownFromWhereARecordSaysThem) {
  segment(1, {delta("a", 1, 2), delta("hit", 1, 2), note(RecordKind::kBase, "a", 2, 2),
              delta("a", 2, 3)});
  damage_record(1);
  EXPECT_TRUE(state("a").dynamic_changes.known());
  EXPECT_EQ(state("a").dynamic_changes.entries().size(), 1U);
}

TEST_F(History, AMissingSegmentIsDamageAndAVoidStretchIsNot) {
  segment(1, {delta("a", 1, 2)});
  segment(5, {delta("b", 1, 2)}, 2);
  EXPECT_FALSE(read()->damaged());
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_TRUE(state("a").dynamic_changes.known());
  segment(9, {delta("c", 1, 2)});
  EXPECT_TRUE(read()->damaged());
  EXPECT_THAT(notes_, ElementsAre("journal records 6 to 8 are missing"));
  EXPECT_FALSE(state("a").dynamic_changes.known());
}

/// One of them may be older, and may have raised the serial that another one has taken.
TEST_F(History, FaultsAddUpToTheStepOfASerial) {
  constexpr std::uint32_t kUnknown = 1 << 20;
  segment(1, {delta("a", 1, 2)});
  files_.health.extend_lost(5);
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{2 + 4 + 1});
  files_.health.extend_lost(std::uint64_t{1} << 40);
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{2 + kUnknown + 1});
  files_.health.leave_out(2);
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{2 + 2 * kUnknown + 1});
}

/// The segment's position must not pass for the one of a later segment, which would tell how many
/// records are lost.
TEST_F(History, ALastSegmentThatIsDamagedFromItsFirstRecordOnMayHaveLostAnyNumber) {
  constexpr std::uint32_t kUnknown = 1 << 20;
  segment(1, {delta("a", 1, 2)});
  segment(2, {delta("a", 2, 3), delta("a", 3, 4)});
  damage_record(1);
  damage_record(2);
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{2 + kUnknown + 1})
      << "bytes that change behind the start";
  files_.health.leave_out(2);  // as Journal::open() finds it
  ASSERT_TRUE(ends_in_damage(files_));
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{2 + kUnknown + 1});
  // A later segment tells the number.
  segment(7, {delta("b", 1, 2)});
  ASSERT_FALSE(ends_in_damage(files_));
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{2 + 5 + 1});
}

TEST_F(History, AZoneOfWhichAnUnreadFileHasAllTakesASerialAboveEarlierSteps) {
  constexpr std::uint32_t kUnknown = 1 << 20;
  segment(1, {delta("a", 1, 2)});
  files_.health.add_replaced("1.journal.unread");
  const dns::Serial one = read()->unused_serial(name("gone"), dns::Serial{10});
  EXPECT_GT(one.value, 10 + 32 * kUnknown);
  files_.health.add_replaced("2.journal.unread");
  const dns::Serial two = read()->unused_serial(name("gone"), dns::Serial{10});
  EXPECT_GT(two.value, one.value + 32 * kUnknown);
  EXPECT_EQ(read()->unused_serial(name("a"), dns::Serial{2}), dns::Serial{3}) << "it is known";
}

TEST_F(History, TheFirstSegmentsMissingIsDamageToo) {
  segment(3, {delta("a", 1, 2)});
  EXPECT_FALSE(state("a").dynamic_changes.known());
}

TEST_F(History, ASnapshotSaysWhatCameByUpdate) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(record_changes_of({name("a"), {}, {record("dyn 60 A 192.0.2.1")}}));
  const zone::DumpZone zone = testing::whole_zone(name("a"), 9);
  const zone::DumpNote said =
      note_of(note(RecordKind::kDynamicChanges, "a", 4, 9, encode(name("a"), dynamic_changes)));
  const zone::DumpZoneEnd end;
  snapshot(20, {zone, said, end});
  segment(21, {delta("a", 9, 10)});
  EXPECT_EQ(state("a").dynamic_changes.entries().size(), 2U);
  EXPECT_EQ(state("a").file_serial, dns::Serial{4});
  EXPECT_EQ(state("a", 20).dynamic_changes.entries(), dynamic_changes.entries());
  snapshot(20, {zone, end});
  EXPECT_FALSE(state("a").dynamic_changes.known()) << "no record says so";
  EXPECT_FALSE(read()->damaged());
  snapshot(20, {zone, said});
  EXPECT_TRUE(read()->damaged()) << "its end is missing";
  EXPECT_FALSE(state("a").dynamic_changes.known());
}

TEST_F(History, ReplayBySerialsTakesWhatFits) {
  segment(1, {delta("a", 1, 2), delta("a", 2, 3), delta("a", 7, 8)});
  const auto replay = [&](std::uint32_t from, std::uint64_t up_to) {
    auto found = read()->replay(name("a"), dns::Serial{from}, up_to);
    EXPECT_TRUE(found.has_value());
    return std::tuple(found->serial->value, found->applied, found->skipped,
                      found->net.entries().size());
  };
  EXPECT_EQ(replay(1, UINT64_MAX), std::tuple(3U, 2U, 1U, 2U));
  EXPECT_EQ(replay(2, UINT64_MAX), std::tuple(3U, 1U, 2U, 1U));
  EXPECT_EQ(replay(99, UINT64_MAX), std::tuple(99U, 0U, 3U, 0U));
  EXPECT_EQ(replay(1, 1), std::tuple(2U, 1U, 0U, 1U));
}

/// A journal that is appended to whenever somebody reads from its folder.
TEST(HistoryOfAGrowingJournal, EndsWhereTheJournalEndedWhenItsFilesWereAsked) {
  FakeDisk disk;
  auto journal = Journal::open({kFolder, 1 << 20}, disk, [](const JournalNote&) {});
  ASSERT_TRUE(journal.has_value());
  std::uint32_t serial = 1;
  const auto append = [&] {
    zone::Changeset changes{name("a"), {}, {record(fmt::format("r{} 60 A 192.0.2.1", serial))}};
    const JournalEntry entry{
        name("a"), {serial}, {serial + 1}, zone::encode(changes), RecordKind::kChangeset};
    ++serial;
    ASSERT_TRUE(journal->append({&entry, 1}).has_value());
  };
  append();
  append();
  const std::uint64_t position = journal->last_position();
  bool appending = false;
  disk.fail = [&](FakeDisk::Call call, const std::string&) -> Status {
    if (call != FakeDisk::Call::kRead || appending) return {};
    appending = true;
    append();
    append();
    appending = false;
    return {};
  };
  std::vector<std::string> notes;
  const auto history = JournalHistory::read(
      disk, journal->files(), [&](const JournalNote& note) { notes.push_back(note.text); });
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_GT(journal->last_position(), position + 2) << "nothing was appended meanwhile";
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_FALSE(history->damaged());
  const auto state = history->merge_base(name("a"), UINT64_MAX);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->serial, dns::Serial{3});
  EXPECT_TRUE(state->dynamic_changes.known());
}

}  // namespace journal_history_test
}  // namespace pando::manager
