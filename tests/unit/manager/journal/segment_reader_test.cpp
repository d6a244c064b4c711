#include "manager/journal/segment_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/journal/journal_history.h"
#include "tests/unit/manager/journal/journal_fixture.h"

namespace pando::manager {
namespace segment_reader_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A segment as a journal has left it, and what became of it since.
class SegmentReading : public testing::JournalFixture {};

TEST_F(SegmentReading, ATornTailIsCutOffAndTold) {
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

TEST_F(SegmentReading, RecordsAfterATornTailAreAppendedAndFound) {
  Journal journal = open();
  append(journal, "whole");
  const std::uint64_t end = journal.total_bytes();
  append(journal, "torn");
  tear(journal, end);
  Journal again = open();
  append(again, "new");
  EXPECT_THAT(payloads(open()), ElementsAre("whole", "new"));
}

TEST_F(SegmentReading, DamageInSyncedDataIsReportedAndLaterGroupsAreStillRead) {
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

TEST_F(SegmentReading, DamageInsideOfASyncedGroupTakesNoOtherRecord) {
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
TEST_F(SegmentReading, DamageInTheLastGroupOfASegmentTakesNoOtherRecord) {
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
TEST_F(SegmentReading, DamageInTheVeryLastGroupIsToldFromATornTail) {
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
      EXPECT_TRUE(again.health().lacks_records()) << hit;
      EXPECT_EQ(ends_in_damage(again.files()), is_end) << hit;
      EXPECT_EQ(again.files().health.lost().from, is_end ? 4U : 0U) << hit;
    }
    EXPECT_FALSE(severe.empty());
    // A start without a live store goes on far behind it, and each later start sees the gap.
    Journal next = open();
    pass_over_damaged_end(next);
    append(next, "next");
    left.emplace_back("next");
    const Journal later = open();
    EXPECT_EQ(payloads(later), left) << hit;
    EXPECT_TRUE(JournalHistory::read(disk, later.files(), sink())->damaged());
  }
}

/// The record that proves the damage does not count itself, so no position tells what is lost.
TEST_F(SegmentReading, DamageBeforeATornGroupIsTheEndOfTheJournal) {
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
  EXPECT_TRUE(again.health().lacks_records());
  EXPECT_TRUE(ends_in_damage(again.files()));
  const auto history = JournalHistory::read(disk, again.files(), sink());
  const dns::Serial unused = history->unused_serial(name("example.com."), dns::Serial{2});
  EXPECT_GT(unused.value, 1U << 20);
}

/// Nothing of the last segment is left but its header, so no position tells what is lost.
TEST_F(SegmentReading, DamageOfAllOfTheLastSegmentIsTheEndOfTheJournal) {
  {
    Journal journal = open();
    append(journal, "alone");
    journal.seal();
    const JournalEntry group[] = {entry("hit-a"), entry("hit-b")};
    ASSERT_TRUE(journal.append(group));
    Bytes& bytes = disk.contents(last_segment(journal));
    for (const std::string hit : {"hit-a", "hit-b"})
      *std::search(bytes.begin(), bytes.end(), hit.begin(), hit.end()) ^= 1;
  }
  const Journal again = open();
  EXPECT_THAT(payloads(again), ElementsAre("alone"));
  EXPECT_TRUE(ends_in_damage(again.files()));
  const auto history = JournalHistory::read(disk, again.files(), sink());
  const dns::Serial unused = history->unused_serial(name("example.com."), dns::Serial{2});
  EXPECT_GT(unused.value, 1U << 20);
}

TEST_F(SegmentReading, EveryCutOfTheFileLeavesAPrefixOfWholeRecords) {
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

TEST_F(SegmentReading, DamageIsToldWithThePositionsThatAreMissing) {
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
  EXPECT_FALSE(journal.health().lacks_records());
  EXPECT_TRUE(open().health().lacks_records()) << "a start has read the last segment";
}

/// A segment with a sector that cannot be read, as a start without a live store meets it.
class UnreadableSector : public SegmentReading {
 protected:
  static constexpr std::uint64_t kSegment = 1 << 20;
  static constexpr std::uint64_t kSector = 512;

  void make_unreadable(const std::string& file, std::uint64_t at) {
    disk.unreadable = [=, from = at / kSector * kSector](const std::string& path,
                                                         std::uint64_t begin, std::uint64_t end) {
      return path == file && begin < from + kSector && end > from;
    };
  }
  /// Appends a record without long stretches of zeros. Returns the offset behind the record.
  std::uint64_t append_long(Journal& journal, std::size_t bytes) {
    append(journal, std::string(bytes, 'x'));
    return journal.total_bytes();
  }
  void expect_all_is_read(const std::vector<std::string>& all) {
    severe.clear();
    Journal again = open(kSegment);
    EXPECT_EQ(again.health().refusal(), "");
    EXPECT_TRUE(again.health().has_durable_end());
    EXPECT_FALSE(again.health().lacks_records());
    EXPECT_EQ(payloads(again), all);
    EXPECT_THAT(severe, IsEmpty());
    EXPECT_EQ(again.last_position(), all.size());
    append(again, "next");
    std::vector<std::string> more = all;
    more.emplace_back("next");
    EXPECT_EQ(payloads(open(kSegment)), more);
  }
  void expect_doubt() {
    const Journal again = open(kSegment);
    EXPECT_THAT(again.health().refusal(), HasSubstr("unreadable"));
    EXPECT_FALSE(again.health().has_durable_end());
  }
};

TEST_F(UnreadableSector, OfTheReserveCostsNothing) {
  Journal journal = open(kSegment);
  for (const char* text : {"first", "second"}) append(journal, text);
  make_unreadable(last_segment(journal), kSegment / 2);
  expect_all_is_read({"first", "second"});
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("1 pages from byte 524288 on cannot be read")));
}

TEST_F(UnreadableSector, BehindATornTailCostsNothing) {
  Journal journal = open(kSegment);
  append(journal, "whole");
  const std::uint64_t end = journal.total_bytes();
  append(journal, "this one is torn");
  tear(journal, end);
  make_unreadable(last_segment(journal), kSegment / 2);
  expect_all_is_read({"whole"});
}

TEST_F(UnreadableSector, OfARecordOrCloselyBehindTheLastOneIsADoubt) {
  Journal journal = open(kSegment);
  const std::uint64_t first = append_long(journal, 3000);
  const std::uint64_t end = append_long(journal, 20'000);
  const std::string segment = last_segment(journal);
  for (const std::uint64_t at : {std::uint64_t{100}, first - 1, first + 10'000, end, end + 4096}) {
    make_unreadable(segment, at);
    expect_doubt();
  }
  make_unreadable(segment, end + 3 * std::uint64_t{4096});
  expect_all_is_read({std::string(3000, 'x'), std::string(20'000, 'x')});
}

/// A group may have been synced there, although its first record is torn or damaged now.
TEST_F(UnreadableSector, SoonBehindATornTailIsADoubt) {
  Journal journal = open(kSegment);
  append(journal, "whole");
  const std::uint64_t end = journal.total_bytes();
  append(journal, "this one is torn");
  tear(journal, end);
  make_unreadable(last_segment(journal), 100'000);
  expect_doubt();
}

/// Zeros have taken the place of a whole record. Records behind the sector tell so.
TEST_F(UnreadableSector, BetweenZerosAndALaterRecordIsADoubt) {
  Journal journal = open(kSegment);
  append(journal, "first");
  const std::uint64_t second = journal.total_bytes();
  const std::uint64_t third = append_long(journal, 20'000);
  append_long(journal, 20'000);
  append(journal, "fourth");
  const std::string segment = last_segment(journal);
  Bytes& bytes = disk.contents(segment);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(second),
            bytes.begin() + static_cast<std::ptrdiff_t>(third), 0);
  make_unreadable(segment, third + 5000);
  expect_doubt();
  make_unreadable(segment, third);
  expect_doubt();
}

/// The next segment tells where the synced records of this one end.
TEST_F(UnreadableSector, BehindTheSyncedRecordsOfAnEarlierSegmentCostsNothing) {
  Journal journal = open(kSegment);
  append(journal, "first");
  const std::string segment = last_segment(journal);
  disk.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    if (call == FakeDisk::Call::kSync) return fail(Errc::kIo, "no sync");
    return {};
  };
  EXPECT_FALSE(try_append(journal, "refused"));
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  append(journal, "second");
  disk.contents(segment).resize(kSegment);
  for (const std::uint64_t at : {std::uint64_t{4096}, kSegment / 2}) {
    make_unreadable(segment, at);
    EXPECT_THAT(payloads(journal), ElementsAre("first", "second"));
    EXPECT_THAT(payloads(open(kSegment)), ElementsAre("first", "second"));
  }
  EXPECT_THAT(severe, IsEmpty());
}

TEST_F(UnreadableSector, OfManyInTheReserveIsADoubtBecauseEachTakesTime) {
  Journal journal = open(kSegment);
  append(journal, "first");
  const std::string segment = last_segment(journal);
  int reads = 0;
  disk.unreadable = [&](const std::string& path, std::uint64_t, std::uint64_t end) {
    const bool fails = path == segment && end > 100'000;
    reads += fails ? 1 : 0;
    return fails;
  };
  expect_doubt();
  EXPECT_LT(reads, 100);
}

}  // namespace segment_reader_test
}  // namespace pando::manager
