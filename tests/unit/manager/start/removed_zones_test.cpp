#include "manager/start/removed_zones.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "manager/journal/journal_snapshot.h"
#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"

namespace pando::manager {
namespace removed_zones_test {

using std::chrono::hours;
using std::chrono::steady_clock;
using testing::name;
using testing::Parts;

constexpr std::uint64_t kLeft = 1'000'000;  // when the zone left

/// "example.", which is configured nowhere, leaves the store.
class Removed : public ::testing::Test {
 protected:
  void update() {
    ASSERT_TRUE(
        testing::update(parts_, {}, {fmt::format("u{} 60 A 192.0.2.9", ++updates_)}).has_value());
  }
  void leave(std::uint64_t time = kLeft) {
    ASSERT_TRUE(parts_
                    .commit([&](Stage& stage) -> Status {
                      const dns::Serial serial = parts_.zone.zone().serial();
                      if (time != 0)
                        stage.journal.push_back(removed_entry(name("@"), serial, time));
                      return stage.draft.remove_zone(name("@"));
                    })
                    .has_value());
  }
  std::uint64_t look(const RuntimePtr& runtime) {
    std::optional<std::uint64_t> found;
    removed_.look(runtime, testing::history_of(parts_), [&](std::uint64_t n) { found = n; });
    EXPECT_TRUE(parts_.run_until([&] { return found.has_value(); }));
    return *found;
  }
  std::uint64_t look() { return look(shm::test::must(make_runtime({}))); }
  Status purge() {
    std::optional<Status> done;
    removed_.purge(name("@"), [&](const Status& status) { done = status; });
    EXPECT_TRUE(parts_.run_until([&] { return done.has_value(); }));
    return *done;
  }
  std::shared_ptr<const JournalHistory> journal() {
    return JournalHistory::read(parts_.files, parts_.journal.files(), [](const JournalNote&) {});
  }
  void compact() {
    parts_.journal.seal();
    const JournalFiles sealed = parts_.journal.sealed_files();
    const std::uint64_t position = parts_.committer.position();
    const auto path = shm::test::must(write_snapshot(
        parts_.files, parts_.journal.directory(), sealed, parts_.committer.current(), position));
    ASSERT_TRUE(parts_.journal.replace_by_snapshot(path, position, sealed).has_value());
  }

  Parts parts_;
  RemovedZones removed_{parts_.io, parts_.pool, parts_.committer, parts_.journal.directory()};
  int updates_ = 0;
};

TEST_F(Removed, AZoneWithUpdatesIsListedWithItsSerial) {
  update();
  update();
  const dns::Serial serial = parts_.zone.zone().serial();
  EXPECT_EQ(look(), 0U) << "it is still served";
  leave();
  EXPECT_EQ(look(), 1U);
  const RemovedZones::Zone& zone = removed_.zones().at(name("@"));
  EXPECT_EQ(zone.serial, serial);
  EXPECT_EQ(zone.removed_at, kLeft);
  EXPECT_EQ(zone.updates, 2U);
  EXPECT_EQ(look(), 0U) << "none is new";
}

TEST_F(Removed, AZoneWithoutUpdatesLeavesNothing) {
  leave();
  EXPECT_EQ(look(), 0U);
  EXPECT_TRUE(removed_.zones().empty());
  EXPECT_FALSE(journal()->knows(name("@")));
}

TEST_F(Removed, AZoneWhoseFileHasAllOfItLeavesNothing) {
  update();
  ASSERT_TRUE(parts_
                  .commit([&](Stage& stage) -> Status {
                    stage.journal.push_back(base_entry(parts_.zone.zone()));
                    return {};
                  })
                  .has_value());
  leave();
  EXPECT_EQ(look(), 0U);
  EXPECT_TRUE(parts_.run_until([&] { return !journal()->knows(name("@")); }));
}

/// The lost records may have had updates, and serials that other data may not have.
TEST_F(Removed, AZoneWhoseFileHasAllOfItIsKeptIfTheJournalHasLostItsEnd) {
  update();
  ASSERT_TRUE(parts_
                  .commit([&](Stage& stage) -> Status {
                    stage.journal.push_back(base_entry(parts_.zone.zone()));
                    return {};
                  })
                  .has_value());
  const JournalFiles::Segment end = parts_.journal.files().segments.back();
  update();
  leave();
  parts_.journal.seal();
  std::filesystem::resize_file(end.path, end.bytes);
  parts_.journal = shm::test::must(
      Journal::open({parts_.journal.directory()}, parts_.files, [](const JournalNote&) {}));
  parts_.journal.store_is_at(parts_.committer.position());
  EXPECT_EQ(look(), 1U);
  EXPECT_EQ(removed_.zones().at(name("@")).updates, std::nullopt) << "nobody knows";
}

TEST_F(Removed, CompactionKeepsTheRecords) {
  update();
  leave();
  for (int i = 0; i < 2; ++i) {
    compact();
    EXPECT_EQ(journal()->removed_at(name("@")), kLeft);
    EXPECT_EQ(shm::test::must(journal()->merge_base(name("@"), UINT64_MAX))
                  .dynamic_changes.entries()
                  .size(),
              1U);
  }
  look();
  EXPECT_EQ(removed_.zones().size(), 1U);
}

TEST_F(Removed, TheTimeBeginsWhenTheJournalLearnsOfIt) {
  update();
  leave(0);
  EXPECT_EQ(look(), 1U);
  EXPECT_TRUE(parts_.run_until([&] { return journal()->removed_at(name("@")).has_value(); }));
  EXPECT_EQ(journal()->removed_at(name("@")), removed_.zones().at(name("@")).removed_at);
  EXPECT_GT(removed_.zones().at(name("@")).removed_at, kLeft);
}

TEST_F(Removed, APurgedZoneIsGoneForGood) {
  update();
  EXPECT_EQ(purge().error().code, Errc::kExists) << "it is served";
  leave();
  look();
  ASSERT_TRUE(purge().has_value());
  EXPECT_TRUE(removed_.zones().empty());
  testing::open_journal_again(parts_);
  EXPECT_FALSE(journal()->knows(name("@")));
  EXPECT_EQ(purge().error().code, Errc::kNotFound);
}

TEST_F(Removed, AZoneIsDroppedAfterTheLimitButNotInTheFirstHour) {
  update();
  leave();
  look();
  const auto start = steady_clock::now();
  const auto drop = [&](steady_clock::duration uptime, std::uint64_t age, hours limit) {
    removed_.drop_old(start + uptime, kLeft + age, limit);
    std::optional<Status> passed;
    parts_.committer.edit([](zone::Draft&) { return Status(); },
                          [&](const Status& status) { passed = status; });
    EXPECT_TRUE(parts_.run_until([&] { return passed.has_value(); }));
  };
  drop(hours(0), 100'000'000, hours(1));
  EXPECT_EQ(removed_.zones().size(), 1U) << "the clock may be wrong";
  drop(hours(2), 100'000'000, hours(0));
  EXPECT_EQ(removed_.zones().size(), 1U) << "never by time";
  drop(hours(2), 3600, hours(1));
  EXPECT_EQ(removed_.zones().size(), 1U) << "not yet";
  drop(hours(4), 3601, hours(1));
  EXPECT_TRUE(removed_.zones().empty());
  EXPECT_FALSE(journal()->knows(name("@")));
}

TEST_F(Removed, AZoneThatCameBackIsNoLongerListed) {
  update();
  leave();
  look();
  config::Settings settings;
  const auto options = settings.zones.add_options({});
  ASSERT_TRUE(settings.zones.add(name("@"), "", options).has_value());
  EXPECT_EQ(look(shm::test::must(make_runtime(std::move(settings)))), 0U);
  EXPECT_TRUE(removed_.zones().empty());
  EXPECT_TRUE(journal()->knows(name("@")));
}

}  // namespace removed_zones_test
}  // namespace pando::manager
