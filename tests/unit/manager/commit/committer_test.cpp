#include "manager/commit/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <atomic>
#include <future>

#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace committer_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::IsEmpty;
using testing::kinds_of;
using testing::name;
using testing::Parts;

TEST(Committer, AnAnswerComesAfterJournalAndPublication) {
  Parts parts;
  const std::uint64_t before = parts.committer.current().version();
  bool answered = false;
  parts.submit_computed(
      [&](const zone::StoreView&) -> Result<zone::Changeset> {
        return parts.changes({}, {"new 60 A 192.0.2.9"});
      },
      [&](const Result<zone::Applied>& applied) {
        ASSERT_TRUE(applied.has_value());
        EXPECT_EQ(parts.journalled().size(), 1U);
        EXPECT_GT(parts.committer.current().version(), before);
        EXPECT_THAT(parts.zone.at("new"), ElementsAre("60 A 192.0.2.9"));
        answered = true;
      });
  EXPECT_TRUE(parts.run_until([&] { return answered; }));
}

TEST(Committer, RequestsOfOneRoundShareAVersionAndASync) {
  Parts parts;
  std::vector<std::shared_ptr<std::optional<Parts::Applied>>> results;
  for (int i = 0; i < 10; ++i)
    results.push_back(parts.submit(parts.changes({}, {fmt::format("n{} 60 A 192.0.2.9", i)})));
  ASSERT_TRUE(parts.run_until([&] { return results.back()->has_value(); }));
  EXPECT_EQ(parts.committer.counters().versions, 1U);
  const auto records = parts.journalled();
  ASSERT_EQ(records.size(), 10U);
  for (const JournalRecord& record : records) EXPECT_EQ(record.group_first, 1U);
}

/// However quick the disk was before, a sync that hangs keeps nothing but its own group waiting.
TEST(Committer, ASyncThatHangsLeavesTheEventLoopFree) {
  FakeDisk disk;
  Parts parts(64 << 20, disk);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(parts.apply({}, {fmt::format("q{} 60 A 192.0.2.1", i)}));
  std::promise<void> resume;
  const std::shared_future<void> resumed = resume.get_future().share();
  std::atomic<bool> hangs = false;
  disk.fail = [&](FakeDisk::Call call, const std::string&) -> Status {
    if (call != FakeDisk::Call::kSync) return {};
    hangs = true;
    return resumed.wait_for(std::chrono::seconds(10)) == std::future_status::ready
               ? Status()
               : fail(Errc::kIo, "nobody resumed the disk: the event loop waited for it");
  };
  const auto result = parts.submit(parts.changes({}, {"a 60 A 192.0.2.1"}));
  ASSERT_TRUE(parts.run_until([&] { return hangs.load(); }));
  bool turned = false;  // as a timer of the supervision, or a control command
  asio::post(parts.io, [&] { turned = true; });
  ASSERT_TRUE(parts.run_until([&] { return turned; }));
  EXPECT_FALSE(result->has_value()) << "acknowledged before it is durable";
  EXPECT_THAT(parts.zone.at("a"), IsEmpty()) << "served before it is durable";
  resume.set_value();
  ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
  EXPECT_TRUE((*result)->has_value());
}

TEST(Committer, WhatTheJournalsThreadHasToDoComesFirst) {
  Parts parts;
  std::promise<void> resume;
  bool done = false;
  parts.journal_thread.post([&] {
    resume.get_future().wait();
    EXPECT_EQ(parts.journal.last_position(), 0U);
    done = true;
  });
  const auto result = parts.submit(parts.changes({}, {"a 60 A 192.0.2.1"}));
  parts.io.poll();
  EXPECT_FALSE(result->has_value());
  resume.set_value();
  ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
  EXPECT_TRUE(done);
  EXPECT_TRUE(**result);
}

TEST(Committer, ALaterMemberOfAGroupSeesTheEarlierOnes) {
  Parts parts;
  parts.submit(parts.changes({}, {"first 60 A 192.0.2.9"}));
  bool seen = false, done = false;
  parts.submit_computed(
      [&](const zone::StoreView& snapshot) -> Result<zone::Changeset> {
        seen = static_cast<bool>(snapshot.zone_at(name("@")).record_at(name("first")));
        return zone::Changeset{name("@"), {}, {}};
      },
      [&](const Result<zone::Applied>&) { done = true; });
  ASSERT_TRUE(parts.run_until([&] { return done; }));
  EXPECT_TRUE(seen);
}

TEST(Committer, ARequestThatBreaksARuleDoesNotSpoilTheOthers) {
  Parts parts;
  auto good = parts.submit(parts.changes({}, {"good 60 A 192.0.2.9"}));
  auto bad = parts.submit(parts.changes({"@ 0 NS ns1", "@ 0 NS ns2"}, {}));
  auto also_good = parts.submit(parts.changes({}, {"also 60 A 192.0.2.9"}));
  ASSERT_TRUE(parts.run_until([&] { return also_good->has_value(); }));
  EXPECT_TRUE((*good)->has_value());
  EXPECT_FALSE((*bad)->has_value());
  EXPECT_TRUE((*also_good)->has_value());
  EXPECT_EQ(parts.journalled().size(), 2U);
}

TEST(Committer, WhatChangesNothingMakesNoVersionAndNoRecord) {
  Parts parts;
  const std::uint64_t before = parts.committer.current().version();
  EXPECT_TRUE(parts.apply({}, {"www 300 A 192.0.2.10"}).has_value());
  EXPECT_EQ(parts.committer.current().version(), before);
  EXPECT_THAT(parts.journalled(), IsEmpty());
}

TEST(Committer, ThePublishedPositionIsThatOfTheGroupsLastRecord) {
  Parts parts;
  ASSERT_TRUE(parts.apply({}, {"a 60 A 192.0.2.9"}).has_value());
  ASSERT_TRUE(parts.apply({}, {"b 60 A 192.0.2.9"}).has_value());
  EXPECT_EQ(parts.zone.store().current().journal_position, 2U);
  EXPECT_EQ(parts.committer.position(), 2U);
}

TEST(Committer, AFailedSyncRefusesTheGroupAndTheNextOneWorks) {
  FakeDisk disk;
  Parts parts(64 << 20, disk);
  ASSERT_TRUE(parts.apply({}, {"a 60 A 192.0.2.9"}).has_value());
  disk.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    if (call == FakeDisk::Call::kSync) return fail(Errc::kIo, "EIO");
    return {};
  };
  EXPECT_FALSE(parts.apply({}, {"b 60 A 192.0.2.9"}).has_value());
  EXPECT_THAT(parts.zone.at("b"), IsEmpty());
  disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_TRUE(parts.apply({}, {"c 60 A 192.0.2.9"}).has_value());
  std::vector<std::string> owners;
  for (const JournalRecord& record : parts.journalled())
    owners.push_back(to_text(zone::decode_changes(record.payload).value().added.at(0).owner));
  EXPECT_THAT(owners, ElementsAre("a.example.", "c.example."));
}

/// Both have ENOSPC, but compaction and fewer deletes at once help only one of them.
TEST(Committer, AJournalWithoutRoomIsNoFullStore) {
  FakeDisk disk;
  Parts parts(64 << 20, disk);
  disk.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kWrite ? fail(Errc::kFull, "pwrite: No space left on device")
                                          : Status();
  };
  const auto refused = parts.apply({}, {"a 60 A 192.0.2.9"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kIo);
  EXPECT_EQ(refused.error().text, "the journal cannot be written: pwrite: No space left on device");
}

/// A transfer that replaces a zone needs no journal, though it notes there what it did.
TEST(Committer, AZoneIsReplacedWhetherOrNotTheJournalCanBeWritten) {
  for (const bool broken : {false, true}) {
    FakeDisk disk;
    Parts parts(64 << 20, disk);
    ASSERT_TRUE(parts.apply({}, {"a 60 A 192.0.2.9"}).has_value());
    disk.fail = [broken](FakeDisk::Call call, const std::string&) -> Status {
      if (broken && call == FakeDisk::Call::kWrite) return fail(Errc::kFull, "ENOSPC");
      return {};
    };
    shm::Transaction built_in = parts.zone.store().begin_private();
    zone::ZoneBuilder builder(testing::name("@"), built_in);
    for (const char* line : {"@ 60 SOA ns1 admin 77 3600 600 86400 300", "@ 60 NS ns1"}) {
      const zone::Record one = testing::record(line);
      ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata).has_value());
    }
    auto built = builder.finish();
    ASSERT_TRUE(built.has_value());
    std::optional<Status> done;
    parts.put_whole(testing::name("@"), *built, std::move(built_in),
                    [&](const Status& status) { done = status; });
    ASSERT_TRUE(parts.run_until([&] { return done && !parts.committer.busy(); }));
    EXPECT_TRUE(done->has_value());
    EXPECT_EQ(parts.zone.zone().serial(), dns::Serial{77});
    const std::vector<JournalRecord> records = parts.journalled();
    const std::vector<RecordKind> kinds = kinds_of(records);
    if (broken)
      EXPECT_THAT(kinds, ElementsAre(RecordKind::kChangeset));
    else
      EXPECT_THAT(kinds,
                  ElementsAre(RecordKind::kChangeset, RecordKind::kBase, RecordKind::kTransfer));
  }
}

TEST(Committer, APendingRecordPrecedesTheZonesNextRecord) {
  FakeDisk disk;
  Parts parts(64 << 20, disk);
  const JournalEntry pending =
      dynamic_changes_entry(name("@"), {5}, parts.zone.zone().serial(), {});
  parts.committer.zone_records().add_pending(name("@"), {pending});
  bool full = true;
  disk.fail = [&](FakeDisk::Call call, const std::string&) -> Status {
    return full && call == FakeDisk::Call::kWrite ? fail(Errc::kFull, "ENOSPC") : Status();
  };
  EXPECT_FALSE(parts.apply({}, {"a 60 A 192.0.2.9"}).has_value());
  full = false;
  for (const char* record : {"b 60 A 192.0.2.9", "c 60 A 192.0.2.9"})
    EXPECT_TRUE(parts.apply({}, {record}).has_value());
  EXPECT_THAT(
      kinds_of(parts.journalled()),
      ElementsAre(RecordKind::kDynamicChanges, RecordKind::kChangeset, RecordKind::kChangeset));
}

TEST(Committer, APendingRecordIsRetriedUntilItIsWrittenOrOfNoUse) {
  for (const bool of_use : {true, false}) {
    FakeDisk disk;
    Parts parts(64 << 20, disk);
    Committer committer(parts.io, parts.zone.store(), parts.journal, parts.journal_thread,
                        {256, std::chrono::milliseconds(1)});
    int failures = 3;
    disk.fail = [&](FakeDisk::Call call, const std::string&) -> Status {
      return call == FakeDisk::Call::kWrite && failures-- > 0 ? fail(Errc::kFull, "ENOSPC")
                                                              : Status();
    };
    const dns::Serial serial = parts.zone.zone().serial();
    committer.zone_records().add_pending(
        name("@"), {dynamic_changes_entry(name("@"), {5}, of_use ? serial : serial.next(), {})});
    if (of_use) {
      ASSERT_TRUE(parts.run_until([&] { return parts.journal.last_position() > 0; }));
      ASSERT_TRUE(parts.run_until([&] { return !committer.busy(); }));
      EXPECT_THAT(kinds_of(parts.journalled()), ElementsAre(RecordKind::kDynamicChanges));
    } else {
      ASSERT_TRUE(parts.run_until([&] { return committer.counters().requests == 1; }));
      EXPECT_THAT(parts.journalled(), IsEmpty());
    }
  }
}

/// Fills the store until it refuses; what was accepted stays, and deleting still works.
TEST(Committer, AFullStoreRefusesUpdatesAndStillDeletes) {
  Parts parts(8 << 20);
  const std::string filler(200, 'x');
  int accepted = 0;
  bool refused = false;
  for (int round = 0; round < 4000 && !refused; ++round) {
    zone::Changeset changes{name("@"), {}, {}};
    for (int i = 0; i < 40; ++i)
      changes.added.push_back(testing::record(fmt::format("n{}-{} 60 TXT {}", round, i, filler)));
    auto result = parts.submit(std::move(changes));
    ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
    refused = !(*result)->has_value();
    if (!refused) ++accepted;
    if (refused) {
      EXPECT_EQ((*result)->error().code, Errc::kFull);
    }
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(parts.zone.at(fmt::format("n{}-39", accepted - 1)).size(), 1U);
  EXPECT_THAT(parts.zone.at(fmt::format("n{}-0", accepted)), IsEmpty());
  EXPECT_TRUE(parts.apply({fmt::format("n0-0 0 TXT {}", filler)}, {}).has_value());
  EXPECT_THAT(parts.zone.at("n0-0"), IsEmpty());
}

TEST(Committer, AMemberThatFindsTheStoreFullDoesNotTakeTheGroupWithIt) {
  Parts parts(8 << 20);
  zone::Changeset huge{name("@"), {}, {}};
  for (int i = 0; i < 60'000; ++i)
    huge.added.push_back(testing::record(fmt::format("h{} 60 TXT {}", i, std::string(200, 'y'))));
  auto small = parts.submit(parts.changes({}, {"small 60 A 192.0.2.9"}));
  auto large = parts.submit(std::move(huge));
  auto after = parts.submit(parts.changes({}, {"after 60 A 192.0.2.9"}));
  ASSERT_TRUE(parts.run_until([&] { return after->has_value(); }));
  EXPECT_TRUE((*small)->has_value());
  EXPECT_FALSE((*large)->has_value());
  EXPECT_TRUE((*after)->has_value());
  EXPECT_EQ(parts.journalled().size(), 2U);
}

}  // namespace committer_test
}  // namespace pando::manager
