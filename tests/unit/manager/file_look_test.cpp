#include "manager/file_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/parts.h"

namespace pando::manager {
namespace {

using Kind = LoadOutcome::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kBasicZone;
using testing::name;
using testing::Parts;

/// A look at the file of "example.", which nobody follows up.
class Look : public ::testing::Test {
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
    zone::ZoneSource source = *stat_source(path_);
    note_content(source, read_content(path_));
    parts_.zone.commit(
        [&](zone::Draft& draft) { return draft.put_zone_source(name("@"), source); });
  }
  void unload() {
    parts_.zone.commit([](zone::Draft& draft) { return draft.unload_zone(name("@")); });
  }
  FileLook& look() {
    look_.job.apex = name("@");
    look_.job.path = path_;
    look_.history =
        std::make_shared<HistorySource>(native_files(), parts_.journal, [](const JournalNote&) {});
    look_.version = parts_.zone.snapshot();
    look_.progress = std::make_shared<LoadProgress>();
    const std::uint64_t before = parts_.zone.store().current().number;
    look_.examine(parts_.zone.store());
    EXPECT_EQ(parts_.zone.store().current().number, before) << "it puts nothing";
    return look_;
  }

  Parts parts_;
  std::string path_ = parts_.folder.path() + "/example.zone";
  FileLook look_;
};

TEST_F(Look, FindsTheNotedFileUnchanged) {
  write(kBasicZone);
  note_file();
  const FileLook& found = look();
  ASSERT_TRUE(found.outcome);
  EXPECT_EQ(found.outcome->kind, Kind::kUnchanged);
  EXPECT_EQ(found.outcome->serial, dns::Serial{10});
  EXPECT_FALSE(found.zone || found.plan);
  EXPECT_EQ(found.scanned, 0U);
}

TEST_F(Look, PlansWhatWasEdited) {
  write(kBasicZone);
  note_file();
  write(with("added 300 A 192.0.2.12"));
  const FileLook& found = look();
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.plan->kind, MergePlan::Kind::kMerge);
  EXPECT_EQ(found.plan->edit.size(), 1U);
  EXPECT_EQ(found.plan->source.hash, read_content(path_).hash);
  EXPECT_EQ(found.plan->beside, noted_source(parts_.zone.zone()));
  EXPECT_FALSE(found.outcome || found.zone || found.moved);
  EXPECT_EQ(found.scanned, 1U);
}

TEST_F(Look, BuildsAZoneWithoutDataInATransactionOfItsOwn) {
  unload();
  write(with("added 300 A 192.0.2.12"));
  const FileLook& found = look();
  EXPECT_FALSE(found.served);
  ASSERT_TRUE(found.zone && found.transaction);
  EXPECT_EQ(found.zone->records, kBasicZone.size() + 1);
  EXPECT_FALSE(found.outcome || found.plan);
}

TEST_F(Look, TellsWhatIsWrongWithAFile) {
  write(with("broken 300 A 192.0.2.999"));
  for (const bool served : {true, false}) {
    if (!served) unload();
    const FileLook& found = look();
    EXPECT_EQ(found.served, served);
    ASSERT_TRUE(found.outcome);
    EXPECT_EQ(found.outcome->kind, Kind::kFailed);
    EXPECT_THAT(found.outcome->problems, ElementsAre(HasSubstr("example.zone:11: ")));
    EXPECT_FALSE(found.plan || found.zone);
  }
}

TEST_F(Look, ForgetsWhatAnEarlierOneFound) {
  write(with("added 300 A 192.0.2.12"));
  ASSERT_TRUE(look().plan);
  note_file();
  const FileLook& found = look();
  EXPECT_FALSE(found.plan);
  ASSERT_TRUE(found.outcome);
  EXPECT_EQ(found.outcome->kind, Kind::kUnchanged);
  EXPECT_EQ(found.scanned, 1U) << "both together";
}

}  // namespace
}  // namespace pando::manager
