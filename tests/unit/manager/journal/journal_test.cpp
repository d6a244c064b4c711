#include "manager/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "manager/journal/journal_history.h"
#include "tests/unit/manager/journal/journal_fixture.h"
#include "tests/unit/manager/journal/snapshot_maker.h"

namespace pando::manager {
namespace journal_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::IsEmpty;

class JournalTest : public testing::JournalFixture {};

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
