#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <future>

#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/manager/zonefile/zone_table_fixture.h"

namespace pando::manager {
namespace judged_loads_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FailingFiles;
using ::testing::HasSubstr;
using testing::history_of;
using testing::name;
using testing::Parts;

/// A journal whose first reader waits, as for a slow disk.
class SlowHistory {
 public:
  explicit SlowHistory(Parts& parts)
      : source_(std::make_shared<HistorySource>(files_, parts.journal, [](const JournalNote&) {})) {
    files_.fail = [this](FailingFiles::Call, const std::string&) {
      is_read_ = true;
      open_.wait();
      return Status();
    };
  }
  ~SlowHistory() { let_go(); }
  SlowHistory(const SlowHistory&) = delete;
  SlowHistory& operator=(const SlowHistory&) = delete;

  [[nodiscard]] const std::shared_ptr<HistorySource>& source() const { return source_; }
  [[nodiscard]] bool is_read() const { return is_read_; }
  void let_go() {
    if (!std::exchange(let_go_, true)) gate_.set_value();
  }

 private:
  FailingFiles files_;
  std::shared_ptr<HistorySource> source_;
  std::atomic<bool> is_read_ = false;
  std::promise<void> gate_;
  std::shared_future<void> open_ = gate_.get_future().share();
  bool let_go_ = false;
};

/// Zones whose files a shell script judges, which waits for as long as there is a file "hold".
class JudgedLoads : public testing::ZoneTableLoads {
 protected:
  JudgedLoads() {
    std::signal(SIGPIPE, SIG_IGN);
    loads_.judge_by([this](const config::ZoneOptions& options) { return verifiers_.of(options); });
    loads_.set_verdict_time(std::chrono::milliseconds(0));
    write_program("case \"$zone\" in *192.0.2.99*) exit 1;; esac");
  }
  ~JudgedLoads() override {
    slow_.let_go();
    loader_.stop();
    loader_.join();
    verifiers_.stop();
    parts_.pool.join();
    parts_.io.restart();
    parts_.io.poll();
  }

  void write_program(const std::string& verdict) {
    std::ofstream(program_) << "#!/bin/sh\nzone=$(cat)\nwhile [ -e " << hold_
                            << " ]; do sleep 0.01; done\n"
                            << verdict << "\n";
    ::chmod(program_.c_str(), 0755);
  }
  void write_text(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + ++writes_)));
  }
  static std::string text_of(int serial, const std::string& address = "192.0.2.1") {
    return fmt::format("$TTL 300\n@ 3600 SOA ns1 admin {} 3600 600 86400 300\n@ NS ns1\nns1 A {}\n",
                       serial, address);
  }
  void write(const std::string& zone, int serial, const std::string& address = "192.0.2.1") {
    write_text(path_of(zone), text_of(serial, address));
  }
  /// More than is read beside the files of other zones.
  static std::string much_text() {
    std::string text;
    for (int line = 0; line < 3'000; ++line) text += std::string(100, ';') + "\n";
    return text;
  }
  /// A small file that includes a large one.
  void write_including(const std::string& zone, int serial) {
    write_text(path_of(zone), text_of(serial) + "$INCLUDE " + path_of("included") + "\n");
  }
  void write_included(const std::string& record) {
    write_text(path_of("included"), much_text() + record + "\n");
  }
  void hold() { std::ofstream(hold_) << "x"; }
  void let_go() { std::filesystem::remove(hold_); }
  /// `plain`: zones without a program, behind the others.
  void configure(const std::vector<std::string>& zones, const std::vector<std::string>& command,
                 const std::vector<std::string>& plain = {}) {
    config::Settings settings;
    config::ZoneOptions options;
    options.verify_command = command;
    options.verify_time = std::chrono::minutes(10);
    const auto judged = settings.zones.add_options(options);
    const auto others = settings.zones.add_options({});
    for (const std::string& zone : zones) add_zone(settings, zone, judged);
    for (const std::string& zone : plain) add_zone(settings, zone, others);
    runtime_ = bring_in_line(std::move(settings));
  }
  void configure(const std::vector<std::string>& zones) { configure(zones, {program_}); }
  Counts load() { return load_for(runtime_); }
  Counts load_some(const std::vector<dns::Name>& zones) { return load_some_for(runtime_, zones); }
  /// Returns once a thread of this load waits for the journal.
  void begin_slowly() {
    loads_.load(runtime_, slow_.source(), [](const Counts&) {});
    EXPECT_TRUE(parts_.run_until([&] { return slow_.is_read(); }));
  }
  bool run_until_judged(const std::string& zone) {
    return parts_.run_until([&] { return !loader_.judges(name(zone)); });
  }
  bool runs(const std::string& zone) {
    return parts_.run_until([&] { return verifiers_.under_way(name(zone)).has_value(); });
  }
  /// Whether the work on the zone that is under way goes on during one more load.
  bool goes_on(const std::string& zone) {
    const auto work = loader_.progress(name(zone));
    EXPECT_EQ(load().being_judged, 1U);
    return work && !work->is_given_up();
  }
  std::uint32_t serial(const std::string& zone) {
    const zone::ZoneView view = live(zone);
    return view && view.loaded() ? view.serial().value : 0;
  }
  bool becomes(const std::string& zone, std::uint32_t wanted) {
    return parts_.run_until([&] { return serial(zone) == wanted; });
  }
  /// Served, with its program's place free again.
  void serve(const std::string& zone, std::uint32_t serial) {
    load();
    EXPECT_TRUE(becomes(zone, serial));
    EXPECT_TRUE(run_until_judged(zone));
  }

  const std::string program_ = parts_.folder.path() + "/judge";
  const std::string hold_ = parts_.folder.path() + "/hold";
  SlowHistory slow_{parts_};
  ZoneVerifiers verifiers_{{}};
  RuntimePtr runtime_;
  int writes_ = 0;
};

TEST_F(JudgedLoads, EndWithoutTheVerdictThatServesTheZoneLater) {
  write("one", 1);
  hold();
  configure({"one"});
  const ZoneFileLoads::Counts counts = load();
  EXPECT_EQ(counts.being_judged, 1U);
  EXPECT_EQ(counts.failed + counts.changed, 0U);
  EXPECT_TRUE(counts.is_first);
  EXPECT_TRUE(loads_.settled()) << "the start does not wait";
  EXPECT_TRUE(loads_.under_way()) << "the journal may be the only one to have updates of it";
  EXPECT_TRUE(loader_.idle());
  EXPECT_EQ(loader_.judge_of(name("one")), program_);
  EXPECT_EQ(serial("one"), 0U);
  let_go();
  EXPECT_TRUE(becomes("one", 1));
  EXPECT_TRUE(run_until_judged("one"));
  EXPECT_FALSE(loads_.under_way());
  EXPECT_EQ(loads_.loaded(), 1U);
}

TEST_F(JudgedLoads, ThatWaitHaveTheVerdict) {
  loads_.set_verdict_time(std::chrono::minutes(10));
  write("one", 1);
  write("two", 1, "192.0.2.99");
  configure({"one", "two"});
  const ZoneFileLoads::Counts counts = load();
  EXPECT_EQ(counts.being_judged, 0U);
  EXPECT_EQ(counts.changed, 1U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_THAT(counts.problems, ElementsAre(HasSubstr("exit status 1")));
  EXPECT_EQ(load().changed, 0U) << "unchanged files are not judged";
}

TEST_F(JudgedLoads, OfTheSameFileGoOnAndOfAnotherBeginAnew) {
  write("one", 1);
  configure({"one"});
  load();
  ASSERT_TRUE(becomes("one", 1));
  hold();
  write("one", 2);
  EXPECT_EQ(load().being_judged, 1U);
  ASSERT_TRUE(runs("one"));
  EXPECT_EQ(load().being_judged, 1U);
  write("one", 3);
  EXPECT_EQ(load().being_judged, 1U);
  EXPECT_FALSE(loads_.under_way()) << "a served zone keeps nothing up";
  let_go();
  EXPECT_TRUE(becomes("one", 3));
}

TEST_F(JudgedLoads, OfAFileThatWasPutBackEnd) {
  write("one", 1);
  configure({"one"});
  load();
  ASSERT_TRUE(becomes("one", 1));
  ASSERT_TRUE(run_until_judged("one"));
  hold();
  write("one", 2);
  load();
  ASSERT_TRUE(loader_.judges(name("one")));
  write("one", 1);
  EXPECT_EQ(load().being_judged, 0U);
  EXPECT_FALSE(loader_.judges(name("one")));
  EXPECT_EQ(serial("one"), 1U);
}

/// The four that run leave their places after five seconds, but nothing here depends on that.
TEST_F(JudgedLoads, OfAFileThatWasPutBackBeforeItsProgramRanEnd) {
  const std::vector<std::string> busy = {"a", "b", "c", "d"};
  static_assert(ProgramPlaces::kAtOnce == 4);
  std::vector<std::string> all = busy;
  all.emplace_back("one");
  for (const std::string& zone : all) write(zone, 1);
  configure(all);
  for (const std::string& zone : all) serve(zone, 1);
  hold();
  for (const std::string& zone : busy) write(zone, 2);
  EXPECT_EQ(load().being_judged, 4U);
  for (const std::string& zone : busy) ASSERT_TRUE(runs(zone));
  write("one", 2);
  EXPECT_EQ(load().being_judged, 5U);
  write("one", 3);
  EXPECT_EQ(load().being_judged, 5U);
  write("one", 1);
  EXPECT_EQ(load().being_judged, 4U);
  EXPECT_FALSE(loader_.judges(name("one")));
}

TEST_F(JudgedLoads, OfZonesThatLeaveOrNeedNoProgramAnyMoreEnd) {
  write("one", 1);
  write("two", 1);
  hold();
  configure({"one", "two"});
  EXPECT_EQ(load().being_judged, 2U);
  configure({"one"}, {});
  const ZoneFileLoads::Counts counts = load();
  EXPECT_EQ(counts.being_judged, 0U);
  EXPECT_EQ(counts.changed, 1U);
  EXPECT_EQ(serial("one"), 1U);
  EXPECT_FALSE(loader_.judges(name("two")));
}

TEST_F(JudgedLoads, OfSingleZonesBeginAnewAndNameThem) {
  write("one", 1);
  hold();
  configure({"one"});
  load();
  ASSERT_TRUE(runs("one"));
  const ZoneFileLoads::Counts counts = load_some({name("one")});
  EXPECT_EQ(counts.being_judged, 1U);
  EXPECT_THAT(counts.judged_zones, ElementsAre(name("one")));
  let_go();
  EXPECT_TRUE(becomes("one", 1));
}

TEST_F(JudgedLoads, KeepWhatIsAcknowledgedMeanwhile) {
  write("@", 20);
  configure({"@"});
  load();
  ASSERT_TRUE(becomes("@", 20));
  ASSERT_TRUE(run_until_judged("@"));
  hold();
  write("@", 21, "192.0.2.2");
  EXPECT_EQ(load().being_judged, 1U);
  ASSERT_TRUE(runs("@"));
  constexpr std::uint32_t kUpdates = 10;  // more than a check may be repeated
  for (std::uint32_t i = 0; i < kUpdates; ++i)
    ASSERT_TRUE(testing::update(parts_, {}, {fmt::format("new{} 60 A 192.0.2.50", i)}).has_value());
  ASSERT_EQ(serial("@"), 20 + kUpdates);
  let_go();
  EXPECT_TRUE(becomes("@", 20 + kUpdates + 1)) << "the file's serial is behind";
  EXPECT_TRUE(run_until_judged("@"));
  const std::vector<std::string> lines = parts_.zone.lines();
  for (std::uint32_t i = 0; i < kUpdates; ++i)
    EXPECT_THAT(lines, Contains(HasSubstr(fmt::format("new{}.", i)))) << i;
  EXPECT_THAT(lines, Contains(HasSubstr("192.0.2.2")));
  EXPECT_EQ(loads_.problem(version_.zone_at(name("@"))), "");
}

// The first look
// -----------------------------------------------------------------------------------------

TEST_F(JudgedLoads, OfAZoneThatBecameSecondaryDuringTheLookDoNotBegin) {
  write("one", 1);
  write("slow", 1);
  hold();
  configure({"one"}, {program_}, {"slow"});
  begin_slowly();
  config::Settings settings;
  config::ZoneOptions secondary;
  secondary.primaries = {"primary"};
  ASSERT_TRUE(
      settings.zones.add(name("one"), path_of("copy"), settings.zones.add_options(secondary)));
  add_zone(settings, "slow", settings.zones.add_options({}));
  runtime_ = bring_in_line(std::move(settings));
  const Counts counts = counts_of([&](ZoneFileLoads::Done done) {
    loads_.load(runtime_, history_of(parts_), std::move(done));
    slow_.let_go();
  });
  EXPECT_EQ(counts.failed, 0U);
  EXPECT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_FALSE(loader_.judges(name("one")));
}

/// Reloads may come faster than the file is read and built.
TEST_F(JudgedLoads, GoOnWhileTheSameFileIsBuilt) {
  write("one", 1);
  configure({"one"});
  begin_slowly();
  EXPECT_TRUE(goes_on("one"));
  slow_.let_go();
  EXPECT_TRUE(becomes("one", 1));
}

TEST_F(JudgedLoads, BeginAnewIfAnotherFileIsIncludedWhileTheFormerIsBuilt) {
  write_included("a A 192.0.2.2");
  write_including("one", 1);
  configure({"one"});
  begin_slowly();
  EXPECT_TRUE(goes_on("one"));
  write_included("a A 192.0.2.3");
  EXPECT_FALSE(goes_on("one"));
  slow_.let_go();
  EXPECT_TRUE(becomes("one", 1));
}

TEST_F(JudgedLoads, KnowLargeFilesWithOthersIncluded) {
  write_included("a A 192.0.2.2");
  write_including("one", 1);
  write("two", 1);
  configure({"one", "two"});
  serve("one", 1);
  serve("two", 1);
  hold();
  EXPECT_EQ(load().being_judged, 0U) << "it is served";
  write_including("one", 2);
  EXPECT_EQ(load().being_judged, 1U);
  ASSERT_TRUE(runs("one"));
  EXPECT_TRUE(goes_on("one"));
  write_included("a A 192.0.2.3");
  EXPECT_FALSE(goes_on("one"));
  let_go();
  EXPECT_TRUE(becomes("one", 2));
}

/// The first look leaves a large file to a second one, so that small ones need not wait.
TEST_F(JudgedLoads, WithAVerdictBetweenTheirLooksBeginAnew) {
  write_text(path_of("one"), text_of(1, "192.0.2.99") + much_text());
  write("slow", 1);
  hold();
  configure({"one"});
  EXPECT_EQ(load().being_judged, 1U);
  ASSERT_TRUE(runs("one"));
  configure({"one"}, {program_}, {"slow"});
  // With another time, so that the content has to tell that the file is the same.
  write_text(path_of("one"), text_of(1, "192.0.2.99") + much_text());
  begin_slowly();
  let_go();
  ASSERT_TRUE(run_until_judged("one"));
  ASSERT_THAT(loads_.problem(live("one")), HasSubstr("exit status 1"));
  write_program("exit 0");
  slow_.let_go();
  EXPECT_TRUE(becomes("one", 1));
}

/// Else what was judged first would be served, though the file has what was served before.
TEST_F(JudgedLoads, AreLookedAtAgainIfTheVerdictComesWhileTheFileIsFoundUnchanged) {
  write("one", 1);
  configure({"one"});
  serve("one", 1);
  write("slow", 1);
  hold();
  write("one", 2, "192.0.2.2");
  EXPECT_EQ(load().being_judged, 1U);
  ASSERT_TRUE(runs("one"));
  write("one", 1);
  configure({"one"}, {program_}, {"slow"});
  begin_slowly();
  let_go();
  ASSERT_TRUE(becomes("one", 2));
  ASSERT_TRUE(run_until_judged("one"));
  slow_.let_go();
  EXPECT_TRUE(becomes("one", 3)) << "the file's serial is behind";
}

TEST_F(JudgedLoads, AreReadAgainIfALaterLookSawAnotherFile) {
  write("one", 1);
  configure({"one"});
  begin_slowly();
  EXPECT_TRUE(goes_on("one"));
  write("one", 2);
  slow_.let_go();
  EXPECT_TRUE(becomes("one", 2));
  EXPECT_TRUE(run_until_judged("one"));
  EXPECT_EQ(loader_.counters().built, 2U);
}

/// The look of an earlier load may end after that of a later one.
TEST_F(JudgedLoads, AreNotWithdrawnByAnEarlierLook) {
  write("one", 1);
  configure({"one"});
  serve("one", 1);
  write("slow", 1);
  configure({"one"}, {program_}, {"slow"});
  begin_slowly();
  hold();
  write("one", 2);
  loads_.load(runtime_, history_of(parts_), [](const Counts&) {});
  ASSERT_TRUE(runs("one"));
  slow_.let_go();
  ASSERT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_TRUE(loader_.judges(name("one")));
  let_go();
  EXPECT_TRUE(becomes("one", 2));
}

TEST_F(JudgedLoads, AreNotSupersededByAnEarlierLookAtTheSameFile) {
  write("one", 1);
  write("slow", 1);
  hold();
  configure({"one"}, {program_}, {"slow"});
  begin_slowly();
  loads_.set_verdict_time(std::chrono::minutes(10));
  const Counts later = counts_of([&](ZoneFileLoads::Done done) {
    loads_.load_some(runtime_, {name("one")}, history_of(parts_), std::move(done));
    ASSERT_TRUE(runs("one"));
    slow_.let_go();
    ASSERT_TRUE(becomes("slow", 1));
    let_go();
  });
  EXPECT_EQ(later.changed, 1U);
  EXPECT_EQ(serial("one"), 1U);
}

/// Else the answer of the later load would leave out what its program says.
TEST_F(JudgedLoads, HaveTheVerdictThatAnEarlierLooksNewerFileGets) {
  write("one", 1);
  write("slow", 1);
  hold();
  configure({"one"}, {program_}, {"slow"});
  begin_slowly();
  loads_.set_verdict_time(std::chrono::minutes(10));
  const Counts later = counts_of([&](ZoneFileLoads::Done done) {
    loads_.load_some(runtime_, {name("one")}, history_of(parts_), std::move(done));
    ASSERT_TRUE(runs("one"));
    const auto work = loader_.progress(name("one"));
    write("one", 2);
    slow_.let_go();
    ASSERT_TRUE(parts_.run_until([&] { return work->is_given_up(); }));
    let_go();
  });
  EXPECT_EQ(later.changed, 1U);
  EXPECT_EQ(serial("one"), 2U);
}

/// The earlier look has seen the file that was put back meanwhile.
TEST_F(JudgedLoads, ThatALaterLookHasFoundAgainAreNotWithdrawnByAnEarlierLook) {
  write("one", 1);
  configure({"one"});
  serve("one", 1);
  hold();
  write("one", 2, "192.0.2.2");
  EXPECT_EQ(load().being_judged, 1U);
  ASSERT_TRUE(runs("one"));
  write("one", 1);
  write("slow", 1);
  configure({"one"}, {program_}, {"slow"});
  begin_slowly();
  write("one", 2, "192.0.2.2");
  const std::uint64_t hashed = loader_.counters().hashed;
  loads_.load(runtime_, history_of(parts_), [](const Counts&) {});
  ASSERT_TRUE(parts_.run_until([&] { return loader_.counters().hashed > hashed; }));
  slow_.let_go();
  ASSERT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_TRUE(loader_.judges(name("one")));
  let_go();
  EXPECT_TRUE(becomes("one", 2));
}

}  // namespace judged_loads_test
}  // namespace pando::manager
