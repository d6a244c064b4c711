#include "manager/journal/journal_recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <set>

#include "manager/journal/journal_history.h"
#include "tests/unit/manager/journal/journal_fixture.h"
#include "tests/unit/manager/journal/snapshot_maker.h"

namespace pando::manager {
namespace journal_recovery_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Files that earlier processes left.
class JournalFolder : public testing::JournalFixture {};

/// A process is killed between write and sync, and the next one finds a disk that fails. What it
/// appended behind records that are in the page cache only would not fit to what a crash of the
/// host leaves.
class UndurableTail : public JournalFolder {
 protected:
  struct Killed {};
  using Call = FakeDisk::Call;

  void fail_on(std::set<Call> calls) {
    disk.fail = [calls = std::move(calls)](Call call, const std::string&) -> Status {
      return calls.contains(call) ? fail(Errc::kFull, "injected") : Status();
    };
  }
  /// Leaves "good", and "written", which is not known to be on the disk.
  void live_and_be_killed() {
    disk = FakeDisk();
    severe.clear();
    Journal journal = open();
    append(journal, "good");
    disk.fail = [](Call call, const std::string&) -> Status {
      if (call == Call::kSync) throw Killed();
      return {};
    };
    EXPECT_THROW(static_cast<void>(try_append(journal, "written")), Killed);
  }
  Journal open_with_failing(Call call) {
    fail_on({call});
    Journal journal = open();
    EXPECT_THAT(severe, ElementsAre(HasSubstr("could not be made durable again: injected")));
    return journal;
  }
};

TEST_F(UndurableTail, NothingIsTakenBehindIt) {
  for (const Call call :
       {Call::kPreallocate, Call::kWrite, Call::kSync, Call::kRename, Call::kSyncDirectory})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(fmt::format("call {} seed {}", static_cast<int>(call), seed));
      live_and_be_killed();
      {
        Journal journal = open_with_failing(call);
        EXPECT_THAT(payloads(journal), ElementsAre("good", "written")) << "zones are served";
        for (int i = 0; i < 2; ++i) {
          const auto refused = try_append(journal, "refused");
          ASSERT_FALSE(refused);
          EXPECT_THAT(refused.error().text, HasSubstr("could not be made durable again"));
          EXPECT_FALSE(journal.begin_segment());
        }
        EXPECT_THAT(disk.paths(), ElementsAre(last_segment(journal)));
        fail_on({});
        EXPECT_EQ(append(journal, "acknowledged"), 3U) << "no position was used";
      }
      std::mt19937_64 random(seed);
      disk.power_cut(random);
      severe.clear();
      EXPECT_THAT(payloads(open()), ElementsAre("good", "written", "acknowledged"));
      EXPECT_THAT(severe, IsEmpty());
    }
}

TEST_F(UndurableTail, IsTriedAgainWithoutARecord) {
  live_and_be_killed();
  {
    Journal journal = open_with_failing(Call::kPreallocate);
    EXPECT_FALSE(journal.health().has_durable_end());
    EXPECT_FALSE(journal.append({}));
    EXPECT_FALSE(journal.health().has_durable_end());
    fail_on({});
    EXPECT_TRUE(journal.append({}));
    EXPECT_TRUE(journal.health().has_durable_end());
  }
  std::mt19937_64 random(1);
  disk.power_cut(random);
  EXPECT_THAT(payloads(open()), ElementsAre("good", "written"));
}

TEST_F(UndurableTail, OneThatCannotEvenBeReadIsLeftToALaterStart) {
  live_and_be_killed();
  int opened = 0;
  const std::string last = fmt::format("{}/{:016x}.journal", kFolder, 1);
  // The first two read what it has.
  disk.fail = [&](Call call, const std::string& path) -> Status {
    return call == Call::kOpen && path == last && ++opened == 3 ? fail(Errc::kIo, "EIO") : Status();
  };
  {
    auto journal = Journal::open({kFolder, 4096}, disk, sink());
    ASSERT_TRUE(journal.has_value());
    EXPECT_THAT(journal->health().refusal(), HasSubstr("EIO"));
    EXPECT_FALSE(try_append(*journal, "refused").has_value());
  }
  fail_on({});
  EXPECT_THAT(payloads(open()), ElementsAre("good", "written"));
}

TEST_F(UndurableTail, HasTheRoomThatWasReservedForMoreRecords) {
  live_and_be_killed();
  const std::string last = fmt::format("{}/{:016x}.journal", kFolder, 1);
  disk.fail = [&](Call call, const std::string& path) -> Status {
    if (call != Call::kPreallocate || path != last + ".partial") return {};
    return disk.contents(last).size() < 1000 ? Status() : fail(Errc::kFull, "ENOSPC");
  };
  Journal journal = open();
  EXPECT_THAT(severe, IsEmpty());
  append(journal, "acknowledged");
  EXPECT_THAT(payloads(open()), ElementsAre("good", "written", "acknowledged"));
}

/// It is in the snapshot, and its file must not come back.
TEST_F(UndurableTail, ASnapshotThatHasItTakesItsPlace) {
  live_and_be_killed();
  Journal journal = open_with_failing(Call::kPreallocate);
  fail_on({});
  const JournalFiles sealed = journal.sealed_files();
  const std::string partial = std::string(kFolder) + "/snapshot.partial";
  ASSERT_TRUE(write_file_atomically(disk, partial, testing::snapshot_of(2)));
  ASSERT_TRUE(journal.replace_by_snapshot(partial, 2, sealed));
  append(journal, "acknowledged");
  EXPECT_FALSE(disk.has(sealed.segments.back().path));
  EXPECT_THAT(payloads(open(), 2), ElementsAre("acknowledged"));
}

/// A header whose bytes from `at` on are `bytes`, with a right checksum.
Bytes changed_header(std::size_t at, const Bytes& bytes) {
  Bytes header = encode_segment_header({1, 1, 7});
  std::copy(bytes.begin(), bytes.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  store_be64(header.data() + 56, XXH3_64bits(header.data(), 56));
  return header;
}

class AnotherFormat : public JournalFolder, public ::testing::WithParamInterface<const char*> {
 protected:
  /// A folder whose only file has the changed header, and records as this build writes them.
  void expect_refused(const Bytes& header) {
    disk = FakeDisk();
    const std::string path = fmt::format("{}/{:016x}.{}", kFolder, 1, GetParam());
    Bytes bytes = header;
    append_record(bytes, {1, 1, RecordKind::kChangeset, name("a."), {}, {}, {}}, 7);
    ASSERT_TRUE(write_file_atomically(disk, path, bytes).has_value());
    const auto refused = Journal::open({kFolder, 4096}, disk, sink());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::kLayout);
    // A snapshot is a dump, whose format has versions of its own.
    const std::string version = std::string_view(GetParam()) == "journal" ? "3" : "1";
    EXPECT_EQ(refused.error().text, "journal file " + path + ": its format is not the one that " +
                                        "this build reads, version " + version);
    EXPECT_EQ(disk.contents(path), bytes) << "the file stays as it is";
    EXPECT_THAT(notes, IsEmpty());
  }
};

/// Snapshots had the segments' header, before they were dumps.
TEST_P(AnotherFormat, IsRefused) {
  for (const std::uint8_t version : Bytes{0, 1, 4})
    expect_refused(changed_header(8, {0, 0, 0, version}));
  // Builds before the first release wrote this magic, with versions 1 to 4.
  for (std::uint8_t version = 1; version <= 4; ++version)
    expect_refused(
        changed_header(0, {'P', 'A', 'N', 'D', 'O', 'J', 'L', '1', 0, 0, 0, version}));
}

INSTANTIATE_TEST_SUITE_P(Files, AnotherFormat,
                         ::testing::Values("journal", "snapshot"));

TEST_F(JournalFolder, SegmentsOfVersionTwoAreRead) {
  Journal journal = open();
  append(journal, "old");
  const std::string segment = last_segment(journal);
  Bytes& bytes = disk.contents(segment);
  bytes[11] = 2;
  store_be64(bytes.data() + 56, XXH3_64bits(bytes.data(), 56));
  Journal again = open();
  append(again, "new");
  EXPECT_THAT(payloads(open()), ElementsAre("old", "new"));
  EXPECT_EQ(disk.contents(segment)[11], 2);
  EXPECT_EQ(disk.contents(last_segment(again))[11], 3);
}

/// The version field of a damaged header means nothing.
TEST_F(JournalFolder, ADamagedVersionIsDamage) {
  Journal journal = open();
  append(journal, "x");
  disk.contents(last_segment(journal))[11] = 99;
  const Journal again = open();
  EXPECT_THAT(payloads(again), IsEmpty());
  EXPECT_THAT(severe, ElementsAre(HasSubstr("damaged header")));
}

/// The next segment would be written over the records of this one.
TEST_F(JournalFolder, ASegmentThatCannotBeReadForNowIsNotLeftOut) {
  Journal journal = open(1024);
  for (int i = 0; i < 20; ++i) append(journal, fmt::format("{:x>100}", i));
  const std::string last = last_segment(journal);
  ASSERT_GT(journal.files().segments.size(), 2U);
  disk.fail = [&](FakeDisk::Call call, const std::string& path) -> Status {
    if (call == FakeDisk::Call::kOpen && path == last) return fail(Errc::kIo, "injected");
    return {};
  };
  {
    auto beside = Journal::open({kFolder, 1024}, disk, sink());
    ASSERT_TRUE(beside.has_value());
    EXPECT_THAT(beside->files().health.reason(), HasSubstr(last));
    EXPECT_FALSE(try_append(*beside, "refused").has_value());
  }
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_EQ(payloads(open(1024)).size(), 20U);
}

TEST_F(JournalFolder, ASegmentWithADamagedHeaderIsKeptAside) {
  Journal journal = open(1024);
  for (int i = 0; i < 20; ++i) append(journal, fmt::format("{:x>100}", i));
  const std::string last = last_segment(journal);
  disk.contents(last)[20] ^= 1;
  const Bytes damaged = disk.contents(last);
  Journal again = open(1024);
  ASSERT_THAT(severe, ElementsAre(HasSubstr("kept as")));
  append(again, "goes on under the same name");
  EXPECT_EQ(last_segment(again), last);
  EXPECT_EQ(disk.contents(last + ".damaged"), damaged);
  // The records of the damaged segment are missing from then on, also for new readers of the files.
  const std::uint64_t first = again.files().segments.back().header.first;
  EXPECT_EQ(again.files().health.lost().from, first);
  EXPECT_EQ(open(1024).files().health.lost().from, first);
  severe.clear();
  const auto history = JournalHistory::read(disk, again.files(), sink());
  EXPECT_TRUE(history->damaged());
  const auto state = history->merge_base(name("other.test."), UINT64_MAX);
  ASSERT_TRUE(state.has_value());
  EXPECT_FALSE(state->dynamic_changes.known());
}

/// The first one may be all that is left of what it had.
TEST_F(JournalFolder, ASecondDamagedSegmentOfANameLeavesTheFirst) {
  std::vector<Bytes> damaged;
  std::string last;
  for (int i = 0; i < 3; ++i) {
    Journal journal = open(1024);
    append(journal, fmt::format("{} under the same name", i));
    ASSERT_TRUE(last.empty() || last == last_segment(journal));
    last = last_segment(journal);
    disk.contents(last)[20] ^= 1;
    damaged.push_back(disk.contents(last));
  }
  const Journal journal = open(1024);
  EXPECT_EQ(severe.size(), 3U);
  EXPECT_EQ(disk.contents(last + ".damaged"), damaged[0]);
  EXPECT_EQ(disk.contents(last + ".damaged.1"), damaged[1]);
  EXPECT_EQ(disk.contents(last + ".damaged.2"), damaged[2]);
  EXPECT_FALSE(disk.has(last));
  // One with a number counts like the first.
  ASSERT_TRUE(disk.remove(last + ".damaged").has_value());
  ASSERT_TRUE(disk.remove(last + ".damaged.1").has_value());
  EXPECT_EQ(open(1024).files().health.lost().from, 1U);
}

/// The host crashes between the segment's new name and the folder's sync, or at another call of the
/// start, or behind it: nothing is written over, and the journal counts as damaged.
TEST_F(JournalFolder, ACrashWhileASegmentIsPutAsideKeepsIt) {
  int put_aside_twice = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    disk = FakeDisk();
    disk.whole_renames = true;
    std::string last;
    {
      Journal journal = open(1024);
      for (int i = 0; i < 20; ++i) append(journal, fmt::format("{:x>100}", i));
      last = last_segment(journal);
    }
    disk.contents(last)[20] ^= 1;
    ASSERT_TRUE((*disk.open(last, OpenMode::kWrite))->sync());
    const Bytes damaged = disk.contents(last);
    severe.clear();
    std::uint64_t left = random() % 24;
    disk.fail = [&](FakeDisk::Call, const std::string&) -> Status {
      if (left == 0) return fail(Errc::kIo, "the host has crashed");
      --left;
      return {};
    };
    if (auto journal = Journal::open({kFolder, 1024}, disk, sink()))
      static_cast<void>(try_append(*journal, "new").has_value());
    disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    disk.power_cut(random);
    Journal again = open(1024);
    put_aside_twice += std::count_if(severe.begin(), severe.end(), [](const std::string& text) {
                         return text.find("kept as") != std::string::npos;
                       }) > 1;
    append(again, "newer");
    ASSERT_EQ(disk.contents(last + ".damaged"), damaged) << "seed " << seed;
    ASSERT_NE(again.files().health.lost().from, 0U);
    ASSERT_EQ(payloads(again).back(), "newer");
  }
  EXPECT_GT(put_aside_twice, 0) << "no crash took the new name back";
}

TEST_F(JournalFolder, AMissingSegmentIsToldOf) {
  Journal journal = open(1024);
  for (int i = 0; i < 20; ++i) append(journal, fmt::format("{:x>100}", i));
  ASSERT_TRUE(disk.remove(journal.files().segments[1].path).has_value());
  const Journal again = open(1024);
  EXPECT_LT(payloads(again).size(), 20U);
  EXPECT_THAT(severe, ElementsAre(HasSubstr("are missing")));
  // An image that was written behind the gap lacks nothing.
  severe.clear();
  payloads(again, again.files().segments[1].header.first - 1);
  EXPECT_THAT(severe, IsEmpty());
}

}  // namespace journal_recovery_test
}  // namespace pando::manager
