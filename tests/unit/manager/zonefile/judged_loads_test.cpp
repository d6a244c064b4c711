#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "manager/commit/zone_table_sync.h"
#include "manager/zonefile/zone_file_loads.h"
#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace judged_loads_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::history_of;
using testing::name;
using testing::Parts;

/// Zones whose files a shell script judges, which waits for as long as there is a file "hold".
class JudgedLoads : public ::testing::Test {
 protected:
  JudgedLoads() {
    std::signal(SIGPIPE, SIG_IGN);
    loads_.judge_by([this](const config::ZoneOptions& options) { return verifiers_.of(options); });
    loads_.set_verdict_time(std::chrono::milliseconds(0));
    std::ofstream(program_) << "#!/bin/sh\nzone=$(cat)\nwhile [ -e " << hold_
                            << " ]; do sleep 0.01; done\n"
                               "case \"$zone\" in *192.0.2.99*) exit 1;; esac\n";
    ::chmod(program_.c_str(), 0755);
  }
  ~JudgedLoads() override {
    loader_.stop();
    verifiers_.stop();
    parts_.pool.join();
    parts_.io.restart();
    parts_.io.poll();
  }

  std::string path_of(const std::string& zone) const {
    return parts_.folder.path() + "/of-" + (zone == "@" ? "example" : zone);
  }
  void write(const std::string& zone, int serial, const std::string& address = "192.0.2.1") {
    std::ofstream(path_of(zone)) << fmt::format(
        "$TTL 300\n@ 3600 SOA ns1 admin {} 3600 600 86400 300\n@ NS ns1\nns1 A {}\n", serial,
        address);
    std::filesystem::last_write_time(
        path_of(zone),
        std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + ++writes_)));
  }
  void hold() { std::ofstream(hold_) << "x"; }
  void let_go() { std::filesystem::remove(hold_); }
  void configure(const std::vector<std::string>& zones, const std::vector<std::string>& command) {
    config::Settings settings;
    config::ZoneOptions options;
    options.verify_command = command;
    options.verify_time = std::chrono::minutes(10);
    const auto judged = settings.zones.add_options(options);
    for (const std::string& zone : zones)
      EXPECT_TRUE(settings.zones.add(name(zone), path_of(zone), judged));
    runtime_ = make_runtime(std::move(settings)).value();
    bool done = false;
    ZoneTableSync::run(parts_.zone.store(), parts_.committer, runtime_,
                       [&](const Status& status, const ZoneTableSync::Counts& counts) {
                         EXPECT_TRUE(status.has_value());
                         loads_.recounted(counts.loaded);
                         done = true;
                       });
    EXPECT_TRUE(parts_.run_until([&] { return done; }));
  }
  void configure(const std::vector<std::string>& zones) { configure(zones, {program_}); }
  ZoneFileLoads::Counts load() {
    std::optional<ZoneFileLoads::Counts> counts;
    loads_.load(runtime_, history_of(parts_),
                [&](const ZoneFileLoads::Counts& found) { counts = found; });
    EXPECT_TRUE(parts_.run_until([&] { return counts.has_value(); }));
    return counts.value_or(ZoneFileLoads::Counts{});
  }
  ZoneFileLoads::Counts load_some(const std::vector<dns::Name>& zones) {
    std::optional<ZoneFileLoads::Counts> counts;
    loads_.load_some(runtime_, zones, history_of(parts_),
                     [&](const ZoneFileLoads::Counts& found) { counts = found; });
    EXPECT_TRUE(parts_.run_until([&] { return counts.has_value(); }));
    return counts.value_or(ZoneFileLoads::Counts{});
  }
  bool run_until_judged(const std::string& zone) {
    return parts_.run_until([&] { return !loader_.judges(name(zone)); });
  }
  bool runs(const std::string& zone) {
    return parts_.run_until([&] { return verifiers_.under_way(name(zone)).has_value(); });
  }
  std::uint32_t serial(const std::string& zone) {
    version_ = parts_.committer.current();
    const zone::ZoneView view = version_.zone_at(name(zone));
    return view && view.loaded() ? view.serial().value : 0;
  }
  bool becomes(const std::string& zone, std::uint32_t wanted) {
    return parts_.run_until([&] { return serial(zone) == wanted; });
  }

  Parts parts_;
  const std::string program_ = parts_.folder.path() + "/judge";
  const std::string hold_ = parts_.folder.path() + "/hold";
  ZoneVerifiers verifiers_{{}};
  LargeChangesets changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                           parts_.slots, parts_.committer, {}};
  ZoneLoader loader_{parts_.io,    parts_.pool,      2,        parts_.zone.store(),
                     parts_.slots, parts_.committer, changes_, {}};
  ZoneCopies copies_{parts_.io,        parts_.pool,  native_files(),
                     parts_.committer, parts_.slots, parts_.folder.path()};
  ZoneFileLoads loads_{loader_, copies_, parts_.committer, [](const dns::Name&) {}};
  RuntimePtr runtime_;
  zone::StoreView version_;
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

}  // namespace judged_loads_test
}  // namespace pando::manager
