// A start that cannot read a part of the journal for now. The manager serves what it has, refuses
// updates with the reason, and goes on as soon as the disk does. A live store has everything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "manager/journal/record/journal_payload.h"
#include "manager/upkeep/journal_upkeep.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace unreadable_journal_test {

using shm::test::must;
using testing::FakeDisk;
using ::testing::HasSubstr;
using testing::name;
using testing::Parts;
using Call = FakeDisk::Call;

class UnreadableJournal : public ::testing::Test {
 protected:
  UnreadableJournal() {
    must(testing::update(parts_, {}, {"one 60 A 192.0.2.1"}));
    must(testing::update(parts_, {}, {"two 60 A 192.0.2.2"}));
  }
  /// A byte of each segment cannot be read.
  void break_sector(std::uint64_t at) {
    disk_.unreadable = [at](const std::string& path, std::uint64_t from, std::uint64_t to) {
      return path.ends_with(".journal") && from <= at && at < to;
    };
  }
  void mend() {
    disk_.unreadable = {};
    disk_.fail = [](Call, const std::string&) { return Status(); };
  }
  /// The manager is started again. `live`: beside the store that it has left.
  void start(bool live, std::chrono::milliseconds retry = std::chrono::milliseconds(0)) {
    const JournalOptions options{parts_.journal.directory(), 64 << 10, retry};
    parts_.journal = must(Journal::open(options, disk_, [](const JournalNote&) {}));
    if (live) parts_.journal.store_is_at(parts_.zone.store().current().journal_position, true);
    parts_.journal.skip_to(parts_.zone.store().current().journal_position);
  }
  Status update(const std::string& record) {
    auto done = testing::update(parts_, {}, {record});
    return done ? Status() : Status(tl::unexpected<Error>(done.error()));
  }
  void expect_refused() {
    const Status refused = update("no 60 A 192.0.2.3");
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().text, HasSubstr("unreadable"));
    EXPECT_THAT(parts_.journal.health().refusal(), HasSubstr("unreadable"));
    EXPECT_FALSE(parts_.journal.health().has_durable_end());
  }
  std::shared_ptr<const JournalHistory> history() {
    return JournalHistory::read(disk_, parts_.journal.files(), [](const JournalNote&) {});
  }
  std::size_t updates_in_journal() {
    return must(history()->merge_base(name("@"), UINT64_MAX)).dynamic_changes.entries().size();
  }

  FakeDisk disk_;
  Parts parts_{64 << 20, disk_};
};

TEST_F(UnreadableJournal, RefusesUpdatesAndGoesOnWhenTheDiskDoes) {
  const std::uint64_t position = parts_.committer.position();
  for (const std::uint64_t at : {std::uint64_t{8}, std::uint64_t{100}}) {
    break_sector(at);
    start(true);
    expect_refused();
    EXPECT_FALSE(history()->problem().empty());
    mend();
    ASSERT_TRUE(update(fmt::format("at{} 60 A 192.0.2.4", at)).has_value());
    EXPECT_EQ(parts_.journal.health().refusal(), "");
    EXPECT_TRUE(parts_.journal.health().has_durable_end());
    start(true);
  }
  EXPECT_EQ(parts_.committer.position(), position + 2);
  EXPECT_EQ(updates_in_journal(), 4U);
  EXPECT_FALSE(history()->damaged());
}

TEST_F(UnreadableJournal, AFolderThatCannotBeListedIsNoEmptyJournal) {
  disk_.fail = [](Call call, const std::string&) -> Status {
    return call == Call::kList ? fail(Errc::kIo, "unreadable") : Status();
  };
  EXPECT_TRUE(has_segments(disk_, parts_.journal.directory()));
  start(true);
  expect_refused();
  EXPECT_FALSE(history()->problem().empty());
  mend();
  ASSERT_TRUE(update("three 60 A 192.0.2.3").has_value());
  EXPECT_EQ(updates_in_journal(), 3U);
}

TEST_F(UnreadableJournal, AReadOnlyFolderIsReadAndNotWritten) {
  disk_.fail = [](Call call, const std::string&) -> Status {
    const bool reads = call == Call::kRead || call == Call::kList;
    return reads ? Status() : fail(Errc::kIo, "unreadable: Read-only file system");
  };
  // Opening for reading is a call like opening for writing in this model.
  disk_.fail = [inner = disk_.fail](Call call, const std::string& path) {
    return call == Call::kOpen && !path.ends_with(".partial") ? Status() : inner(call, path);
  };
  start(true);
  expect_refused();
  EXPECT_EQ(updates_in_journal(), 2U);
  mend();
  EXPECT_TRUE(update("three 60 A 192.0.2.3").has_value());
}

TEST_F(UnreadableJournal, IsReadAgainOnceInAWhile) {
  break_sector(100);
  start(true, std::chrono::hours(1));
  mend();
  const int lists = disk_.calls[Call::kList];
  expect_refused();
  EXPECT_EQ(disk_.calls[Call::kList], lists);
}

/// A synced group that was never published was never acknowledged.
TEST_F(UnreadableJournal, RecordsThatALiveStoreLacksNeverTookPlace) {
  const dns::Serial serial = parts_.zone.zone().serial();
  const auto position = must(parts_.journal.append(std::vector<JournalEntry>{
      {name("@"), serial, serial.next(), zone::encode(zone::Changeset{name("@"), {}, {}})}}));
  break_sector(100);
  start(true);
  expect_refused();
  mend();
  ASSERT_TRUE(update("three 60 A 192.0.2.3").has_value());
  EXPECT_TRUE(is_void(parts_.journal.files(), position));
  start(true);
  EXPECT_EQ(must(history()->merge_base(name("@"), UINT64_MAX)).serial,
            parts_.zone.zone().serial());
  EXPECT_EQ(updates_in_journal(), 3U);
}

TEST_F(UnreadableJournal, ASnapshotOfTheLiveStoreTakesItsPlaceInTheEnd) {
  break_sector(100);
  start(true);
  expect_refused();
  ASSERT_TRUE(parts_.journal.health().has_gap_to_close());
  JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, disk_, parts_.journal,
                       parts_.committer, parts_.slots, UINT64_MAX);
  upkeep.check(false);
  ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
  ASSERT_EQ(upkeep.snapshots(), 1U);
  EXPECT_FALSE(parts_.journal.health().has_gap_to_close());
  const std::uint64_t position = parts_.committer.position();
  ASSERT_TRUE(update("three 60 A 192.0.2.3").has_value());
  EXPECT_GT(parts_.committer.position(), position + 1'000'000) << "unread records had positions";
  mend();
  start(true);
  EXPECT_EQ(history()->problem(), "");
  EXPECT_FALSE(history()->damaged());
  EXPECT_TRUE(history()->has_whole(name("@")));
  EXPECT_EQ(must(history()->merge_base(name("@"), UINT64_MAX)).serial,
            parts_.zone.zone().serial());
}

/// A sector of an older segment is bad, which a start beside a live store does not read.
class UnreadOlderSegment : public UnreadableJournal {
 protected:
  UnreadOlderSegment() {
    parts_.journal.seal();
    must(testing::update(parts_, {}, {"three 60 A 192.0.2.3"}));
    break_older_segment();
    start(true, std::chrono::milliseconds(20));
    EXPECT_TRUE(parts_.journal.health().has_durable_end()) << "the last segment is sound";
    upkeep_.examine();
    check();
  }
  void break_older_segment() {
    disk_.unreadable = [path = parts_.journal.files().segments.front().path](
                           const std::string& read, std::uint64_t, std::uint64_t to) {
      return read == path && to > kSegmentHeaderBytes;
    };
  }
  /// As the timer.
  void check() {
    upkeep_.check(false);
    ASSERT_TRUE(parts_.run_until([&] { return !upkeep_.running(); }));
  }
  bool has_unread_file() {
    const std::vector<std::string> names = must(disk_.list(parts_.journal.directory()));
    return std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return name.find(".unread") != std::string::npos;
    });
  }
  JournalUpkeep upkeep_{parts_.io,      parts_.pool,      parts_.journal_thread, disk_,
                        parts_.journal, parts_.committer, parts_.slots,          UINT64_MAX,
                        std::chrono::milliseconds(0)};
};

TEST_F(UnreadOlderSegment, IsReplacedByTheLiveStoreAndKept) {
  EXPECT_FALSE(update("no 60 A 192.0.2.4").has_value()) << "it would be behind the gap";
  EXPECT_THAT(upkeep_.problem(), HasSubstr(parts_.journal.files().segments.front().path));
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  check();
  ASSERT_EQ(upkeep_.snapshots(), 1U);
  EXPECT_EQ(upkeep_.problem(), "");
  ASSERT_TRUE(update("four 60 A 192.0.2.4").has_value());
  EXPECT_TRUE(has_unread_file());
  start(true);
  EXPECT_TRUE(has_unread_file());
  EXPECT_FALSE(parts_.journal.files().health.replaced().last.empty());
  EXPECT_EQ(history()->problem(), "");
  EXPECT_FALSE(history()->damaged());
  EXPECT_FALSE(history()->may_have_lost(name("@")));
  // A zone that was not served then may have updates in the file, and had serials by them.
  EXPECT_TRUE(history()->may_have_lost(name("other.")));
  EXPECT_TRUE(history()->unused_serial(name("other."), {1}).ahead_of({1 << 20}));
}

TEST_F(UnreadOlderSegment, IsHealedWithoutLossIfItWasAPassingError) {
  mend();
  check();
  ASSERT_EQ(upkeep_.snapshots(), 1U);
  EXPECT_FALSE(has_unread_file());
  EXPECT_TRUE(must(history()->merge_base(name("@"), UINT64_MAX)).dynamic_changes.known());
}

TEST_F(UnreadOlderSegment, StaysWhileAZoneHasNoDataAndTheOperatorIsTold) {
  must(parts_.edit([](zone::Draft& draft) {
    return draft.put_zone_settings(name("broken.example."), {}, 1);
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  check();
  EXPECT_EQ(upkeep_.snapshots(), 0U);
  EXPECT_THAT(upkeep_.problem(), HasSubstr("broken.example."));
  must(parts_.edit([](zone::Draft& draft) { return draft.remove_zone(name("broken.example.")); }));
  check();
  EXPECT_EQ(upkeep_.snapshots(), 1U);
  EXPECT_EQ(upkeep_.problem(), "");
}

/// Damage that was known before must not hide it.
TEST_F(UnreadOlderSegment, IsFoundBesideDamage) {
  start(true, std::chrono::milliseconds(20));
  parts_.journal.report(JournalHealth::State::kBehind, "damage of another place");
  check();  // the snapshot fails
  EXPECT_EQ(parts_.journal.health().state(), JournalHealth::State::kPartUnread);
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  check();
  EXPECT_EQ(upkeep_.snapshots(), 1U);
}

/// The process is killed at each point of it: nothing that could not be read is gone.
TEST_F(UnreadOlderSegment, IsKeptByTheNextProcessToo) {
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  const std::string path = parts_.journal.files().segments.front().path;
  const Bytes before = disk_.contents(path);
  for (int calls = 0; upkeep_.snapshots() == 0; ++calls) {
    ASSERT_LT(calls, 200);
    int left = calls;
    disk_.fail = [&](Call call, const std::string&) -> Status {
      const bool writes = call == Call::kRename || call == Call::kRemove ||
                          call == Call::kSyncDirectory || call == Call::kSync;
      return writes && left-- <= 0 ? fail(Errc::kIo, "killed") : Status();
    };
    check();
    disk_.fail = [](Call, const std::string&) { return Status(); };
    start(true, std::chrono::milliseconds(0));
    if (!parts_.journal.files().health.replaced().last.empty() || upkeep_.snapshots() != 0) break;
    ASSERT_TRUE(disk_.has(path)) << calls;
    parts_.journal.report(JournalHealth::State::kPartUnread, "again");
  }
  start(true);
  const std::vector<std::string> paths = disk_.paths();
  EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [&](const std::string& kept) {
    return kept.starts_with(path + ".unread") && disk_.contents(kept) == before;
  }));
}

TEST_F(UnreadableJournal, WithoutALiveStoreNothingTakesItsPlace) {
  break_sector(100);
  start(false);
  EXPECT_FALSE(parts_.journal.health().has_gap_to_close());
}

TEST_F(UnreadableJournal, APassingErrorIsGivenTime) {
  break_sector(100);
  start(true, std::chrono::hours(1));
  EXPECT_FALSE(parts_.journal.health().has_gap_to_close());
}

}  // namespace unreadable_journal_test
}  // namespace pando::manager
