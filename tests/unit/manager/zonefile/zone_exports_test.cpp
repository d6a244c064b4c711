#include "manager/zonefile/zone_exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <latch>

#include "manager/journal/record/journal_payload.h"
#include "manager/merge/merge_base.h"
#include "manager/zonefile/export_file.h"
#include "manager/zonefile/zone_file.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace zone_exports_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::HasSubstr;
using testing::kinds_of;
using testing::name;
using testing::Parts;

/// "example." with a file of its own, which is older than an update.
class Exports : public ::testing::Test {
 protected:
  Exports() {
    std::ofstream(path_) << "; as the operator wrote it\n";
    note(state_of_file());
    config::Settings settings;
    settings.zones = config::ZoneTable(parts_.folder.path());
    EXPECT_TRUE(settings.zones.add(name("@"), "example.zone", settings.zones.add_options({})));
    exports_.configure(*make_runtime(std::move(settings)));
    parts_.committer.on_published([this](const PublishedVersion& version) {
      for (const JournalEntry& entry : version.records) exports_.journalled(entry);
    });
    EXPECT_TRUE(change("new"));
  }
  ~Exports() override { parts_.pool.join(); }

  zone::ZoneFileInfo state_of_file() const {
    zone::ZoneFileInfo source = *stat_source(path_);
    add_content(source, read_content(path_));
    return source;
  }
  void note(const zone::ZoneFileInfo& source) {
    const auto put = [&](zone::Draft& draft) { return draft.put_zone_source(name("@"), source); };
    EXPECT_TRUE(parts_.edit(put).has_value());
  }
  bool change(const std::string& owner) {
    return testing::update(parts_, {}, {owner + " 300 A 192.0.2.200"}).has_value();
  }
  using Outcome = std::optional<Result<ZoneExports::Exported>>;
  std::shared_ptr<Outcome> begin() {
    auto outcome = std::make_shared<Outcome>();
    exports_.write_own(name("@"), [outcome](const auto& exported) { *outcome = exported; });
    return outcome;
  }
  Result<ZoneExports::Exported> write() {
    const auto outcome = begin();
    EXPECT_TRUE(parts_.run_until([&] { return outcome->has_value(); }));
    return **outcome;
  }
  std::vector<RecordKind> journal_after(std::uint64_t position) {
    return kinds_of(parts_.journalled(position));
  }
  MergeBase state() {
    return JournalHistory::read(disk_, parts_.journal.files(), [](const JournalNote&) {})
        ->merge_base(name("@"), UINT64_MAX)
        .value();
  }
  std::string text() {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }
  bool is_base_file() {
    return same_source(parts_.zone.zone().source(), *stat_source(path_)) &&
           same_source(*state().source, *stat_source(path_));
  }

  FakeDisk disk_;  // the journal's
  Parts parts_{64 << 20, disk_};
  std::string path_ = parts_.folder.path() + "/example.zone";
  std::string beside_ = path_ + ".export";
  ZoneExports exports_{parts_.io,
                       parts_.pool,
                       native_files(),
                       parts_.committer,
                       parts_.slots,
                       [this] {
                         return std::make_shared<HistorySource>(disk_, parts_.journal,
                                                                [](const JournalNote&) {});
                       },
                       {}};
};

TEST_F(Exports, AreNotedAsTheFileThatHasAllOfTheZone) {
  const std::uint64_t before = parts_.journal.last_position();
  const auto exported = write();
  ASSERT_TRUE(exported) << exported.error().text;
  EXPECT_TRUE(exported->written);
  EXPECT_THAT(text(), HasSubstr("zone example. at serial 11\n"));
  EXPECT_THAT(text(), HasSubstr("192.0.2.200"));
  EXPECT_THAT(journal_after(before), ElementsAre(RecordKind::kBase, RecordKind::kSource));
  EXPECT_TRUE(is_base_file());
  EXPECT_FALSE(write()->written) << "nothing has changed since";
}

TEST_F(Exports, HaveUpdatesBesideThemThatCameWhileTheyWereWritten) {
  std::latch free{1};
  for (int thread = 0; thread < 2; ++thread) asio::post(parts_.pool, [&free] { free.wait(); });
  const std::uint64_t before = parts_.journal.last_position();
  const auto outcome = begin();
  EXPECT_TRUE(change("later"));
  free.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return outcome->has_value(); }));
  ASSERT_TRUE(**outcome) << (*outcome)->error().text;
  EXPECT_THAT(text(), HasSubstr("at serial 11\n"));
  EXPECT_THAT(journal_after(before), ElementsAre(RecordKind::kChangeset,
                                                 RecordKind::kDynamicChanges, RecordKind::kSource));
  const MergeBase now = state();
  EXPECT_EQ(now.file_serial, dns::Serial{11});
  EXPECT_EQ(now.serial, dns::Serial{12});
  ASSERT_EQ(now.dynamic_changes.entries().size(), 1U);
  EXPECT_EQ(now.dynamic_changes.entries().begin()->first.owner(), name("later").view());
  EXPECT_TRUE(is_base_file());
  EXPECT_TRUE(write()->written);
  EXPECT_TRUE(state().dynamic_changes.empty());
}

/// The note may still be on the disk: until another record is synced, a restart could find it.
TEST_F(Exports, StayBesideTheFileWhileNobodyKnowsWhetherTheyAreNoted) {
  disk_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kSync ? fail(Errc::kIo, "EIO") : Status();
  };
  const std::string before = text();
  EXPECT_FALSE(write());
  const auto left = stat_source(beside_);
  ASSERT_TRUE(left.has_value());
  EXPECT_FALSE(write());
  EXPECT_TRUE(same_source(*stat_source(beside_), *left)) << "not touched by another try";
  EXPECT_EQ(text(), before);
  disk_.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  ASSERT_TRUE(write());
  EXPECT_FALSE(stat_source(beside_).has_value());
  EXPECT_TRUE(is_base_file());
}

TEST_F(Exports, OfAZoneThatWasLoadedAnewMeanwhileAreThrownAway) {
  std::latch free{1};
  for (int thread = 0; thread < 2; ++thread) asio::post(parts_.pool, [&free] { free.wait(); });
  const auto outcome = begin();
  note({1, 2});
  free.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return outcome->has_value(); }));
  EXPECT_FALSE(**outcome);
  EXPECT_FALSE(stat_source(beside_).has_value());
  EXPECT_EQ(text(), "; as the operator wrote it\n");
}

TEST_F(Exports, ThatWereCutShortAreFinishedOnce) {
  const zone::StoreView version = parts_.committer.current();
  const auto written = write_export(native_files(), version.zone_at(name("@")), path_);
  ASSERT_TRUE(written) << written.error().text;
  EXPECT_FALSE(*finish_export(native_files(), path_, {1, 2})) << "not the noted file";
  EXPECT_EQ(text(), "; as the operator wrote it\n");
  EXPECT_TRUE(*finish_export(native_files(), path_, *written));
  EXPECT_TRUE(same_source(*stat_source(path_), *written));
  EXPECT_FALSE(*finish_export(native_files(), path_, *written));
}

TEST_F(Exports, ReplaceNoFileOfAnotherKind) {
  const zone::StoreView version = parts_.committer.current();
  const zone::ZoneView zone = version.zone_at(name("@"));
  const auto refused = write_zone_to(native_files(), zone, path_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExists);
  const std::string other = parts_.folder.path() + "/other.zone";
  EXPECT_TRUE(write_zone_to(native_files(), zone, other));
  EXPECT_TRUE(write_zone_to(native_files(), zone, other)) << "an export of the same zone";
}

}  // namespace zone_exports_test
}  // namespace pando::manager
