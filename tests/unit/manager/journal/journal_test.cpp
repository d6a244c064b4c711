#include "manager/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <set>

#include "manager/journal/journal_history.h"
#include "manager/journal/segment_reader.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/journal/snapshot_maker.h"

namespace pando::manager {
namespace journal_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFolder = "/journal";

dns::Name name(std::string_view text) { return dns::Name::from_text(text).value(); }

JournalEntry entry(std::string_view payload, std::string_view zone = "example.com.") {
  return {name(zone), dns::Serial{1}, dns::Serial{2}, Bytes(payload.begin(), payload.end())};
}

class JournalTest : public ::testing::Test {
 protected:
  Journal open(std::uint64_t segment_bytes = 4096) {
    auto journal = Journal::open({kFolder, segment_bytes}, disk, sink());
    EXPECT_TRUE(journal.has_value()) << journal.error().text;
    return std::move(*journal);
  }
  NoteSink sink() {
    return [this](const JournalNote& note) {
      notes.push_back(note.text);
      if (note.severe) severe.push_back(note.text);
    };
  }
  std::vector<std::string> payloads(const Journal& journal, std::uint64_t after = 0) {
    std::vector<std::string> found;
    const auto visited = for_each_record(
        disk, journal.files(), after,
        [&](JournalRecord&& record) -> Status {
          found.emplace_back(record.payload.begin(), record.payload.end());
          return {};
        },
        sink());
    EXPECT_TRUE(visited.has_value());
    return found;
  }
  std::uint64_t append(Journal& journal, std::string_view payload) {
    const JournalEntry one[] = {entry(payload)};
    return journal.append(one).value();
  }
  Result<std::uint64_t> try_append(Journal& journal, std::string_view payload) {
    const JournalEntry one[] = {entry(payload)};
    return journal.append(one);
  }
  /// Leaves what a loss of power may leave of the group at `offset`: its first bytes.
  void tear(const Journal& journal, std::uint64_t offset) {
    Bytes& bytes = disk.contents(last_segment(journal));
    const std::uint64_t piece = (offset / kWrittenPiece + 1) * kWrittenPiece;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(piece), bytes.end(), 0);
  }
  std::string last_segment(const Journal& journal) { return journal.files().segments.back().path; }

  FakeDisk disk;
  std::vector<std::string> notes, severe;
};

TEST_F(JournalTest, RecordsComeBackInOrderAfterReopening) {
  {
    Journal journal = open();
    EXPECT_EQ(append(journal, "one"), 1U);
    EXPECT_EQ(append(journal, "two"), 2U);
  }
  const Journal journal = open();
  EXPECT_THAT(payloads(journal), ElementsAre("one", "two"));
  EXPECT_EQ(journal.last_position(), 2U);
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(JournalTest, ARecordKeepsZoneSerialsAndPayload) {
  Journal journal = open();
  const JournalEntry one[] = {{name("Zone.Example."), dns::Serial{7}, dns::Serial{9}, {1, 2, 3}}};
  ASSERT_TRUE(journal.append(one).has_value());
  ASSERT_TRUE(for_each_record(
                  disk, journal.files(), 0,
                  [](JournalRecord&& record) -> Status {
                    EXPECT_EQ(to_text(record.zone), "Zone.Example.");
                    EXPECT_EQ(record.from.value, 7U);
                    EXPECT_EQ(record.to.value, 9U);
                    EXPECT_EQ(record.payload, (Bytes{1, 2, 3}));
                    return {};
                  },
                  sink())
                  .has_value());
}

TEST_F(JournalTest, OneGroupCostsOneSync) {
  Journal journal = open();
  append(journal, "opens the segment");
  const int before = disk.calls[FakeDisk::Call::kSync];
  const JournalEntry group[] = {entry("a"), entry("b"), entry("c")};
  EXPECT_EQ(journal.append(group).value(), 4U);
  EXPECT_EQ(disk.calls[FakeDisk::Call::kSync], before + 1);
}

TEST_F(JournalTest, ReadingStartsBehindAPosition) {
  Journal journal = open();
  for (const char* text : {"one", "two", "three"}) append(journal, text);
  EXPECT_THAT(payloads(journal, 2), ElementsAre("three"));
}

TEST_F(JournalTest, AFullSegmentIsFollowedByANewOne) {
  Journal journal = open(1024);
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(std::string(200, static_cast<char>('a' + i)));
    append(journal, all.back());
  }
  EXPECT_GT(journal.files().segments.size(), 3U);
  EXPECT_EQ(payloads(journal), all);
  EXPECT_THAT(payloads(journal, 19), ElementsAre(all.back()));
}

TEST_F(JournalTest, ARecordAboveTheSegmentSizeGetsASegmentOfItsOwn) {
  Journal journal = open(1024);
  const std::string big(10'000, 'x');
  append(journal, big);
  append(journal, "small");
  EXPECT_THAT(payloads(journal), ElementsAre(big, "small"));
}

TEST_F(JournalTest, ATornTailIsCutOffAndTold) {
  Journal journal = open();
  append(journal, "whole");
  const std::uint64_t end = journal.total_bytes();
  append(journal, "this one is torn");
  tear(journal, end);
  const Journal again = open();
  EXPECT_THAT(payloads(again), ElementsAre("whole"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("torn tail cut off")));
  EXPECT_THAT(severe, IsEmpty());
}

TEST_F(JournalTest, RecordsAfterATornTailAreAppendedAndFound) {
  Journal journal = open();
  append(journal, "whole");
  const std::uint64_t end = journal.total_bytes();
  append(journal, "torn");
  tear(journal, end);
  Journal again = open();
  append(again, "new");
  EXPECT_THAT(payloads(open()), ElementsAre("whole", "new"));
}

/// A process is killed between write and sync, and the next one finds a disk that fails. What it
/// appended behind records that are in the page cache only would not fit to what a crash of the
/// host leaves.
class UndurableTail : public JournalTest {
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
    EXPECT_FALSE(journal.is_secured());
    EXPECT_FALSE(journal.append({}));
    EXPECT_FALSE(journal.is_secured());
    fail_on({});
    EXPECT_TRUE(journal.append({}));
    EXPECT_TRUE(journal.is_secured());
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
    EXPECT_THAT(journal->problem(), HasSubstr("EIO"));
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

TEST_F(JournalTest, DamageInSyncedDataIsReportedAndLaterGroupsAreStillRead) {
  Journal journal = open();
  for (const char* text : {"first", "second", "third"}) append(journal, text);
  Bytes& bytes = disk.contents(last_segment(journal));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes[text.find("second")] ^= 1;
  const Journal again = open();
  EXPECT_THAT(payloads(again), ElementsAre("first", "third"));
  ASSERT_FALSE(severe.empty());
  EXPECT_THAT(severe[0], HasSubstr("1 damaged places"));
}

TEST_F(JournalTest, DamageInsideOfASyncedGroupTakesNoOtherRecord) {
  const std::vector<std::string> all = {"alone", "group-a", "group-b", "group-c", "behind"};
  for (const std::string hit : {"group-a", "group-b", "group-c"}) {
    disk = FakeDisk();
    severe.clear();
    Journal journal = open();
    append(journal, "alone");
    const JournalEntry group[] = {entry("group-a"), entry("group-b"), entry("group-c")};
    ASSERT_TRUE(journal.append(group));
    append(journal, "behind");
    Bytes& bytes = disk.contents(last_segment(journal));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    bytes[text.find(hit)] ^= 1;
    std::vector<std::string> left = all;
    std::erase(left, hit);
    for (int start = 0; start < 2; ++start) EXPECT_EQ(payloads(open()), left) << hit;
    EXPECT_FALSE(severe.empty());
  }
}

/// The next segment proves that the last group of a segment had been synced.
TEST_F(JournalTest, DamageInTheLastGroupOfASegmentTakesNoOtherRecord) {
  Journal journal = open();
  const JournalEntry group[] = {entry("first"), entry("second"), entry("third")};
  ASSERT_TRUE(journal.append(group).has_value());
  const std::string segment = last_segment(journal);
  journal.seal();
  append(journal, "fourth");
  const Bytes whole = disk.contents(segment);
  for (const auto& [hit, left] :
       {std::pair<std::string, std::vector<std::string>>{"first", {"second", "third", "fourth"}},
        {"second", {"first", "third", "fourth"}},
        {"third", {"first", "second", "fourth"}}}) {
    Bytes& bytes = disk.contents(segment);
    bytes = whole;
    *std::search(bytes.begin(), bytes.end(), hit.begin(), hit.end()) ^= 1;
    severe.clear();
    EXPECT_EQ(payloads(journal), left) << hit;
    EXPECT_FALSE(severe.empty()) << hit;
    const auto history = JournalHistory::read(disk, journal.files(), sink());
    EXPECT_TRUE(history->damaged()) << hit;
    std::size_t records = 0;
    ASSERT_TRUE(history->for_each_item(name("example.com."), [&](zone::DumpItem&& item) -> Status {
      records += std::holds_alternative<zone::DumpNote>(item) ? 1 : 0;
      return {};
    }));
    EXPECT_EQ(records, 3U) << hit;
  }
}

/// Each byte of the group was written, so that it is no torn tail.
TEST_F(JournalTest, DamageInTheVeryLastGroupIsToldFromATornTail) {
  const std::string filler(100, 'x');  // more than a piece of the medium
  for (const std::string hit : {"group-a", "group-b", "group-c", "PJRC"}) {
    disk = FakeDisk();
    severe.clear();
    Journal journal = open();
    append(journal, "alone");
    const JournalEntry group[] = {entry("group-a" + filler), entry("group-b" + filler),
                                  entry("group-c" + filler)};
    ASSERT_TRUE(journal.append(group));
    Bytes& bytes = disk.contents(last_segment(journal));
    const auto found = hit == "PJRC"
                           ? std::find_end(bytes.begin(), bytes.end(), hit.begin(), hit.end()) + 4
                           : std::search(bytes.begin(), bytes.end(), hit.begin(), hit.end());
    *found ^= 1;  // "PJRC": the last record's length
    std::vector<std::string> left = {"alone", "group-a" + filler, "group-b" + filler,
                                     "group-c" + filler};
    std::erase(left, (hit == "PJRC" ? "group-c" : hit) + filler);
    const bool is_end = left.back() == "group-b" + filler;
    for (int start = 0; start < 2; ++start) {
      const Journal again = open();
      EXPECT_EQ(payloads(again), left) << hit;
      EXPECT_FALSE(again.is_whole()) << hit;
      EXPECT_EQ(ends_in_damage(again.files()), is_end) << hit;
      EXPECT_EQ(again.files().damaged, is_end ? 4U : 0U) << hit;
    }
    EXPECT_FALSE(severe.empty());
    // A start without a live store goes on far behind it, and each later start sees the gap.
    Journal next = open();
    next.pass_over_damaged_end();
    append(next, "next");
    left.emplace_back("next");
    const Journal later = open();
    EXPECT_EQ(payloads(later), left) << hit;
    EXPECT_TRUE(JournalHistory::read(disk, later.files(), sink())->damaged());
  }
}

/// The record that proves the damage does not count itself, so no position tells what is lost.
TEST_F(JournalTest, DamageBeforeATornGroupIsTheEndOfTheJournal) {
  const std::string filler(100, 'x');
  Journal journal = open();
  append(journal, "alone");
  append(journal, "hit" + filler);
  const JournalEntry group[] = {entry("torn-a" + filler), entry("torn-b" + filler)};
  ASSERT_TRUE(journal.append(group));
  Bytes& bytes = disk.contents(last_segment(journal));
  const auto find = [&](const std::string& text) {
    return std::search(bytes.begin(), bytes.end(), text.begin(), text.end());
  };
  *find("hit") ^= 1;
  tear(journal, static_cast<std::uint64_t>(find("torn-b") - bytes.begin()));
  const Journal again = open();
  EXPECT_THAT(payloads(again), ElementsAre("alone"));
  EXPECT_FALSE(again.is_whole());
  EXPECT_TRUE(ends_in_damage(again.files()));
  const auto history = JournalHistory::read(disk, again.files(), sink());
  const dns::Serial unused = history->unused_serial(name("example.com."), dns::Serial{2});
  EXPECT_GT(unused.value, 1U << 20);
}

TEST_F(JournalTest, EveryCutOfTheFileLeavesAPrefixOfWholeRecords) {
  Journal journal = open();
  const std::vector<std::string> all = {"alpha", "beta", "gamma"};
  for (const std::string& text : all) append(journal, text);
  const std::string path = last_segment(journal);
  const Bytes whole = disk.contents(path);
  for (std::size_t cut = kSegmentHeaderBytes; cut < 400; ++cut) {
    disk.contents(path).assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
    const std::vector<std::string> found = payloads(open());
    ASSERT_LE(found.size(), all.size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin())) << "cut at " << cut;
  }
}

TEST_F(JournalTest, AFailedSyncPoisonsTheSegmentAndItIsNeverSyncedAgain) {
  Journal journal = open();
  append(journal, "good");
  const std::string poisoned = last_segment(journal);
  disk.fail = [&](FakeDisk::Call call, const std::string& path) -> Status {
    if (call == FakeDisk::Call::kSync && path.starts_with(poisoned)) return fail(Errc::kIo, "EIO");
    return {};
  };
  EXPECT_FALSE(try_append(journal, "lost").has_value());
  int touched = 0;
  disk.fail = [&](FakeDisk::Call call, const std::string& path) -> Status {
    if (call != FakeDisk::Call::kOpen && path == poisoned) ++touched;
    return {};
  };
  append(journal, "after");
  EXPECT_EQ(touched, 0);
  EXPECT_THAT(payloads(journal), ElementsAre("good", "after"));
  EXPECT_THAT(payloads(open()), ElementsAre("good", "after"));
}

TEST(NewJournal, HasItsNameAndThoseAboveSynced) {
  FakeDisk disk;
  std::vector<std::string> synced;
  disk.fail = [&](FakeDisk::Call call, const std::string& path) -> Status {
    if (call == FakeDisk::Call::kSyncDirectory) synced.push_back(path);
    return {};
  };
  ASSERT_TRUE(Journal::open({"/var/lib/journal", 4096}, disk, [](const JournalNote&) {}));
  EXPECT_THAT(synced, ElementsAre("/var/lib", "/var", "/"));
}

/// A refused group must not come back: its bytes may be on disk, or in the page cache.
TEST_F(JournalTest, ARefusedGroupIsNotFoundByTheNextProcess) {
  for (const bool for_ever : {false, true}) {
    disk = FakeDisk();
    Journal journal = open();
    append(journal, "good");
    bool failed = false;
    disk.fail = [&](FakeDisk::Call call, const std::string&) -> Status {
      if (call != FakeDisk::Call::kSync || (failed && !for_ever)) return {};
      failed = true;
      return fail(Errc::kIo, "EIO");
    };
    EXPECT_FALSE(try_append(journal, "refused").has_value());
    disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    Journal next = open();
    EXPECT_THAT(payloads(next), ElementsAre("good")) << "after a kill, nothing was appended";
    append(next, "after");
    EXPECT_THAT(payloads(open()), ElementsAre("good", "after"));
  }
}

/// The segment of the second group says that the first is void, and a snapshot drops it.
TEST_F(JournalTest, WhatIsVoidStaysSoWithoutTheSegmentThatSaidSo) {
  Journal journal = open();
  ASSERT_TRUE(journal.begin_segment());
  for (int refused = 0; refused < 2; ++refused) {
    disk.fail = [failed = false](FakeDisk::Call call, const std::string&) mutable -> Status {
      const bool is_hit = call == FakeDisk::Call::kSync && !std::exchange(failed, true);
      return is_hit ? fail(Errc::kIo, "EIO") : Status();
    };
    EXPECT_FALSE(try_append(journal, "refused").has_value());
  }
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  journal.seal();
  const JournalFiles sealed = journal.sealed_files();
  const std::string partial = std::string(kFolder) + "/snapshot.partial";
  ASSERT_TRUE(write_file_atomically(disk, partial, testing::snapshot_of(0)));
  ASSERT_TRUE(journal.replace_by_snapshot(partial, 0, sealed));
  append(journal, "good");
  const auto history = JournalHistory::read(disk, open().files(), sink());
  EXPECT_FALSE(history->damaged());
}

TEST_F(JournalTest, AGroupThatWasNotPublishedIsVoidAtOnce) {
  Journal journal = open();
  append(journal, "good");
  journal.abandon(append(journal, "synced, but the store was full"));
  std::mt19937_64 random(1);
  disk.power_cut(random);
  EXPECT_THAT(payloads(open()), ElementsAre("good"));
}

TEST_F(JournalTest, DamageIsToldWithThePositionsThatAreMissing) {
  Journal journal = open();
  for (const char* text : {"first", "second", "third"}) append(journal, text);
  Bytes& bytes = disk.contents(last_segment(journal));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes[text.find("second")] ^= 1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing;
  ASSERT_TRUE(for_each_record(
      disk, journal.files(), 0, [](JournalRecord&&) { return Status(); },
      [&](const JournalNote& note) {
        missing.emplace_back(note.missing_from, note.missing_to);
      }));
  EXPECT_THAT(missing, ElementsAre(std::pair(2U, 2U)));
  EXPECT_TRUE(journal.is_whole());
  EXPECT_FALSE(open().is_whole()) << "a start has read the last segment";
}

TEST_F(JournalTest, AGroupThatWasNotPublishedIsVoid) {
  Journal journal = open();
  append(journal, "good");
  const std::uint64_t lost = append(journal, "synced, but the store was full");
  journal.abandon(lost);
  append(journal, "after");
  EXPECT_THAT(payloads(open()), ElementsAre("good", "after"));
}

TEST_F(JournalTest, AFullDiskIsAnErrorAndNotTheEnd) {
  Journal journal = open(1024);
  append(journal, "good");
  disk.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    if (call == FakeDisk::Call::kPreallocate) return fail(Errc::kFull, "ENOSPC");
    return {};
  };
  const auto refused = try_append(journal, std::string(2000, 'x'));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kFull);
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  append(journal, "room again");
  EXPECT_THAT(payloads(open()), ElementsAre("good", "room again"));
}

TEST_F(JournalTest, EachFailingCallOfASegmentSwitchLeavesAUsableJournal) {
  for (int failing = 0; failing < 12; ++failing) {
    disk = FakeDisk();
    Journal journal = open(1024);
    append(journal, "good");
    int count = 0;
    disk.fail = [&](FakeDisk::Call, const std::string&) -> Status {
      if (count++ == failing) return fail(Errc::kIo, "injected");
      return {};
    };
    const bool taken = try_append(journal, std::string(2000, 'x')).has_value();
    disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    append(journal, "after");
    const std::vector<std::string> found = payloads(open());
    EXPECT_EQ(found.front(), "good");
    EXPECT_EQ(found.back(), "after");
    EXPECT_EQ(found.size(), taken ? 3U : 2U) << "failing call " << failing;
  }
}

TEST_F(JournalTest, PositionsGoOnBehindTheStoresWhenTheDirectoryWasEmptied) {
  Journal journal = open();
  journal.skip_to(500);
  EXPECT_EQ(append(journal, "x"), 501U);
  EXPECT_THAT(payloads(journal, 500), ElementsAre("x"));
}

TEST_F(JournalTest, ASnapshotReplacesTheSealedSegments) {
  Journal journal = open(1024);
  for (int i = 0; i < 10; ++i) append(journal, std::string(300, 'a'));
  const std::uint64_t before = journal.total_bytes();
  journal.seal();
  const JournalFiles sealed = journal.sealed_files();
  const std::uint64_t position = journal.last_position();
  append(journal, "behind the snapshot");
  const std::string partial = std::string(kFolder) + "/snapshot.partial";
  const Bytes bytes = testing::snapshot_of(
      position, {testing::whole_zone(name("example.com."), 2), zone::DumpZoneEnd{}});
  ASSERT_TRUE(write_file_atomically(disk, partial, bytes).has_value());
  ASSERT_TRUE(journal.replace_by_snapshot(partial, position, sealed).has_value());
  EXPECT_LT(journal.total_bytes(), before);
  EXPECT_THAT(payloads(journal), ElementsAre("behind the snapshot"));
  const Journal again = open(1024);
  EXPECT_EQ(again.files().snapshot_position, position);
  EXPECT_THAT(payloads(again), ElementsAre("behind the snapshot"));
  const auto snapshot = SnapshotFile::open(disk, again.files().snapshot);
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->zones().places.size(), 1U);
}

/// Its name is the next one's: who reads by name would find records in it that came later.
TEST_F(JournalTest, AnEmptyLastSegmentIsNoSealedFileButWhatItVoidsIsVoid) {
  Bytes voided;
  {
    Journal journal = open(1024);
    append(journal, "good");
    append(journal, "never took place");
    voided = encode_segment_header({3, 2, 7});
  }
  const std::string path = fmt::format("{}/{:016x}.journal", kFolder, 3);
  ASSERT_TRUE(write_file_atomically(disk, path, voided).has_value());
  Journal journal = open(1024);
  ASSERT_EQ(journal.files().segments.size(), 2U);
  const JournalFiles sealed = journal.sealed_files();
  EXPECT_EQ(sealed.segments.size(), 1U);
  EXPECT_EQ(append(journal, "later"), 3U);
  ASSERT_EQ(journal.files().segments.back().path, path) << "the same name";
  for (const JournalFiles& files : {sealed, journal.files()}) {
    EXPECT_FALSE(is_void(files, 1));
    EXPECT_TRUE(is_void(files, 2));
  }
  EXPECT_EQ(journal.sealed_files().segments.size(), 2U) << "it has records now";
}

/// A header whose bytes from `at` on are `bytes`, with a right checksum.
Bytes changed_header(std::size_t at, const Bytes& bytes) {
  Bytes header = encode_segment_header({1, 1, 7});
  std::copy(bytes.begin(), bytes.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  store_be64(header.data() + 56, XXH3_64bits(header.data(), 56));
  return header;
}

class AnotherFormat : public JournalTest, public ::testing::WithParamInterface<const char*> {
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
    const std::string version = std::string_view(GetParam()) == "journal" ? "2" : "1";
    EXPECT_EQ(refused.error().text, "journal file " + path + ": its format is not the one that " +
                                        "this build reads, version " + version);
    EXPECT_EQ(disk.contents(path), bytes) << "the file stays as it is";
    EXPECT_THAT(notes, IsEmpty());
  }
};

/// Snapshots had the segments' header, before they were dumps.
TEST_P(AnotherFormat, IsRefused) {
  for (const std::uint8_t version : Bytes{0, 1, 3})
    expect_refused(changed_header(8, {0, 0, 0, version}));
  // Builds before the first release wrote this magic, with versions 1 to 4.
  for (std::uint8_t version = 1; version <= 4; ++version)
    expect_refused(
        changed_header(0, {'P', 'A', 'N', 'D', 'O', 'J', 'L', '1', 0, 0, 0, version}));
}

INSTANTIATE_TEST_SUITE_P(Files, AnotherFormat,
                         ::testing::Values("journal", "snapshot"));

/// The version field of a damaged header means nothing.
TEST_F(JournalTest, ADamagedVersionIsDamage) {
  Journal journal = open();
  append(journal, "x");
  disk.contents(last_segment(journal))[11] = 99;
  const Journal again = open();
  EXPECT_THAT(payloads(again), IsEmpty());
  EXPECT_THAT(severe, ElementsAre(HasSubstr("damaged header")));
}

/// What it has would be written over by the next one.
TEST_F(JournalTest, ASegmentThatCannotBeReadForNowIsNotLeftOut) {
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
    EXPECT_THAT(beside->files().unreadable, HasSubstr(last));
    EXPECT_FALSE(try_append(*beside, "refused").has_value());
  }
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_EQ(payloads(open(1024)).size(), 20U);
}

TEST_F(JournalTest, ASegmentWithADamagedHeaderIsKeptAside) {
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
  // What it had is missing from then on, also for whoever reads the files anew.
  const std::uint64_t first = again.files().segments.back().header.first;
  EXPECT_EQ(again.files().damaged, first);
  EXPECT_EQ(open(1024).files().damaged, first);
  severe.clear();
  const auto history = JournalHistory::read(disk, again.files(), sink());
  EXPECT_TRUE(history->damaged());
  const auto state = history->merge_base(name("other.test."), UINT64_MAX);
  ASSERT_TRUE(state.has_value());
  EXPECT_FALSE(state->dynamic_changes.known());
}

/// The first one may be all that is left of what it had.
TEST_F(JournalTest, ASecondDamagedSegmentOfANameLeavesTheFirst) {
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
  EXPECT_EQ(open(1024).files().damaged, 1U);
}

/// The host crashes between the segment's new name and the folder's sync, or at another call of the
/// start, or behind it: nothing is written over, and the journal counts as damaged.
TEST_F(JournalTest, ACrashWhileASegmentIsPutAsideKeepsIt) {
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
    ASSERT_NE(again.files().damaged, 0U);
    ASSERT_EQ(payloads(again).back(), "newer");
  }
  EXPECT_GT(put_aside_twice, 0) << "no crash took the new name back";
}

TEST_F(JournalTest, AMissingSegmentIsToldOf) {
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

/// Random groups, failures and power cuts: what was acknowledged is there, in order. The one record
/// that may be there besides is the last: its sync failed, and nothing was appended after it.
TEST_F(JournalTest, PowerCutsLoseNothingThatWasAcknowledged) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 random(seed);
    disk = FakeDisk();
    for (int life = 0; life < 4; ++life) {
      Journal journal = open(1024);
      std::vector<std::string> acknowledged = payloads(journal);
      disk.fail = [&](FakeDisk::Call, const std::string&) -> Status {
        if (random() % 23 == 0) return fail(Errc::kIo, "injected");
        return {};
      };
      for (int i = 0; i < 12; ++i) {
        const std::string text = fmt::format("{}-{}{:.<{}}", life, i, "", random() % 200);
        if (try_append(journal, text).has_value()) acknowledged.push_back(text);
      }
      disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
      disk.power_cut(random);
      std::vector<std::string> found = payloads(open(1024));
      if (found.size() == acknowledged.size() + 1) found.pop_back();
      ASSERT_EQ(found, acknowledged) << "seed " << seed << " life " << life;
    }
  }
}

}  // namespace journal_test
}  // namespace pando::manager
