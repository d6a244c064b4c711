#include "manager/commit/pending_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace pending_records_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::name;

dns::Name zone_named(const char* text) { return dns::Name::from_text(text).value(); }

JournalEntry entry(const dns::Name& zone, RecordKind kind, std::uint32_t serial = 1) {
  return {zone, {serial}, {serial}, {}, kind};
}

class Pending : public ::testing::Test {
 protected:
  /// The kinds of a group with `kinds`, all of zone "@", after pending records were inserted.
  std::vector<RecordKind> with_pending(const std::vector<RecordKind>& kinds) {
    std::vector<JournalEntry> group;
    for (const RecordKind kind : kinds) group.push_back(entry(name("@"), kind));
    pending_.insert_into(group);
    std::vector<RecordKind> result;
    for (const JournalEntry& one : group) result.push_back(one.kind);
    return result;
  }
  /// Waits for a retry and stages it; gives the records of the retry.
  std::vector<JournalEntry> retry() {
    EXPECT_TRUE(testing::run_until(io_, [this] { return !submitted_.empty(); }));
    shm::Transaction transaction = store_.store().begin();
    const shm::VersionInfo base = store_.store().current();
    zone::Draft draft(transaction, base.root, base.number + 1);
    std::vector<JournalEntry> records;
    Stage stage{transaction, draft, records};
    EXPECT_TRUE(submitted_.front().stage(stage));
    return records;
  }
  void answer(const Result<std::uint64_t>& version) {
    const CommitRequest request = std::move(submitted_.front());
    submitted_.pop_front();
    request.done(version);
  }
  dns::Serial serial() { return store_.zone().serial(); }

  testing::ZoneStore store_{testing::kBasicZone};
  asio::io_context io_{1};
  std::deque<CommitRequest> submitted_;
  PendingRecords pending_{io_, std::chrono::milliseconds(1), [this](CommitRequest request) {
                            submitted_.push_back(std::move(request));
                          }};
};

TEST_F(Pending, RecordsPrecedeTheZonesFirstRecordOfAGroup) {
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges)});
  EXPECT_THAT(
      with_pending({RecordKind::kChangeset, RecordKind::kChangeset}),
      ElementsAre(RecordKind::kDynamicChanges, RecordKind::kChangeset, RecordKind::kChangeset));
  EXPECT_EQ(pending_.zones(), 1U) << "the group may still fail";
}

TEST_F(Pending, RecordsAreLeftOutBeforeOnesThatBeginAnew) {
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges)});
  for (const RecordKind kind : {RecordKind::kBase, RecordKind::kGone, RecordKind::kDynamicChanges})
    EXPECT_THAT(with_pending({kind, RecordKind::kChangeset}),
                ElementsAre(kind, RecordKind::kChangeset));
}

/// The zone's records are kept while it is away, so they have to lead to its serial.
TEST_F(Pending, RecordsPrecedeTheRecordThatTheZoneHasLeft) {
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges)});
  std::vector<JournalEntry> group{removed_entry(name("@"), {1}, 1234)};
  pending_.insert_into(group);
  ASSERT_EQ(group.size(), 2U);
  EXPECT_EQ(group.front().kind, RecordKind::kDynamicChanges);
}

TEST_F(Pending, RecordsOfOtherZonesStayOut) {
  pending_.add(zone_named("other."), {entry(zone_named("other."), RecordKind::kDynamicChanges)});
  EXPECT_THAT(with_pending({RecordKind::kChangeset}), ElementsAre(RecordKind::kChangeset));
  EXPECT_THAT(with_pending({}), IsEmpty());
}

TEST_F(Pending, RecordsOfTheZoneInAnyCaseAreDropped) {
  pending_.add(zone_named("Other."), {entry(zone_named("other."), RecordKind::kDynamicChanges)});
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges)});
  pending_.drop_written({entry(zone_named("oTHER."), RecordKind::kChangeset)});
  EXPECT_EQ(pending_.zones(), 1U);
  pending_.drop(name("@"));
  EXPECT_EQ(pending_.zones(), 0U);
}

TEST_F(Pending, RecordsAreRetriedUntilTheyAreWritten) {
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges, serial().value)});
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(retry().size(), 1U);
    answer(fail(Errc::kIo, "no journal"));
  }
  const auto records = retry();
  ASSERT_EQ(records.size(), 1U);
  pending_.drop_written(records);
  answer(std::uint64_t{7});
  io_.restart();
  io_.run();
  EXPECT_THAT(submitted_, IsEmpty()) << "no timer is left";
}

TEST_F(Pending, RecordsOfAZoneThatMovedOnAreOfNoUse) {
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges, serial().next().value)});
  pending_.add(zone_named("gone."), {entry(zone_named("gone."), RecordKind::kDynamicChanges)});
  EXPECT_THAT(retry(), IsEmpty());
  EXPECT_EQ(pending_.zones(), 0U);
}

TEST_F(Pending, RecordsThatWereDroppedMeanwhileAreNotRetried) {
  pending_.add(name("@"), {entry(name("@"), RecordKind::kDynamicChanges)});
  pending_.drop(name("@"));
  io_.run();
  EXPECT_THAT(submitted_, IsEmpty());
}

}  // namespace pending_records_test
}  // namespace pando::manager
