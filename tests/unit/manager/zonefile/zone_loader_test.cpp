#include "manager/zonefile/zone_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace zone_loader_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFile;
using testing::Loader;
using testing::name;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(Loader, AFileIsLoadedAndServed) {
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 10U);
  EXPECT_THAT(parts_.zone.at("www"), ElementsAre("300 A 192.0.2.10"));
}

TEST_F(Loader, ABadFileIsReportedWithItsLinesAndLeavesTheZoneUnloaded) {
  write(std::string(kFile) + "broken A 300.1.2.3\nalso TXT \"open\n");
  const auto outcome = load();
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_THAT(outcome.problems, Contains(HasSubstr("example.zone:6:")));
  EXPECT_FALSE(parts_.zone.zone().loaded());
}

TEST_F(Loader, ManyBadFilesFillTheLogWithAThousandLinesAndTheirNumber) {
  std::string text = kFile;
  for (int i = 0; i < 10; ++i) text += "broken A 300.1.2.3\n";
  write(text);
  std::deque<LoadJob> jobs;
  for (int i = 0; i < 110; ++i) jobs.push_back({name(fmt::format("z{}.", i)), path_});
  const auto configure = [&](zone::Draft& draft) -> Status {
    for (std::uint32_t i = 0; i < jobs.size(); ++i)
      if (auto put = draft.put_zone_settings(jobs[i].apex, {}, i + 1); !put) return put;
    return {};
  };
  ASSERT_TRUE(parts_.edit(configure).has_value());
  ::testing::internal::CaptureStderr();
  log::start({});
  load_all(std::move(jobs));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto count = [&](const std::string& event) {
    std::size_t found = 0;
    for (auto at = log.find(event); at != std::string::npos; at = log.find(event, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(" zone_not_loaded "), 1000U);
  EXPECT_EQ(count(" zones_not_loaded zones=110 lines_left_out=100\n"), 1U);
}

/// RFC 9276 §3.1: iterations cost each validator time, and do not hide names.
TEST_F(Loader, AFileWhoseNsec3HasIterationsIsServedAndToldOf) {
  const std::string chain = "@ NSEC3PARAM 1 0 5 -\n0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 5 - ";
  for (const bool edited : {false, true}) {
    ::testing::internal::CaptureStderr();
    log::start({});
    write(kFile + chain + "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom " + (edited ? "A\n" : "SOA\n"));
    EXPECT_EQ(load().kind, edited ? Kind::kChanged : Kind::kLoaded);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("NSEC3PARAM has 5 iterations, RFC 9276 wants 0"));
  }
}

TEST_F(Loader, ABadFileLeavesTheOldVersionServing) {
  write(kFile);
  load();
  write(std::string(kFile) + "broken A 300.1.2.3\n");
  EXPECT_EQ(load().kind, Kind::kFailed);
  EXPECT_THAT(parts_.zone.at("www"), ElementsAre("300 A 192.0.2.10"));
}

TEST_F(Loader, AnEditedFileIsMergedAsAChangeset) {
  write(kFile);
  load();
  write(std::string(kFile) + "added A 192.0.2.12\n");
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("added"), SizeIs(1));
  EXPECT_EQ(serial(), 11U) << "the file's serial was not ahead: the zone's moves on by itself";
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Loader, AnEditWithTheOldSerialGetsTheNextOneOfThePolicy) {
  write(kFile);
  load();
  serial_policy_ = config::SerialPolicy::kUnixtime;
  write(std::string(kFile) + "added A 192.0.2.12\n");
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_GE(serial(), 1'700'000'000U);
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

/// A stop does not wait for the rest of a large file, whether it is small enough to be scanned in
/// one go or not; and a small one is not put either.
TEST_F(Loader, ALoadThatIsGivenUpReadsNoFurtherAndHasNoZone) {
  std::string text = kFile;
  std::uint32_t records = 0;
  const auto fill = [&](std::size_t bytes) {
    for (; text.size() < bytes; ++records)
      text += fmt::format("n{:07} TXT \"{:0100}\"\n", records, records);
    write(text);
  };
  shm::Transaction transaction = parts_.zone.store().begin_private();
  LoadProgress progress;
  progress.give_up();
  for (const std::size_t bytes : {1U, 6U << 20, 12U << 20}) {
    fill(bytes);
    progress.at(0);
    const auto built = build_zone(transaction, name("@"), path_, nullptr, &progress);
    ASSERT_FALSE(built);
    EXPECT_THAT(built.error().lines.back(), HasSubstr(kGivenUp));
    EXPECT_LE(progress.seen().done, 2U << 20) << "of " << text.size();
    write(kFile);
    if (bytes == 1) load();
    fill(bytes);
    const auto compared = compare_file(parts_.zone.zone(), name("@"), path_, &progress);
    ASSERT_FALSE(compared);
    EXPECT_THAT(compared.error().lines.back(), HasSubstr(kGivenUp));
  }
}

TEST_F(Loader, NothingIsPutOrToldOnceItIsStopped) {
  write(kFile);
  bool is_reported = false;
  auto jobs = std::make_shared<int>(1);
  loader_.load({
      LoadKind::kFiles,
      [&]() -> std::optional<LoadJob> {
        if ((*jobs)-- <= 0) return std::nullopt;
        return LoadJob{name("@"), path_};
      },
      testing::history_of(parts_),
      [&](const LoadJob&, const LoadOutcome&) { is_reported = true; },
      [&] { is_reported = true; },
  });
  ASSERT_TRUE(parts_.run_until([&] { return loader_.progress(name("@")) != nullptr; }));
  loader_.stop();
  EXPECT_TRUE(loader_.progress(name("@"))->is_given_up());
  parts_.pool.join();
  parts_.io.restart();
  parts_.io.poll();
  EXPECT_FALSE(is_reported);
  EXPECT_FALSE(parts_.zone.zone().loaded());
}

/// Whatever the order of its lines: two for each name, so that shuffling takes names apart.
TEST_F(Loader, AnEditOfALargeFileMakesNoSecondZone) {
  std::vector<std::string> lines;
  for (int i = 0; i < 60'000; ++i) {
    lines.push_back(fmt::format("n{:06} A 192.0.2.{}\n", i, i % 250));
    lines.push_back(fmt::format("n{:06} TXT \"number {}\"\n", i, i));
  }
  const auto text = [&] { return kFile + fmt::format("{}", fmt::join(lines, "")); };
  write(text());
  ASSERT_EQ(load().kind, Kind::kLoaded);
  const auto steady = parts_.zone.store().stats();
  for (int edit = 0; edit < 2; ++edit) {
    lines[777] = fmt::format("added{} A 192.0.2.1\n", edit);
    write(text());
    EXPECT_EQ(load().kind, Kind::kChanged);
    EXPECT_EQ(parts_.zone.zone().record_count(), 120'004U);
    std::shuffle(lines.begin(), lines.end(), std::mt19937(3));
  }
  EXPECT_THAT(parts_.zone.at("added1"), SizeIs(1));
  const auto after = parts_.zone.store().stats();
  EXPECT_LE(after.peak_chunks, std::max(steady.peak_chunks, steady.chunks_in_use * 11 / 10));
}

// Edited files and updates: the merge's rules are in dynamic_changes_test, file_merge_test. ------

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

// The rules of a file edited while the host was down are in zone_recovery_test. ------------------

TEST_F(Loader, AFileEditedWhileTheStoreWasLostGoesBesideTheUpdates) {
  write(kFile);
  load();
  update({"www 300 A 192.0.2.10"}, {"dyn 60 A 192.0.2.9"});
  for (const bool compacted : {false, true}) {
    if (compacted) snapshot();
    write(std::string(kFile) + fmt::format("added{} A 192.0.2.12\n", compacted ? 1 : 0));
    const std::uint32_t before = serial();
    lose_store();
    EXPECT_EQ(load().kind, Kind::kLoaded);
    EXPECT_EQ(serial(), before + 1);
    EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
    EXPECT_THAT(parts_.zone.at("www"), IsEmpty());
    EXPECT_THAT(parts_.zone.at("added0"), SizeIs(compacted ? 0 : 1));
    EXPECT_THAT(parts_.zone.at("added1"), SizeIs(compacted ? 1 : 0));
    expect_stable();
  }
}

TEST_F(Loader, AFileWithASerialAheadIsOnlyLeftBehindWhenUpdatesAreBesideIt) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  write(with_serial(99));
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 100U);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
  expect_stable();
  write(with_serial(200) + "dyn 60 A 192.0.2.9\n");
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 200U) << "the file has all now";
  expect_stable();
}

TEST_F(Loader, AnOldFileOrAnOldSerialIsAnEditToo) {
  write(with_serial(50) + "gone A 192.0.2.12\n");
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  write(kFile);
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 52U);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("gone"), IsEmpty());
  expect_stable();
}

TEST_F(Loader, ATouchedFileIsNoEditWhenTheStoreIsLost) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  const std::vector<std::string> before = parts_.zone.lines();
  lose_store();
  load();
  EXPECT_EQ(parts_.zone.lines(), before);
  write(kFile);
  lose_store();
  load();
  EXPECT_EQ(serial(), 11U);
  EXPECT_EQ(parts_.zone.lines(), before);
  expect_stable();
}

TEST_F(Loader, AnEditIsMergedAfterACompaction) {
  write(kFile);
  load();
  update({"www 300 A 192.0.2.10"}, {"dyn 60 A 192.0.2.9"});
  snapshot();
  write(std::string(kFile) + "added A 192.0.2.12\n");
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("www"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("added"), SizeIs(1));
  expect_stable();
}

TEST_F(Loader, AnEditThatContradictsAnUpdateIsNotLoadedAndNothingIsLost) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  write(std::string(kFile) + "dyn CNAME www\n");
  lose_store();
  const auto outcome = load();
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr("beside the records that came by update")));
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
}

TEST_F(Loader, AZoneThatLeftLeavesNoUpdates) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  leave();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 10U);
  EXPECT_THAT(parts_.zone.at("dyn"), IsEmpty());
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
  damage("\3one");
  const std::vector<std::string> before = parts_.zone.lines();
  for (int i = 0; i < 2; ++i) {
    write(std::string(kFile) + "added A 192.0.2.12\n");
    const auto outcome = load();
    EXPECT_EQ(outcome.kind, Kind::kFailed);
    EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr("no longer tells")))
        << "unknown rather than wrong";
    EXPECT_EQ(parts_.zone.lines(), before);
    if (i == 0) snapshot();
  }
  write(kFile);
  unload();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

/// Sound records behind damage count, and the serial is one that no other data had. From then on
/// it is known again what came by update.
TEST_F(Loader, DamageTakesNoOtherRecordAndNoSerialIsUsedAgain) {
  write(kFile);
  load();
  update({}, {"one 60 A 192.0.2.9"});
  update({}, {"two 60 A 192.0.2.9"});
  update({}, {"three 60 A 192.0.2.9"});
  damage("\3two");
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_GT(serial(), 13U);
  EXPECT_LT(serial(), 20U) << "no further than the lost record makes necessary";
  EXPECT_THAT(parts_.zone.at("one"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("two"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("three"), SizeIs(1));
  expect_stable();
  update({}, {"four 60 A 192.0.2.9"});
  write(std::string(kFile) + "added A 192.0.2.12\n");
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_THAT(parts_.zone.at("four"), SizeIs(1));
}

/// Its record may be the one that is lost.
TEST_F(Loader, AZoneThatMayHaveHadUpdatesTakesAnotherSerialThanItsFile) {
  write(kFile);
  load();
  zone::ZoneSettings settings;
  settings.is_secondary = false;
  settings.allow_update.push_back({});
  parts_.zone.commit(
      [&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), settings, 0); });
  update({}, {"one 60 A 192.0.2.9"});
  const zone::Changeset other{name("other."), {}, {testing::record("x 60 A 192.0.2.1")}};
  ASSERT_TRUE(parts_
                  .commit([&](Stage& stage) -> Status {
                    stage.journal.push_back({name("other."), {1}, {2}, zone::encode(other)});
                    return {};
                  })
                  .has_value());
  damage("\3one");
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_GT(serial(), 11U);
  EXPECT_THAT(parts_.zone.at("one"), IsEmpty());
}

/// A zone whose records cannot be read for now is not built without them.
class UnreadableRecords : public Loader {
 protected:
  UnreadableRecords() {
    zone::ZoneSettings settings;
    settings.allow_update.push_back({});
    parts_.zone.commit(
        [&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), settings, 0); });
    write(kFile);
    load();
    update({}, {"one 60 A 192.0.2.9"});
    parts_.journal.seal();
    update({}, {"two 60 A 192.0.2.9"});
    before_ = parts_.zone.lines();
    files_.fail = [this](testing::FakeDisk::Call call, const std::string& path) -> Status {
      const bool is_hit = call == testing::FakeDisk::Call::kRead && path == unreadable_;
      return is_hit ? fail(Errc::kIo, "EIO") : Status();
    };
  }
  LoadOutcome look() { return load_with(files_); }

  testing::FailingFiles files_;
  std::string unreadable_;
  std::vector<std::string> before_;
};

TEST_F(UnreadableRecords, IsWaitedForAndNothingIsWrittenMeanwhile) {
  unreadable_ = parts_.journal.files().segments.front().path;
  lose_store();
  const std::uint64_t position = parts_.journal.last_position();
  for (int i = 0; i < 2; ++i) {
    const LoadOutcome waits = look();
    EXPECT_EQ(waits.kind, Kind::kFailed);
    EXPECT_TRUE(waits.waits_for_journal);
    EXPECT_THAT(waits.problems, ElementsAre(HasSubstr("EIO")));
  }
  EXPECT_FALSE(parts_.zone.zone().loaded());
  EXPECT_EQ(parts_.journal.last_position(), position);
  unreadable_.clear();
  EXPECT_EQ(look().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before_);
  expect_stable();
}

TEST_F(UnreadableRecords, SnapshotIsWaitedFor) {
  snapshot();
  unreadable_ = parts_.journal.files().snapshot;
  lose_store();
  EXPECT_TRUE(look().waits_for_journal);
  unreadable_.clear();
  EXPECT_EQ(look().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before_);
}

/// The last record says all of the zone.
TEST_F(UnreadableRecords, IsNotWaitedForBehindARecordThatSaysAll) {
  unreadable_ = parts_.journal.files().segments.front().path;
  ASSERT_TRUE(parts_
                  .commit([&](Stage& stage) -> Status {
                    DynamicChanges none;
                    stage.journal.push_back(dynamic_changes_entry(name("@"), {10}, {12}, none));
                    return {};
                  })
                  .has_value());
  lose_store();
  EXPECT_EQ(look().kind, Kind::kLoaded);
}

TEST_F(UnreadableRecords, KeepsNoZoneWithoutUpdatesWaiting) {
  unreadable_ = parts_.journal.files().segments.front().path;
  parts_.zone.commit(
      [&](zone::Draft& draft) { return draft.put_zone_settings(name("other."), {}, 1); });
  const std::string other = parts_.folder.path() + "/other.zone";
  std::ofstream(other) << kFile;
  load_all({{name("other."), other, false}}, {}, files_);
  EXPECT_EQ(outcomes_["other."].kind, Kind::kLoaded);
}

TEST_F(Loader, ASnapshotServesAZoneWhoseFileIsGone) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  snapshot();
  std::filesystem::remove(path_);
  const std::vector<std::string> before = parts_.zone.lines();
  make_secondary();
  unload();
  EXPECT_EQ(load(true).kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

// Zones that become others while their files are checked.
// --------------------------------------------------

TEST_F(Loader, AZoneThatTheStoreHasNoRoomForIsNotBuilt) {
  write(kFile);
  ::testing::internal::CaptureStderr();
  log::start({});
  load_all({{name("other."), path_}});
  EXPECT_EQ(outcomes_["other."].kind, Kind::kAbsent);
  EXPECT_EQ(load_all({{name("other."), path_}, {name("@"), path_}}).kind, Kind::kLoaded);
  EXPECT_EQ(outcomes_["other."].kind, Kind::kAbsent);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("other")));
  EXPECT_TRUE(parts_.zone.zone().loaded());
  EXPECT_EQ(loader_.counters().built, 1U);
}

/// The job of a copy, from a configuration in which it was a secondary.
TEST_F(Loader, ACopyIsNothingToAZoneThatHasBecomePrimary) {
  for (const char* text : {kFile, "broken"}) {
    write(text);
    EXPECT_EQ(load(true).kind, Kind::kAbsent) << text;
    EXPECT_FALSE(parts_.zone.zone().loaded());
  }
  make_secondary();
  write(kFile);
  EXPECT_EQ(load(true).kind, Kind::kLoaded);
}

/// It becomes one when its copy has been read, and before that is put.
TEST_F(Loader, ACopyIsNotPutInAZoneThatIsJustBecomingPrimary) {
  make_secondary();
  write(kFile);
  EXPECT_EQ(load_while(true, [&] { make_secondary(false); }).kind, Kind::kAbsent);
  EXPECT_FALSE(parts_.zone.zone().loaded());
}

TEST_F(Loader, ACopyThatCannotBeReadIsNoProblemOfAZoneThatItsPrimaryHasSent) {
  make_secondary();
  write("broken");
  EXPECT_EQ(load(true).kind, Kind::kFailed);
  EXPECT_EQ(load_while(true,
                       [&] {
                         parts_.zone.put(testing::kBasicZone);
                         make_secondary();
                       })
                .kind,
            Kind::kUnchanged);
}

TEST_F(Loader, AFileWithFaultsInItsSignaturesFailsAloneAmongManyNewOnes) {
  constexpr int kZones = 40;
  const auto job = [](const std::string& zone, const std::string& path) {
    LoadJob made{name(zone), path};
    made.verify = config::SignaturePolicy::kRefuse;
    return made;
  };
  const std::string bad = parts_.folder.path() + "/bad.zone";
  std::ofstream(bad) << kFile << testing::kUnsignedKey;
  write(kFile);
  std::deque<LoadJob> jobs;
  for (int i = 0; i < kZones; ++i)
    jobs.push_back(job(fmt::format("z{}.", i), i % 10 == 5 ? bad : path_));
  ASSERT_TRUE(parts_.edit([&](zone::Draft& draft) -> Status {
    for (std::uint32_t i = 0; i < kZones; ++i)
      if (auto put = draft.put_zone_settings(jobs[i].apex, {}, i + 1); !put) return put;
    return {};
  }));
  const std::uint64_t versions = parts_.committer.counters().versions;
  load_all(std::move(jobs));
  EXPECT_LT(parts_.committer.counters().versions - versions, kZones / 2) << "they share versions";
  outcomes_.erase("example.");
  ASSERT_THAT(outcomes_, SizeIs(kZones));
  for (int i = 0; i < kZones; ++i)
    EXPECT_EQ(outcomes_[fmt::format("z{}.", i)].kind, i % 10 == 5 ? Kind::kFailed : Kind::kLoaded)
        << i;
}

}  // namespace zone_loader_test
}  // namespace pando::manager
