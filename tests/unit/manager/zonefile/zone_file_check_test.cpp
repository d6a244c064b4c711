#include "manager/zonefile/zone_file_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>

#include "manager/change/change_staging.h"
#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace zone_file_check_test {

using Kind = LoadOutcome::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kBasicZone;
using testing::kFile;
using testing::Loader;
using testing::name;
using testing::Parts;
using ::testing::SizeIs;

/// Checks of the file of "example.", whose findings are not followed up.
class Check : public ::testing::Test {
 protected:
  void write(const std::vector<std::string>& lines) {
    std::ofstream out(path_);
    for (const std::string& line : lines) out << line << "\n";
  }
  static std::vector<std::string> with(std::string line) {
    std::vector<std::string> lines = kBasicZone;
    lines.push_back(std::move(line));
    return lines;
  }
  void note_file() {
    zone::ZoneFileInfo source = *stat_source(path_);
    add_content(source, read_content(path_));
    parts_.zone.commit(
        [&](zone::Draft& draft) { return draft.put_zone_source(name("@"), source); });
  }
  [[nodiscard]] std::string folder_file(const std::string& name) const {
    return parts_.folder.path() + "/" + name;
  }
  void unload() {
    parts_.zone.commit([](zone::Draft& draft) { return draft.unload_zone(name("@")); });
  }
  void make_secondary() {
    zone::ZoneSettings settings;
    settings.is_secondary = true;
    parts_.zone.commit(
        [&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), settings, 0); });
  }
  void prepare() {
    check_.job.apex = name("@");
    check_.job.path = path_;
    check_.history = testing::history_of(parts_);
    check_.version = parts_.zone.view();
    check_.position = parts_.journal.last_position();
    check_.progress = std::make_shared<LoadProgress>();
  }
  ZoneFileCheck& check() {
    prepare();
    const std::uint64_t before = parts_.zone.store().current().number;
    check_.run(parts_.zone.store());
    EXPECT_EQ(parts_.zone.store().current().number, before) << "it puts nothing";
    return check_;
  }

  /// As ZoneLoader does, when no update has overridden the edit.
  Result<zone::Applied> merge(Stage& stage, MergePlan& plan) {
    ZoneChange change;
    change.zone = name("@");
    change.source = ChangeSource::kFile;
    auto overridden = std::make_shared<RecordChanges>();
    change.content = [&](const zone::StoreView& version) {
      return compute_merge(version, plan, overridden);
    };
    auto applied = stage_changesets(stage, change, parts_.committer);
    EXPECT_TRUE(overridden->empty());
    return applied;
  }

  Parts parts_;
  std::string path_ = parts_.folder.path() + "/example.zone";
  ZoneFileCheck check_;
};

TEST_F(Check, FindsTheNotedFileUnchanged) {
  write(kBasicZone);
  note_file();
  const ZoneFileCheck& found = check();
  ASSERT_TRUE(found.outcome);
  EXPECT_EQ(found.outcome->kind, Kind::kUnchanged);
  EXPECT_EQ(found.outcome->serial, dns::Serial{10});
  EXPECT_FALSE(found.zone || found.plan);
  EXPECT_EQ(found.scanned, 0U);
}

TEST_F(Check, PlansWhatWasEdited) {
  write(kBasicZone);
  note_file();
  write(with("added 300 A 192.0.2.12"));
  const ZoneFileCheck& found = check();
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.plan->kind, MergePlan::Kind::kMerge);
  EXPECT_EQ(found.plan->record_count(), 1U);
  EXPECT_EQ(found.plan->source.hash, read_content(path_).hash);
  EXPECT_EQ(found.plan->base_file, parts_.zone.zone().source());
  EXPECT_FALSE(found.outcome || found.zone || found.check_again);
  EXPECT_EQ(found.scanned, 1U);
}

/// RecordChanges would take as much memory again.
TEST_F(Check, KeepsAnEditAsTheDifferenceThatItIs) {
  write(kBasicZone);
  note_file();
  write(with("added 300 A 192.0.2.12"));
  MergePlan& plan = *check().plan;
  ASSERT_TRUE(plan.plain);
  EXPECT_TRUE(plan.edit.empty());
  const auto put = [&](Stage& stage) -> Status {
    auto applied = merge(stage, plan);
    if (!applied) return pass(applied);
    EXPECT_EQ(applied->effective.added.size(), 2U) << "with the SOA";
    return {};
  };
  EXPECT_FALSE(parts_.commit([&](Stage& stage) -> Status {
    EXPECT_TRUE(put(stage));
    return fail(Errc::kFull, "no room");
  }));
  EXPECT_EQ(plan.record_count(), 1U) << "it can be put again";
  ASSERT_TRUE(parts_.commit(put));
  EXPECT_THAT(parts_.zone.at("added"), ElementsAre("300 A 192.0.2.12"));
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{11});
}

TEST_F(Check, MergesAnEditStepByStepIntoAZoneThatHasMovedMeanwhile) {
  write(kBasicZone);
  note_file();
  write(with("www 300 A 192.0.2.12"));
  MergePlan& plan = *check().plan;
  ASSERT_TRUE(plan.plain);
  ASSERT_TRUE(testing::update(parts_, {"www 300 A 192.0.2.11"}, {"dyn 60 A 192.0.2.9"}));
  ASSERT_TRUE(parts_.commit([&](Stage& stage) { return status_of(merge(stage, plan)); }));
  EXPECT_FALSE(plan.plain);
  EXPECT_EQ(plan.record_count(), 1U);
  EXPECT_THAT(parts_.zone.at("www"),
              ElementsAre("300 A 192.0.2.10", "300 A 192.0.2.12", "300 AAAA 2001:db8::10"));
  EXPECT_THAT(parts_.zone.at("dyn"), ElementsAre("60 A 192.0.2.9"));
}

TEST_F(Check, BuildsAZoneWithoutDataInATransactionOfItsOwn) {
  unload();
  write(with("added 300 A 192.0.2.12"));
  const ZoneFileCheck& found = check();
  EXPECT_FALSE(found.served);
  ASSERT_TRUE(found.zone && found.transaction);
  EXPECT_EQ(found.zone->records, kBasicZone.size() + 1);
  EXPECT_FALSE(found.outcome || found.plan);
}

TEST_F(Check, TellsWhatIsWrongWithAFile) {
  write(with("broken 300 A 192.0.2.999"));
  for (const bool served : {true, false}) {
    if (!served) unload();
    const ZoneFileCheck& found = check();
    EXPECT_EQ(found.served, served);
    ASSERT_TRUE(found.outcome);
    EXPECT_EQ(found.outcome->kind, Kind::kFailed);
    EXPECT_THAT(found.outcome->problems, ElementsAre(HasSubstr("example.zone:11: ")));
    EXPECT_FALSE(found.plan || found.zone);
  }
}

TEST_F(Check, ForgetsWhatAnEarlierOneFound) {
  write(with("added 300 A 192.0.2.12"));
  ASSERT_TRUE(check().plan);
  note_file();
  const ZoneFileCheck& found = check();
  EXPECT_FALSE(found.plan);
  ASSERT_TRUE(found.outcome);
  EXPECT_EQ(found.outcome->kind, Kind::kUnchanged);
  EXPECT_EQ(found.scanned, 1U) << "both together";
}

TEST_F(Check, BuildsASmallNewZoneInTheTransactionOfItsBatch) {
  unload();
  write(kBasicZone);
  prepare();
  shm::Transaction batch = parts_.zone.store().begin_private();
  EXPECT_EQ(check_.check_simple(batch), ZoneFileCheck::Simple::kFound);
  ASSERT_TRUE(check_.zone);
  EXPECT_FALSE(check_.transaction);
  EXPECT_EQ(check_.zone->records, kBasicZone.size());
}

TEST_F(Check, FindsSimplyThatAFileIsTheMergeBase) {
  write(kBasicZone);
  note_file();
  prepare();
  shm::Transaction batch = parts_.zone.store().begin_private();
  EXPECT_EQ(check_.check_simple(batch), ZoneFileCheck::Simple::kFound);
  ASSERT_TRUE(check_.outcome);
  EXPECT_EQ(check_.outcome->kind, Kind::kUnchanged);
}

TEST_F(Check, LeavesEditedAndMissingFilesToAWholeCheck) {
  write(with("added 300 A 192.0.2.12"));
  prepare();
  shm::Transaction batch = parts_.zone.store().begin_private();
  EXPECT_EQ(check_.check_simple(batch), ZoneFileCheck::Simple::kNot) << "edited";
  unload();
  std::filesystem::remove(path_);
  prepare();
  EXPECT_EQ(check_.check_simple(batch), ZoneFileCheck::Simple::kNot) << "missing";
  check_.job.apex = name("elsewhere.test.");
  EXPECT_EQ(check_.check_simple(batch), ZoneFileCheck::Simple::kNot) << "not configured";
  EXPECT_FALSE(check_.zone || check_.outcome);
}

TEST_F(Check, SaysSimplyThatAFileIsUnusable) {
  unload();
  write(with("broken 300 A 192.0.2.999"));
  prepare();
  shm::Transaction batch = parts_.zone.store().begin_private();
  EXPECT_EQ(check_.check_simple(batch), ZoneFileCheck::Simple::kFailed);
  EXPECT_FALSE(check_.zone || check_.outcome);
}

TEST_F(Check, IsStaleOnceTheZoneIsGoneOrHasAnotherRole) {
  write(with("added 300 A 192.0.2.12"));
  const ZoneFileCheck& found = check();
  EXPECT_FALSE(found.stale_outcome(parts_.zone.zone()));
  EXPECT_EQ(found.stale_outcome({})->kind, Kind::kAbsent);
  make_secondary();
  const auto stale = found.stale_outcome(parts_.zone.zone());
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->kind, Kind::kUnchanged);
  EXPECT_EQ(stale->serial, dns::Serial{10});
}

TEST_F(Check, OfACopyIsStaleOnceTheZoneIsPrimaryOrItsPrimaryHasSentIt) {
  check_.job.file_optional = true;
  check_.outcome = LoadOutcome{Kind::kFailed, {}, 0, {"unreadable"}};
  EXPECT_EQ(check_.stale_outcome(parts_.zone.zone())->kind, Kind::kAbsent) << "primary";
  make_secondary();
  EXPECT_EQ(check_.stale_outcome(parts_.zone.zone())->kind, Kind::kUnchanged);
  check_.outcome->kind = Kind::kUnchanged;
  EXPECT_FALSE(check_.stale_outcome(parts_.zone.zone()));
}

// Findings that the loader follows up.
// --------------------------------------------------

TEST_F(Loader, AnUnchangedFileIsNotReadAgain) {
  write(kFile);
  load();
  EXPECT_EQ(load().kind, Kind::kUnchanged);
}

TEST_F(Loader, AMissingFileIsAProblemUnlessItIsOptional) {
  EXPECT_EQ(load().kind, Kind::kFailed);
  EXPECT_EQ(load(true).kind, Kind::kAbsent);
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
    return parts_.zone.zone().source().file_mtime_ns == stat_source(path_)->file_mtime_ns;
  }));
  EXPECT_NE(parts_.zone.zone().source().hash, 0U);
}

/// As `cp -p` and rsync --times leave it, or two edits within a tick of the clock.
TEST_F(Loader, AnEditThatKeepsSizeAndTimeIsMergedAsWell) {
  write(kFile);
  load();
  const auto time = std::filesystem::last_write_time(path_);
  const std::uint64_t bytes = std::filesystem::file_size(path_);
  std::string text = kFile;
  text.replace(text.find("192.0.2.10"), 10, "192.0.2.99");
  write(text);
  std::filesystem::last_write_time(path_, time);
  ASSERT_EQ(std::filesystem::file_size(path_), bytes);
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
    EXPECT_EQ(loader_.counters().built, before.built + 1);
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

TEST_F(Check, TellsHowManyRecordsItHasBuilt) {
  constexpr int kNames = 5000;
  std::vector<std::string> shuffled = kBasicZone;
  for (int i = 0; i < kNames; ++i)
    shuffled.push_back("n" + std::to_string(100'000 + i) + " 300 A 192.0.2.1");
  std::shuffle(shuffled.begin() + 1, shuffled.end(), std::minstd_rand(1));
  unload();
  write(shuffled);
  check();
  const Progress::Seen seen = check_.progress->seen();
  EXPECT_TRUE(check_.zone);
  EXPECT_EQ(seen.phase, Progress::Phase::kBuilding);
  EXPECT_EQ(seen.total, shuffled.size()) << "none is written before all are known";
  EXPECT_EQ(seen.done, seen.total);
}

TEST_F(Check, TellsHowManyNamesItHasCompared) {
  write(with("added 300 A 192.0.2.12"));
  check();
  ASSERT_TRUE(check_.plan);
  const Progress::Seen seen = check_.progress->seen();
  EXPECT_EQ(seen.phase, Progress::Phase::kComparing);
  EXPECT_GT(seen.done, 0U);
  EXPECT_LE(seen.done, seen.total);
  EXPECT_EQ(seen.total, parts_.zone.zone().name_count());
}

TEST_F(Check, TellsOctetsAndNoShareOfAFileThatIncludesOthers) {
  unload();
  std::ofstream more(folder_file("more"));
  for (int i = 0; i < 5000; ++i) more << "p" << 100'000 + i << " 300 A 192.0.2.1\n";
  more.close();
  std::vector<std::string> lines = {kBasicZone.front(), "@ 300 NS ns.elsewhere.test."};
  for (int i = 0; i < 100; ++i)  // in order, so that reading them is all
    lines.push_back("n" + std::to_string(100 + i) + " 300 A 192.0.2.1");
  write(lines);
  const std::uint64_t alone = std::filesystem::file_size(path_);
  check();
  EXPECT_EQ(check_.progress->seen().phase, Progress::Phase::kReading);
  EXPECT_EQ(check_.progress->seen().total, alone);
  EXPECT_EQ(check_.progress->seen().done, alone);
  lines.push_back("$INCLUDE " + folder_file("more"));
  write(lines);
  check();
  ASSERT_TRUE(check_.zone);
  const Progress::Seen seen = check_.progress->seen();
  EXPECT_EQ(seen.phase, Progress::Phase::kReading);
  EXPECT_EQ(seen.percent(), std::nullopt);
  EXPECT_EQ(seen.done,
            std::filesystem::file_size(path_) + std::filesystem::file_size(folder_file("more")));
}

}  // namespace zone_file_check_test
}  // namespace pando::manager
