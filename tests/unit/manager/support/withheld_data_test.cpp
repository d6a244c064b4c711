// Data that are kept for a zone which waits for the journal, and the load that takes them as its base.

#include "manager/support/withheld_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zonefile/loader_fixture.h"
#include "zone/history/zone_snapshot.h"

namespace pando::manager {
namespace withheld_data_test {

using testing::kFile;
using testing::name;
using testing::record;
using ::testing::SizeIs;
using testing::soa_line;

class Withheld : public testing::Loader {
 protected:
  /// The zone of the file with one update.
  Withheld() {
    write(kFile);
    EXPECT_EQ(load().kind, Kind::kLoaded);
    update({}, {"first 60 TXT one-and-only"});
  }
  void withhold() {
    const std::uint64_t position = parts_.committer.position();
    ASSERT_TRUE(parts_.edit([&](zone::Draft& draft) {
                        return withhold_data(draft, name("@"), position);
                      }).has_value());
  }
  void journalled(const JournalEntry& entry) {
    ASSERT_TRUE(parts_.commit([&](Stage& stage) -> Status {
                        stage.journal.push_back(entry);
                        return {};
                      }).has_value());
  }
  /// The record of an update that the store has not.
  void journal_update(std::uint32_t from, const std::string& line) {
    journalled({name("@"), dns::Serial{from}, dns::Serial{from + 1},
                zone::encode(zone::Changeset{name("@"),
                                             {record(soa_line(from))},
                                             {record(soa_line(from + 1)), record(line)}})});
  }
  [[nodiscard]] bool has(std::string_view owner) const { return !parts_.zone.at(owner).empty(); }
};

TEST_F(Withheld, AreNotServedAndOutliveTheZonesData) {
  const std::uint64_t records = parts_.zone.zone().record_count();
  withhold();
  EXPECT_FALSE(parts_.zone.zone().loaded());
  const auto found = withheld_data(parts_.zone.zone());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->position, parts_.committer.position());
  EXPECT_EQ(found->data.serial(), dns::Serial{11});
  EXPECT_EQ(found->data.record_count(), records);
}

TEST_F(Withheld, AreDroppedBesideAWholeJournal) {
  const std::vector<std::string> before = parts_.zone.lines();
  withhold();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
  EXPECT_FALSE(parts_.zone.zone().has_snapshots());
}

TEST_F(Withheld, TakeThePlaceOfTheFileIfTheJournalHasLostRecords) {
  withhold();
  journal_update(11, "second 60 TXT two");
  damage("one-and-only");
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_TRUE(has("first"));
  EXPECT_TRUE(has("second"));
  EXPECT_EQ(serial(), 12U) << "nothing is lost";
  EXPECT_FALSE(parts_.zone.zone().has_snapshots());
}

/// A start from the same image must not use the serial again, so the journal has it.
TEST_F(Withheld, TakeASerialThatNobodyHasSeenIfLaterRecordsAreLost) {
  withhold();
  journal_update(11, "second 60 TXT two-and-more");
  journal_update(12, "third 60 TXT three");
  damage("two-and-more");
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_TRUE(has("first") && has("third"));
  EXPECT_GT(serial(), 13U);
  const std::vector<JournalRecord> records = parts_.journalled();
  EXPECT_EQ(records.back().kind, RecordKind::kSource);
  EXPECT_EQ(records.back().to.value, serial());
}

/// The snapshot is whole, and no position tells any more that records were lost.
TEST_F(Withheld, TakeSuchASerialAlsoBesideASnapshotInPlaceOfDamagedFiles) {
  withhold();
  journal_update(11, "second 60 TXT two-and-more");
  journal_update(12, "third 60 TXT three");
  damage("two-and-more");
  snapshot();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_TRUE(has("first") && has("third"));
  EXPECT_GT(serial(), 13U);
}

TEST_F(Withheld, AreNeededForThat) {
  unload();
  journal_update(11, "second 60 TXT two");
  damage("one-and-only");
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_FALSE(has("first"));
  EXPECT_TRUE(has("second"));
}

TEST_F(Withheld, AreOfNoUseBehindAPurge) {
  withhold();
  journalled(purged_entry(name("@"), dns::Serial{11}));
  journal_update(10, "second 60 TXT two-and-more");
  journal_update(11, "third 60 TXT three");
  damage("two-and-more");
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_FALSE(has("first"));
  EXPECT_TRUE(has("third"));
}

TEST_F(Withheld, AreOfNoUseBehindARecordThatSaysAllOfTheZone) {
  withhold();
  journalled({name("@"), dns::Serial{10}, dns::Serial{10}, {}, RecordKind::kBase});
  journal_update(10, "second 60 TXT two-and-more");
  journal_update(11, "third 60 TXT three");
  damage("two-and-more");
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_FALSE(has("first"));
  EXPECT_TRUE(has("third"));
}

TEST_F(Withheld, LeaveTheSnapshotsOfUsersAlone) {
  ASSERT_TRUE(parts_.edit([](zone::Draft& draft) {
                      return draft.take_snapshot(name("@"), "mine", 1, {});
                    }).has_value());
  withhold();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  const auto left = zone::snapshots_of(parts_.zone.zone());
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left.front().label, "mine");
  EXPECT_EQ(zone::data_of(parts_.zone.zone(), left.front()).serial(), dns::Serial{11});
}

/// A user can do without an old snapshot, and nobody without acknowledged updates.
TEST_F(Withheld, TakeThePlaceOfTheOldestSnapshotOfSoMany) {
  ASSERT_TRUE(parts_.edit([](zone::Draft& draft) {
                      Status taken;
                      for (std::size_t i = 0; taken && i < zone::kMaxSnapshots; ++i)
                        taken = draft.take_snapshot(name("@"), fmt::format("mine-{}", i), 1, {});
                      return taken;
                    }).has_value());
  withhold();
  EXPECT_FALSE(parts_.zone.zone().loaded());
  ASSERT_TRUE(withheld_data(parts_.zone.zone()));
  damage("one-and-only");
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_TRUE(has("first"));
  const auto left = zone::snapshots_of(parts_.zone.zone());
  ASSERT_THAT(left, SizeIs(zone::kMaxSnapshots - 1));
  EXPECT_EQ(left.front().label, "mine-1");
}

TEST_F(Withheld, TakeThePlaceOfALostSnapshotFirst) {
  ASSERT_TRUE(parts_.edit([](zone::Draft& draft) {
                      Status put;
                      for (std::size_t i = 0; put && i < zone::kMaxSnapshots; ++i) {
                        zone::ZoneSnapshot one{fmt::format("mine-{}", i), dns::Serial{11}, 1, 1};
                        if (i == 7) one.state = zone::ZoneSnapshot::State::kTooLarge;
                        put = draft.put_snapshot(name("@"), one);
                      }
                      return put;
                    }).has_value());
  withhold();
  ASSERT_TRUE(withheld_data(parts_.zone.zone()));
  const auto left = zone::snapshots_of(parts_.zone.zone());
  EXPECT_EQ(zone::find_snapshot(left, "mine-7"), nullptr);
  EXPECT_NE(zone::find_snapshot(left, "mine-0"), nullptr);
}

}  // namespace withheld_data_test
}  // namespace pando::manager
