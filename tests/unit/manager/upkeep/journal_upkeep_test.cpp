#include "manager/upkeep/journal_upkeep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <latch>

#include "manager/journal/journal_history.h"
#include "manager/journal/snapshot_file.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/failing_files.h"

namespace pando::manager {
namespace journal_upkeep_test {

using testing::name;
using testing::Parts;

class Upkeep : public ::testing::Test {
 protected:
  /// As a kill between the making of a segment and its first record leaves the folder, and the
  /// start after it.
  void begin_with_an_empty_segment() {
    const std::string folder = parts_.folder.path() + "/journal";
    const std::uint64_t first = parts_.journal.last_position() + 1;
    const Bytes header = encode_segment_header({first, first, 7});
    ASSERT_TRUE(write_file_atomically(native_files(),
                                      fmt::format("{}/{:016x}.journal", folder, first), header)
                    .has_value());
    parts_.journal = shm::test::must(
        Journal::open({folder, 64 << 10}, native_files(), [](const JournalNote&) {}));
  }
  void append(JournalEntry entry) {
    const auto append_one = [&](Stage& stage) -> Status {
      stage.journal.push_back(std::move(entry));
      return {};
    };
    ASSERT_TRUE(parts_.commit(append_one).has_value());
  }
  void unload() {
    const auto step = [](zone::Draft& draft) { return draft.unload_zone(name("@")); };
    ASSERT_TRUE(parts_.edit(step).has_value());
  }
  /// Of kChangeset.
  int in_snapshot() {
    int found = 0;
    const auto snapshot =
        shm::test::must(SnapshotFile::open(native_files(), parts_.journal.files().snapshot));
    const auto count = [&](zone::DumpItem&& item) -> Status {
      const auto* note = std::get_if<zone::DumpNote>(&item);
      if (note != nullptr && note->kind == static_cast<int>(RecordKind::kChangeset)) ++found;
      return {};
    };
    for (const SnapshotFile::Place& place : snapshot.zones().places)
      EXPECT_TRUE(snapshot.for_each_item(place, count).has_value());
    return found;
  }
  int behind_snapshot() {
    int found = 0;
    const JournalFiles files = parts_.journal.files();
    EXPECT_TRUE(for_each_record(
                    native_files(), files, files.snapshot_position,
                    [&](JournalRecord&& record) -> Status {
                      if (record.kind == RecordKind::kChangeset) ++found;
                      return {};
                    },
                    [](const JournalNote& note) { ADD_FAILURE() << note.text; })
                    .has_value());
    return found;
  }

  Parts parts_;
};

/// The first group behind it goes to a segment of the same name while the snapshot is written.
TEST_F(Upkeep, AnEmptySegmentsSuccessorIsNotFolded) {
  ASSERT_TRUE(parts_
                  .apply({"@ 0 SOA ns1 admin 10 3600 600 86400 300"},
                         {"@ 3600 SOA ns1 admin 11 3600 600 86400 300"})
                  .has_value());
  begin_with_an_empty_segment();
  unload();  // the records of a zone without data are copied as they are
  std::latch free{1};
  for (int thread = 0; thread < 2; ++thread) asio::post(parts_.pool, [&free] { free.wait(); });
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, native_files(),
                       parts_.journal, parts_.committer, parts_.slots, 1);
  upkeep.check(false);
  const zone::Changeset change = parts_.changes({}, {"later 60 A 192.0.2.1"});
  append({name("@"), {11}, {12}, zone::encode(change), RecordKind::kChangeset});
  free.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  ASSERT_EQ(upkeep.snapshots(), 1U);
  EXPECT_EQ(in_snapshot(), 1);
  EXPECT_EQ(behind_snapshot(), 1);
  // So it is for the next process.
  testing::open_journal_again(parts_);
  EXPECT_EQ(in_snapshot(), 1);
  EXPECT_EQ(behind_snapshot(), 1);
}

/// Until then an update would exist in the live store only.
TEST_F(Upkeep, AJournalThatLacksRecordsGetsASnapshotAtOnceAndUpdatesWaitForIt) {
  const auto moved = [](int serial) {
    return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
  };
  ASSERT_TRUE(parts_.apply({moved(10)}, {moved(11), "one 60 A 192.0.2.9"}).has_value());
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, native_files(),
                       parts_.journal, parts_.committer, parts_.slots, 1 << 30);
  upkeep.check(false);
  EXPECT_FALSE(upkeep.running()) << "nothing is to be done";
  parts_.journal.report(JournalHealth::State::kBehind, "restored from a backup");
  EXPECT_THAT(upkeep.problem(), ::testing::HasSubstr("restored from a backup"));
  const auto refused = parts_.apply({moved(11)}, {moved(12), "two 60 A 192.0.2.9"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kIo);
  upkeep.check(false);
  ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  EXPECT_EQ(upkeep.snapshots(), 1U);
  EXPECT_EQ(upkeep.problem(), "");
  EXPECT_TRUE(parts_.apply({moved(11)}, {moved(12), "two 60 A 192.0.2.9"}).has_value());
  const auto snapshot =
      shm::test::must(SnapshotFile::open(native_files(), parts_.journal.files().snapshot));
  EXPECT_EQ(snapshot.zones().places.size(), 1U);
}

/// Also if the zone had none at the start already, so that the store never counted as complete.
TEST_F(Upkeep, AZoneWithoutDataKeepsAGapOpenAndIsNamed) {
  unload();
  parts_.journal = shm::test::must(
      Journal::open({parts_.journal.directory(), 64 << 10, std::chrono::milliseconds(0)},
                    native_files(), [](const JournalNote&) {}));
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, native_files(),
                       parts_.journal, parts_.committer, parts_.slots, 1 << 30);
  parts_.journal.report(JournalHealth::State::kUnreadable, "a bad sector");
  upkeep.check(false);
  EXPECT_FALSE(upkeep.running());
  EXPECT_THAT(upkeep.problem(), ::testing::HasSubstr("a bad sector"));
  EXPECT_THAT(upkeep.problem(),
              ::testing::HasSubstr(fmt::format("zone {} has no data", to_text(name("@")))));
}

TEST_F(Upkeep, DamageOfAnOlderSegmentIsFoundAndHealed) {
  const auto moved = [](int serial) {
    return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
  };
  for (int serial = 10; serial < 13; ++serial) {
    ASSERT_TRUE(parts_.apply({moved(serial)}, {moved(serial + 1)}).has_value());
    if (serial == 11) parts_.journal.seal();
  }
  const std::string path = parts_.journal.files().segments.front().path;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(kSegmentHeaderBytes + kRecordHeaderBytes + 12)
      .put('!');
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, native_files(),
                       parts_.journal, parts_.committer, parts_.slots, 1 << 30);
  EXPECT_FALSE(parts_.journal.health().lacks_records()) << "nobody has looked";
  upkeep.examine();
  upkeep.check(false);
  ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  ASSERT_TRUE(parts_.journal.health().lacks_records());
  upkeep.check(false);
  ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  EXPECT_FALSE(parts_.journal.health().lacks_records());
  const auto history = JournalHistory::read(native_files(), parts_.journal.files(),
                                            [](const JournalNote& note) { FAIL() << note.text; });
  EXPECT_FALSE(history->damaged());
}

/// Until an update of it met the part, nobody but the log would know.
TEST_F(Upkeep, APartThatASnapshotCannotReadIsInTheHealth) {
  const auto moved = [](int serial) {
    return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
  };
  for (int serial = 10; serial < 13; ++serial) {
    ASSERT_TRUE(parts_.apply({moved(serial)}, {moved(serial + 1)}).has_value());
    parts_.journal.seal();
  }
  testing::FailingFiles files;
  const std::string bad = parts_.journal.files().segments.front().path;
  files.fail = [&](testing::FailingFiles::Call call, const std::string& path) {
    return call == testing::FailingFiles::Call::kRead && path == bad
               ? fail(Errc::kIo, "a bad sector")
               : Status();
  };
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, files, parts_.journal,
                       parts_.committer, parts_.slots, 1);
  const auto check = [&] {
    upkeep.check(false);
    EXPECT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  };
  check();
  EXPECT_EQ(upkeep.snapshots(), 0U);
  EXPECT_EQ(parts_.journal.health().state(), JournalHealth::State::kWhole);
  check();  // during the pause after the failure
  EXPECT_EQ(parts_.journal.health().state(), JournalHealth::State::kPartUnread);
  EXPECT_THAT(upkeep.problem(), ::testing::HasSubstr("a bad sector"));
}

/// A fault of the moment is no fault of the journal.
TEST_F(Upkeep, APartThatIsReadableAgainLeavesTheHealthAsItIs) {
  ASSERT_TRUE(parts_
                  .apply({"@ 0 SOA ns1 admin 10 3600 600 86400 300"},
                         {"@ 3600 SOA ns1 admin 11 3600 600 86400 300"})
                  .has_value());
  parts_.journal.seal();
  testing::FailingFiles files;
  bool fails = true;
  files.fail = [&](testing::FailingFiles::Call call, const std::string&) {
    return fails && call == testing::FailingFiles::Call::kRead ? fail(Errc::kIo, "a bad sector")
                                                               : Status();
  };
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, files, parts_.journal,
                       parts_.committer, parts_.slots, 1);
  for (const bool is_examination : {false, true}) {
    fails = !is_examination;
    upkeep.check(false);
    ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  }
  upkeep.check(false);
  EXPECT_FALSE(upkeep.running()) << "the next snapshot waits for the end of the pause";
  EXPECT_EQ(parts_.journal.health().state(), JournalHealth::State::kWhole);
  EXPECT_EQ(upkeep.problem(), "");
}

}  // namespace journal_upkeep_test
}  // namespace pando::manager
