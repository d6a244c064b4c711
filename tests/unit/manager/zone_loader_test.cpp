#include "manager/zone_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

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
    const auto step = [](zone::Draft& draft) { return draft.unload_zone(name("@")); };
    ASSERT_TRUE(parts_.edit(step).has_value());
  }
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    // Two writes within the clock's tick would look like one file.
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + ++writes_)));
  }
  ZoneLoader::Outcome load(bool optional = false) {
    return load_all({{name("@"), path_, optional, serial_policy_}});
  }
  /// Beside a secondary's copy of a zone that nobody has configured.
  ZoneLoader::Outcome load_among_others() {
    const std::string other = parts_.folder.path() + "/other.zone";
    std::ofstream(other) << kFile;
    return load_all({{name("@"), path_, false, serial_policy_}, {name("other."), other, true}});
  }
  /// What became of the first.
  ZoneLoader::Outcome load_all(std::deque<ZoneLoader::Job> jobs) {
    bool done = false;
    ZoneLoader::Outcome outcome;
    auto history = std::make_shared<HistorySource>(
        native_files(), parts_.journal,
        [this](const JournalNote& note) { notes_.push_back(note.text); });
    loader_.run(
        [&]() -> std::optional<ZoneLoader::Job> {
          if (jobs.empty()) return std::nullopt;
          ZoneLoader::Job job = std::move(jobs.front());
          jobs.pop_front();
          return job;
        },
        history,
        [&](const ZoneLoader::Job& job, const ZoneLoader::Outcome& found) {
          if (job.apex == name("@")) outcome = found;
        },
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
  /// As a host restart does; the file and the journal stay.
  void lose_store() { unload(); }
  void leave() { ASSERT_TRUE(parts_.commit(&testing::leave_and_come_again).has_value()); }
  /// Neither another reload nor another loss of the store changes anything.
  void expect_stable() {
    const std::vector<std::string> before = parts_.zone.lines();
    const std::uint64_t position = parts_.journal.last_position();
    EXPECT_EQ(load().kind, Kind::kUnchanged);
    lose_store();
    EXPECT_EQ(load().kind, Kind::kLoaded);
    EXPECT_EQ(parts_.zone.lines(), before);
    EXPECT_EQ(parts_.journal.last_position(), position) << "the journal says all already";
  }
  /// Breaks the record that has these octets.
  void damage(const std::string& part) {
    const std::string segment = parts_.journal.files().segments.back().path;
    std::string octets;
    {
      std::ifstream in(segment, std::ios::binary);
      octets.assign(std::istreambuf_iterator<char>(in), {});
    }
    ASSERT_NE(octets.find(part), std::string::npos);
    octets[octets.find(part)] ^= 1;
    std::ofstream(segment, std::ios::binary | std::ios::in) << octets;
  }
  static std::string with_serial(int serial) {
    std::string text = kFile;
    text.replace(text.find("admin 10"), 8, fmt::format("admin {}", serial));
    return text;
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
  config::SerialPolicy serial_policy_ = config::SerialPolicy::kIncrement;
  LargeChanges changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                        parts_.slots, parts_.committer, {}};
  ZoneLoader loader_{parts_.io,    parts_.pool,      2,        parts_.zone.store(),
                     parts_.slots, parts_.committer, changes_, {}};
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

TEST_F(Loader, AFileTouchedButEqualIsReadForItsHashAloneAndNotedAnew) {
  write(kFile);
  load();
  const auto before = loader_.counters();
  EXPECT_EQ(before.built, 1U);
  write(kFile);
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  EXPECT_EQ(serial(), 10U);
  EXPECT_EQ(loader_.counters().built, before.built);
  EXPECT_EQ(loader_.counters().hashed, before.hashed + 1);
  EXPECT_EQ(loader_.counters().renewed, before.renewed + 1);
  EXPECT_TRUE(parts_.run_until([&] {
    return noted_source(parts_.zone.zone()).file_mtime_ns == stat_source(path_)->file_mtime_ns;
  }));
  EXPECT_NE(noted_source(parts_.zone.zone()).hash, 0U);
}

/// As `cp -p` and rsync --times leave it, or two edits within a tick of the clock.
TEST_F(Loader, AnEditThatKeepsSizeAndTimeIsMergedAsWell) {
  write(kFile);
  load();
  const auto time = std::filesystem::last_write_time(path_);
  const std::uint64_t octets = std::filesystem::file_size(path_);
  std::string text = kFile;
  text.replace(text.find("192.0.2.10"), 10, "192.0.2.99");
  write(text);
  std::filesystem::last_write_time(path_, time);
  ASSERT_EQ(std::filesystem::file_size(path_), octets);
  EXPECT_EQ(load().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("www"), ElementsAre("300 A 192.0.2.99"));
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Loader, AnEditThatKeepsSizeAndTimeIsSeenWhenTheStoreIsLost) {
  write(kFile);
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  const auto time = std::filesystem::last_write_time(path_);
  std::string text = kFile;
  text.replace(text.find("192.0.2.10"), 10, "192.0.2.99");
  write(text);
  std::filesystem::last_write_time(path_, time);
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_THAT(parts_.zone.at("www"), ElementsAre("300 A 192.0.2.99"));
  EXPECT_EQ(serial(), 12U) << "secondaries must not miss it";
  expect_stable();
}

TEST_F(Loader, AnEditedFileOfTheSameSizeIsReadForItsHashOnce) {
  write(kFile);
  load();
  std::string text = kFile;
  text.replace(text.find("192.0.2.10"), 10, "192.0.2.99");
  for (const bool among : {false, true}) {
    write(text);
    while (stat_source(path_)->stamp == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto before = loader_.counters();
    EXPECT_EQ((among ? load_among_others() : load()).kind, Kind::kChanged);
    EXPECT_EQ(loader_.counters().hashed, before.hashed + 1);
    EXPECT_EQ(loader_.counters().built, before.built + 1 + (among ? 1 : 0)) << "and the other's";
    text = kFile;
  }
}

/// A file that includes another, which is edited without a trace in its size and time.
class LoaderOfIncluded : public Loader {
 protected:
  LoaderOfIncluded() {
    include(30);
    write(std::string(kFile) + "$INCLUDE included\n");
  }
  void include(int host) {
    const std::string path = parts_.folder.path() + "/included";
    std::ofstream(path) << fmt::format("inner A 192.0.2.{}\n", host);
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type(std::chrono::seconds(1'000'000)));
  }
  void expect_inner(int host) {
    EXPECT_THAT(parts_.zone.at("inner"), ElementsAre(fmt::format("300 A 192.0.2.{}", host)));
  }
};

TEST_F(LoaderOfIncluded, AnEditOfTheIncludedFileAloneIsMerged) {
  load();
  for (int host = 31; host < 34; ++host) {
    include(host);
    EXPECT_EQ(load().kind, Kind::kChanged);
    expect_inner(host);
    EXPECT_EQ(serial(), static_cast<std::uint32_t>(host - 20));
  }
}

TEST_F(LoaderOfIncluded, UnchangedItIsReadForItsHashAndNothingIsNoted) {
  load();
  for (const bool among : {false, true}) {
    const auto before = loader_.counters();
    EXPECT_EQ((among ? load_among_others() : load()).kind, Kind::kUnchanged);
    EXPECT_EQ(loader_.counters().hashed, before.hashed + 1);
    EXPECT_EQ(loader_.counters().renewed, before.renewed);
  }
  EXPECT_EQ(serial(), 10U);
}

TEST_F(LoaderOfIncluded, AmongOthersItIsLoadedAndMergedAsWell) {
  EXPECT_EQ(load_among_others().kind, Kind::kLoaded);
  EXPECT_EQ(load_among_others().kind, Kind::kUnchanged);
  include(31);
  EXPECT_EQ(load_among_others().kind, Kind::kChanged);
  expect_inner(31);
}

TEST_F(LoaderOfIncluded, AnEditIsSeenWhenTheStoreIsLost) {
  load();
  update({}, {"dyn 60 A 192.0.2.9"});
  include(31);
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  expect_inner(31);
  EXPECT_EQ(serial(), 12U) << "secondaries must not miss it";
  expect_stable();
}

/// It knew of no edit of what a file includes.
TEST_F(LoaderOfIncluded, WhatAnEarlierBuildNotedIsComparedOnce) {
  load();
  zone::ZoneSource noted = noted_source(parts_.zone.zone());
  noted.hash = 0;
  noted.stamp = stat_source(path_)->stamp;
  bool done = false;
  parts_.committer.edit([&](zone::Draft& draft) { return draft.put_zone_source(name("@"), noted); },
                        [&](const Status&) { done = true; });
  ASSERT_TRUE(parts_.run_until([&] { return done; }));
  include(31);
  EXPECT_EQ(load().kind, Kind::kChanged);
  expect_inner(31);
  const auto before = loader_.counters();
  EXPECT_EQ(load().kind, Kind::kUnchanged);
  EXPECT_EQ(loader_.counters().built, before.built);
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

/// What the serials no longer lead to is left out, and the operator is told; from then on it is
/// known again what came by update.
TEST_F(Loader, WithoutKnowledgeOfUpdatesSerialsDecide) {
  write(kFile);
  load();
  update({}, {"one 60 A 192.0.2.9"});
  update({}, {"two 60 A 192.0.2.9"});
  damage("\3one");
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_EQ(serial(), 10U) << "the second difference does not start there";
  EXPECT_THAT(parts_.zone.at("two"), IsEmpty());
  expect_stable();
  update({}, {"three 60 A 192.0.2.9"});
  write(std::string(kFile) + "added A 192.0.2.12\n");
  lose_store();
  EXPECT_EQ(load().kind, Kind::kLoaded);
  EXPECT_THAT(parts_.zone.at("three"), SizeIs(1));
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
