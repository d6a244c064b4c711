#include "manager/zone_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/journal_snapshot.h"
#include "manager/journal_upkeep.h"
#include "tests/unit/manager/parts.h"

namespace pando::manager {
namespace {

using Kind = ZoneLoader::Outcome::Kind;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using ::testing::Not;
using testing::Parts;
using ::testing::SizeIs;

constexpr const char* kFile =
    "$TTL 300\n"
    "@ 3600 SOA ns1 admin 10 3600 600 86400 300\n"
    "@ 3600 NS ns1\n"
    "ns1 A 192.0.2.1\n"
    "www A 192.0.2.10\n";

class Loader : public ::testing::Test {
 protected:
  Loader() { unload(); }

  void unload() {
    bool done = false;
    parts_.committer.edit([](zone::Draft& draft) { return draft.unload_zone(name("@")); },
                          [&](const Status&) { done = true; });
    ASSERT_TRUE(parts_.run_until([&] { return done; }));
  }
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    // Two writes within the clock's tick would look like one file.
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + ++writes_)));
  }
  ZoneLoader::Outcome load(bool optional = false) {
    bool given = false, done = false;
    ZoneLoader::Outcome outcome;
    auto history = std::make_shared<HistorySource>(
        native_files(), parts_.journal,
        [this](const JournalNote& note) { notes_.push_back(note.text); });
    loader_.run(
        [&]() -> std::optional<ZoneLoader::Job> {
          if (std::exchange(given, true)) return std::nullopt;
          return ZoneLoader::Job{name("@"), path_, optional};
        },
        history, [&](const ZoneLoader::Job&, const ZoneLoader::Outcome& found) { outcome = found; },
        [&] { done = true; });
    EXPECT_TRUE(parts_.run_until([&] { return done; }));
    return outcome;
  }
  void snapshot() {
    JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, native_files(),
                         parts_.journal, parts_.committer, parts_.slots, 1);
    upkeep.check(false);
    ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
    ASSERT_EQ(upkeep.snapshots(), 1U);
  }
  std::uint32_t serial() { return parts_.zone.zone().serial().value; }
  /// An update as UPDATE makes it: with the SOA pair.
  void update(const std::vector<std::string>& removed, const std::vector<std::string>& added) {
    std::vector<std::string> out = removed, in = added;
    out.push_back(fmt::format("@ 0 SOA ns1 admin {} 3600 600 86400 300", serial()));
    in.push_back(fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial() + 1));
    ASSERT_TRUE(parts_.apply(out, in).has_value());
  }

  Parts parts_;
  std::string path_ = parts_.folder.path() + "/example.zone";
  int writes_ = 0;
  ZoneLoader loader_{parts_.io,    parts_.pool,      2, parts_.zone.store(),
                     parts_.slots, parts_.committer, {}};
  std::vector<std::string> notes_;
};

TEST_F(Loader, AFileIsLoadedAndServed) {
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 10U);
  EXPECT_THAT(parts_.zone.at("www"), ElementsAre("300 A 192.0.2.10"));
}

TEST_F(Loader, AnUnchangedFileIsNotReadAgain) {
  write(kFile);
  load();
  EXPECT_EQ(load().kind, Kind::kUnchanged);
}

TEST_F(Loader, ABadFileIsReportedWithItsLinesAndLeavesTheZoneUnloaded) {
  write(std::string(kFile) + "broken A 300.1.2.3\nalso TXT \"open\n");
  const auto outcome = load();
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_THAT(outcome.problems, Contains(HasSubstr("example.zone:6:")));
  EXPECT_FALSE(parts_.zone.zone().loaded());
}

TEST_F(Loader, AMissingFileIsAProblemUnlessItIsOptional) {
  EXPECT_EQ(load().kind, Kind::kFailed);
  EXPECT_EQ(load(true).kind, Kind::kAbsent);
}

TEST_F(Loader, ABadFileLeavesTheOldVersionServing) {
  write(kFile);
  load();
  write(std::string(kFile) + "broken A 300.1.2.3\n");
  EXPECT_EQ(load().kind, Kind::kFailed);
  EXPECT_THAT(parts_.zone.at("www"), ElementsAre("300 A 192.0.2.10"));
}

TEST_F(Loader, AnEditedFileIsMergedAsADifference) {
  write(kFile);
  load();
  write(std::string(kFile) + "added A 192.0.2.12\n");
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("added"), SizeIs(1));
  EXPECT_EQ(serial(), 11U) << "the file's serial was not ahead: the zone's moves on by itself";
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Loader, AnEditedFileWithASerialAheadGivesThatSerial) {
  write(kFile);
  load();
  std::string text = kFile;
  text.replace(text.find("admin 10"), 8, "admin 77");
  write(text + "added A 192.0.2.12\n");
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_EQ(serial(), 77U);
}

TEST_F(Loader, AFileTouchedButEqualChangesNothing) {
  write(kFile);
  load();
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  EXPECT_EQ(serial(), 10U);
}

// Edited files and updates: the merge's rules are in overlay_test and file_merge_test. -----------

TEST_F(Loader, TouchingTheFileOfAnUpdatedZoneChangesNothing) {
  write(kFile);
  load();
  update({"www 300 A 192.0.2.10"}, {"dyn 60 A 192.0.2.9"});
  const std::vector<std::string> before = parts_.zone.lines();
  for (int i = 0; i < 3; ++i) {
    write(kFile);
    EXPECT_EQ(load().kind, Kind::kUnchanged);
    EXPECT_EQ(parts_.zone.lines(), before);
  }
}

TEST_F(Loader, AnEditGoesBesideWhatUpdatesDid) {
  write(kFile);
  load();
  update({"www 300 A 192.0.2.10"}, {"dyn 60 A 192.0.2.9"});
  write(std::string(kFile) + "added A 192.0.2.12\n");
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("added"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("www"), IsEmpty());
  EXPECT_EQ(serial(), 12U);
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("added"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("www"), IsEmpty());
}

TEST_F(Loader, AnUpdatedZoneIsNeverReplacedWhole) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  std::string text = kFile;
  text.replace(text.find("admin 10"), 8, "admin 77");
  for (int i = 0; i < 1000; ++i) text += fmt::format("n{} A 192.0.2.{}\n", i, i % 250);
  write(text);
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_EQ(serial(), 77U);
  EXPECT_EQ(parts_.zone.zone().record_count(), 1005U);
}

/// The file has a record that an update added, so it is the file's from then on.
TEST_F(Loader, ARecordThatTheFileTookOverGoesWithTheFile) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9", "other 60 A 192.0.2.9"});
  write(std::string(kFile) + "dyn 60 A 192.0.2.9\n");
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("other"), SizeIs(1));
}

/// Without the note that the file has it, the deletion would leave no trace and the record return.
TEST_F(Loader, ADeletedRecordThatTheFileTookOverStaysDeleted) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  write(std::string(kFile) + "dyn 60 A 192.0.2.9\n");
  load();
  update({"dyn 60 A 192.0.2.9"}, {});
  write(std::string(kFile) + "dyn 60 A 192.0.2.9\n");
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  EXPECT_THAT(parts_.zone.at("dyn"), IsEmpty());
}

TEST_F(Loader, AFileMadeFromTheServedZoneTakesOverAllUpdates) {
  write(kFile);
  load();
  update({"www 300 A 192.0.2.10"}, {"dyn 60 A 192.0.2.9"});
  std::string exported;
  for (const std::string& line : parts_.zone.lines()) exported += line + "\n";
  write(exported);
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("www"), SizeIs(1));
}

TEST_F(Loader, AnEditThatContradictsAnUpdateIsRefusedUntilItNoLongerDoes) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  const std::vector<std::string> before = parts_.zone.lines();
  write(std::string(kFile) + "dyn CNAME www\n");
  for (int i = 0; i < 2; ++i) {
    const auto outcome = load();
    EXPECT_EQ(outcome.kind, Kind::kFailed);
    EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr("dyn.example.")));
    EXPECT_EQ(parts_.zone.lines(), before);
  }
  update({"dyn 60 A 192.0.2.9"}, {});
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), ElementsAre("300 CNAME www.example."));
}

TEST_F(Loader, AWhollyDifferentFileReplacesTheZone) {
  write(kFile);
  load();
  std::string text = kFile;
  text.replace(text.find("admin 10"), 8, "admin 77");
  for (int i = 0; i < 1000; ++i) text += fmt::format("n{} A 192.0.2.{}\n", i, i % 250);
  write(text);
  EXPECT_EQ(load().kind, Kind::kReplaced);
  EXPECT_EQ(serial(), 77U);
  EXPECT_EQ(parts_.zone.zone().record_count(), 1004U);
}

TEST_F(Loader, AWhollyDifferentFileWithoutANewSerialStillMovesTheSerial) {
  write(kFile);
  load();
  std::string text = kFile;
  for (int i = 0; i < 1000; ++i) text += fmt::format("n{} A 192.0.2.{}\n", i, i % 250);
  write(text);
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_EQ(serial(), 11U);
  EXPECT_EQ(parts_.zone.zone().record_count(), 1004U);
}

TEST_F(Loader, UpdatesAreReplayedWhenTheStoreIsNew) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9", "gone 60 A 192.0.2.9"});
  update({"gone 0 A 192.0.2.9", "www 0 A 192.0.2.10"}, {});
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 12U);
  EXPECT_THAT(parts_.zone.at("dyn"), ElementsAre("60 A 192.0.2.9"));
  EXPECT_THAT(parts_.zone.at("gone"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("www"), IsEmpty());
}

TEST_F(Loader, UpdatesBeforeAnExportedFileAreSkippedAndLaterOnesApply) {
  write(kFile);
  load();
  update({}, {"one 60 A 192.0.2.9"});
  update({}, {"two 60 A 192.0.2.9"});
  std::string text = kFile;
  text.replace(text.find("admin 10"), 8, "admin 11");
  write(text + "exported A 192.0.2.9\n");
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 12U);
  EXPECT_THAT(parts_.zone.at("one"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("two"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("exported"), SizeIs(1));
}

TEST_F(Loader, ANewerFileWinsOverTheJournal) {
  write(kFile);
  load();
  update({}, {"one 60 A 192.0.2.9"});
  std::string text = kFile;
  text.replace(text.find("admin 10"), 8, "admin 99");
  write(text);
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 99U);
  EXPECT_THAT(parts_.zone.at("one"), IsEmpty());
}

TEST_F(Loader, MergedEditsSurviveANewStore) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  write(std::string(kFile) + "added A 192.0.2.12\ndyn 60 A 192.0.2.9\n");
  load();
  update({}, {"later 60 A 192.0.2.9"});
  const std::vector<std::string> before = parts_.zone.lines();
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

/// The journal compacted into a snapshot: zone and later updates come back without the segments.
TEST_F(Loader, ASnapshotAndWhatFollowsItAreReplayed) {
  write(kFile);
  load();
  for (int i = 0; i < 50; ++i) update({}, {fmt::format("n{} 60 TXT {}", i, std::string(200, 'x'))});
  snapshot();
  update({}, {"after 60 A 192.0.2.9"});
  EXPECT_EQ(parts_.journal.files().segments.size(), 1U);
  const std::vector<std::string> before = parts_.zone.lines();
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(Loader, ASnapshotKeepsTheRecordsOfAZoneWithoutData) {
  write(kFile);
  load();
  update({}, {"one 60 A 192.0.2.9"});
  snapshot();
  update({}, {"two 60 A 192.0.2.9"});
  const std::vector<std::string> before = parts_.zone.lines();
  unload();
  snapshot();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
  snapshot();
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

TEST_F(Loader, ASnapshotAfterDamageHoldsEverythingThatIsServed) {
  write(kFile);
  load();
  update({}, {"one 60 A 192.0.2.9"});
  update({}, {"two 60 A 192.0.2.9"});
  update({}, {"three 60 A 192.0.2.9"});
  const std::string segment = parts_.journal.files().segments.back().path;
  std::string octets;
  {
    std::ifstream in(segment, std::ios::binary);
    octets.assign(std::istreambuf_iterator<char>(in), {});
  }
  octets[octets.find("\3one")] ^= 1;
  std::ofstream(segment, std::ios::binary | std::ios::in) << octets;
  const std::vector<std::string> before = parts_.zone.lines();
  snapshot();
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

TEST_F(Loader, ASnapshotServesAZoneWhoseFileIsGone) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  snapshot();
  std::filesystem::remove(path_);
  const std::vector<std::string> before = parts_.zone.lines();
  unload();
  EXPECT_EQ(load(true).kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

}  // namespace
}  // namespace pando::manager
