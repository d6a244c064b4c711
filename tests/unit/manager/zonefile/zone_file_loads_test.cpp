#include "manager/zonefile/zone_file_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zonefile/zone_table_fixture.h"

namespace pando::manager {
namespace zone_file_loads_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::history_of;
using ::testing::IsEmpty;
using testing::name;

constexpr const char* kBroken = "@ 300 SOA ns1 admin 10 3600 600 86400 300\n@ 300 A 192.0.2.300\n";

/// Loads of the configured zones' files, and the counts that they end with.
class Loads : public testing::ZoneTableLoads {
 protected:
  struct Entry {
    std::string zone;
    bool is_secondary = false;
  };
  void write(const std::string& zone, const std::string& text = testing::kFile) {
    std::ofstream(path_of(zone)) << text;
  }
  RuntimePtr configure(const std::vector<Entry>& entries) {
    config::Settings settings;
    for (const Entry& entry : entries) {
      config::ZoneOptions options;
      if (entry.is_secondary) options.primaries = {"primary"};
      add_zone(settings, entry.zone, settings.zones.add_options(options));
    }
    return bring_in_line(std::move(settings));
  }
  Counts load(const RuntimePtr& runtime) {
    Counts counts = load_for(runtime);
    EXPECT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
    return counts;
  }
  Counts load(const std::vector<Entry>& entries) { return load(configure(entries)); }
  std::string problem(const std::string& zone) { return loads_.problem(live(zone)); }
  /// Until neither a version nor a task of the pool is left that could bring a copy.
  void finish() {
    parts_.pool.join();
    parts_.io.restart();
    parts_.io.poll();
  }
};

TEST_F(Loads, GoThroughAllZonesAndTellOfSecondariesEach) {
  for (const char* zone : {"one", "two", "three"}) write(zone);
  const RuntimePtr runtime = configure({{"one"}, {"two", true}, {"three"}, {"four", true}});
  EXPECT_FALSE(loads_.settled());
  EXPECT_TRUE(loads_.under_way()) << "nothing was checked";
  EXPECT_EQ(loads_.loaded(), 0U);
  const ZoneFileLoads::Counts counts = load(runtime);
  EXPECT_TRUE(loads_.settled());
  EXPECT_FALSE(loads_.under_way());
  EXPECT_EQ(counts.changed, 3U);
  EXPECT_EQ(counts.failed, 0U) << "a secondary may have no copy";
  EXPECT_EQ(loads_.loaded(), 3U);
  for (const char* zone : {"one", "two", "three"}) EXPECT_TRUE(live(zone).loaded()) << zone;
  EXPECT_FALSE(live("four").loaded());
  EXPECT_THAT(checked_, ::testing::UnorderedElementsAre("two.example.", "four.example."));
}

TEST_F(Loads, AreTheFirstOnce) {
  write("one");
  EXPECT_TRUE(load({{"one"}}).is_first);
  const ZoneFileLoads::Counts again = load({{"one"}});
  EXPECT_FALSE(again.is_first);
  EXPECT_EQ(again.changed, 0U);
  EXPECT_EQ(loads_.loaded(), 1U);
}

TEST_F(Loads, BehindOthersEndAfterThem) {
  write("one");
  write("two");
  const RuntimePtr first = configure({{"one"}, {"two", true}});
  const RuntimePtr second = configure({{"one"}, {"two", true}, {"three", true}});
  std::vector<bool> is_first;
  for (const RuntimePtr& runtime : {first, second})
    loads_.load(runtime, history_of(parts_),
                [&](const ZoneFileLoads::Counts& counts) { is_first.push_back(counts.is_first); });
  ASSERT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_THAT(is_first, ElementsAre(true, false));
}

TEST_F(Loads, OfWrongFilesLeaveAProblemUntilTheFileIsMended) {
  write("one");
  write("two", kBroken);
  const ZoneFileLoads::Counts counts = load({{"one"}, {"two"}});
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.changed, 1U);
  EXPECT_THAT(counts.problems, ElementsAre(HasSubstr("two.example.: " + path_of("two") + ":2")));
  EXPECT_TRUE(loads_.settled()) << "it was checked";
  EXPECT_TRUE(loads_.has_problem(live("two")));
  EXPECT_THAT(problem("two"), HasSubstr(path_of("two") + ":2"));
  EXPECT_EQ(problem("one"), "");
  write("two");
  EXPECT_EQ(load({{"one"}, {"two"}}).failed, 0U);
  EXPECT_FALSE(loads_.has_problem(live("two")));
  EXPECT_EQ(loads_.loaded(), 2U);
}

TEST_F(Loads, TellTheFirstProblemsAndCountAll) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < ZoneFileLoads::kMaxProblems + 5; ++i)
    entries.push_back({"zone" + std::to_string(i)});  // without a file
  const ZoneFileLoads::Counts counts = load(entries);
  EXPECT_EQ(counts.failed, entries.size());
  EXPECT_EQ(counts.problems.size(), ZoneFileLoads::kMaxProblems);
  for (const Entry& entry : entries) EXPECT_NE(problem(entry.zone), "") << entry.zone;
}

TEST_F(Loads, AreMadeUpForByATransfer) {
  write("one", kBroken);
  load({{"one", true}});
  ASSERT_NE(problem("one"), "");
  loads_.transferred(name("one"), false);
  EXPECT_EQ(problem("one"), "");
  EXPECT_EQ(loads_.loaded(), 1U);
  loads_.transferred(name("one"), true);
  EXPECT_EQ(loads_.loaded(), 1U) << "it had data before";
}

TEST_F(Loads, OfCopiesAloneAreNoLoadsOfAllZones) {
  write("one");
  const RuntimePtr runtime = configure({{"one"}, {"two", true}});
  loads_.load_copies(runtime, history_of(parts_));
  ASSERT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_THAT(checked_, ElementsAre("two.example."));
  EXPECT_FALSE(loads_.settled());
  EXPECT_FALSE(live("one").loaded());
}

TEST_F(Loads, WriteTheCopyThatASecondaryLacks) {
  load({{"@", true}});
  ASSERT_TRUE(parts_.run_until([&] { return copies_.written() == 1; }));
  EXPECT_TRUE(parts_.run_until([&] { return live("@").source().file_mtime_ns != 0; }));
  load({{"@", true}});
  finish();
  EXPECT_EQ(copies_.written(), 1U) << "it is noted";
}

TEST_F(Loads, OfAStoreThatMayBeDamagedWriteNoCopyBeforeItIsKnown) {
  loads_.hold_copies();
  load({{"@", true}});
  ASSERT_EQ(live("@").source().file_mtime_ns, 0);
  EXPECT_FALSE(std::filesystem::exists(path_of("@")));
  loads_.release_copies();
  ASSERT_TRUE(parts_.run_until([&] { return copies_.written() == 1; }));
  EXPECT_TRUE(std::filesystem::exists(path_of("@")));
}

/// The job of the copy is there still when a reload has made its zone primary; the file of that one
/// is checked by a job of its own.
TEST_F(Loads, OfACopySayNothingOfAZoneThatHasBecomePrimary) {
  write("one", kBroken);
  load({{"one"}});
  const std::string of_the_file = problem("one");
  ASSERT_NE(of_the_file, "");
  const RuntimePtr before = configure({{"one", true}});
  configure({{"one"}});
  write("one", "nothing of a zone");
  loads_.load_copies(before, history_of(parts_));
  ASSERT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_EQ(problem("one"), of_the_file);
}

TEST_F(Loads, OfAZoneThatTheStoreHadNoRoomForAskNoPrimary) {
  const RuntimePtr all = configure({{"one", true}, {"two", true}});
  configure({{"one", true}});
  load(all);
  EXPECT_THAT(checked_, ElementsAre("one.example."));
}

TEST_F(Loads, WriteNoCopyOverTheFileOfAZoneThatHasBecomePrimary) {
  loads_.hold_copies();
  load({{"@", true}});
  configure({{"@"}});
  loads_.release_copies();
  finish();
  EXPECT_EQ(copies_.written() + copies_.failures(), 0U);
  EXPECT_FALSE(std::filesystem::exists(path_of("@")));
}

TEST_F(Loads, OfSomeZonesLeaveTheOthers) {
  for (const char* zone : {"one", "two", "three"}) write(zone);
  write("four", kBroken);
  const RuntimePtr runtime = configure({{"one"}, {"two", true}, {"three"}, {"four"}});
  const Counts counts =
      load_some_for(runtime, {name("one"), name("two"), name("four"), name("gone")});
  ASSERT_TRUE(parts_.run_until([&] { return loader_.idle(); }));
  EXPECT_EQ(counts.changed, 2U);
  EXPECT_EQ(counts.failed, 1U);
  ASSERT_EQ(counts.failures.size(), 1U);
  EXPECT_EQ(to_text(counts.failures[0].first), "four.example.");
  EXPECT_THAT(counts.failures[0].second, HasSubstr("192.0.2.300"));
  EXPECT_EQ(counts.changed_zones.size(), 2U);
  EXPECT_FALSE(counts.is_first);
  EXPECT_FALSE(loads_.settled()) << "the others were not checked";
  EXPECT_FALSE(live("three").loaded());
  EXPECT_THAT(checked_, ElementsAre("two.example."));
  EXPECT_EQ(loads_.loaded(), 2U);
  EXPECT_TRUE(load(runtime).is_first);
}

}  // namespace zone_file_loads_test
}  // namespace pando::manager
