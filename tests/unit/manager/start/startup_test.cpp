// Opening the data of the manager on a model of a disk. tests/crash/media_states.cpp does it in
// large numbers.

#include "manager/start/startup.h"

#include <gtest/gtest.h>

#include "manager/commit/next_version.h"
#include "manager/journal/journal_snapshot.h"
#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/zone_support.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace startup_test {

using shm::test::must;
using testing::FakeDisk;
using testing::kBasicZone;
using testing::name;

constexpr const char* kDirectory = "/disk/journal";

class StartupOnADisk : public ::testing::Test {
 protected:
  StartupOnADisk() { start(); }
  ~StartupOnADisk() override { stop(); }

  void stop() {
    if (!data_) return;
    data_->store->set_slots(nullptr);
    data_.reset();
  }
  /// The host has lost its memory, and with it the live store.
  void lose_memory() {
    stop();
    memory_ = std::make_unique<shm::test::Folder>();
  }
  void start() {
    auto opened = open();
    ASSERT_TRUE(opened) << opened.error().text;
  }
  Status open() {
    stop();
    config::Settings settings;
    settings.store.path = memory_->store();
    settings.store.size_limit = 64 << 20;
    settings.store.journal = directory_;
    settings.server.run_directory = memory_->path();
    const Host host{};
    UnreadLists lists;
    CurrentConfiguration configuration{"", must(make_runtime(std::move(settings))), 0, 0};
    Startup startup(host, configuration, lists,
                    {disk_, {"", 64 << 10, std::chrono::milliseconds(0)}});
    auto opened = startup.open();
    if (!opened) return pass(opened);
    data_ = std::move(*opened);
    if (data_->zones_missing) put_settings();
    return {};
  }
  [[nodiscard]] std::string identity() const { return directory_ + "/identity"; }
  int records() {
    int found = 0;
    const auto count = [&](JournalRecord&&) -> Status {
      ++found;
      return {};
    };
    must(for_each_record(disk_, journal().files(), 0, count, [](const JournalNote&) {}));
    return found;
  }
  void put_settings() {
    NextVersion next(*data_->store, NextVersion::Step::kCommit);
    zone::ZoneSettings settings;
    settings.allow_update.emplace_back();
    must(next.draft().put_zone_settings(name("@"), settings, 0));
    must(next.draft().put_server_settings({}));
    must(next.publish(data_->store->current().journal_position));
  }
  void load_zone() {
    NextVersion next(*data_->store, NextVersion::Step::kCommit);
    zone::ZoneBuilder builder(name("@"), next.transaction());
    for (const std::string& line : kBasicZone) {
      const zone::Record one = testing::record(line);
      must(builder.add(one.owner, one.type, one.ttl, one.rdata));
    }
    must(next.draft().put_zone(name("@"), *must(builder.finish()), {}));
    must(next.publish(data_->store->current().journal_position));
  }
  /// An acknowledged update; its position.
  std::uint64_t update() {
    NextVersion next(*data_->store, NextVersion::Step::kCommit);
    const std::uint32_t serial = zone().serial().value;
    const auto soa = [](std::uint32_t number) {
      return testing::record(fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", number));
    };
    const auto added = testing::record(fmt::format("new{} 60 A 192.0.2.1", serial));
    const auto applied =
        must(next.draft().apply({name("@"), {soa(serial)}, {soa(serial + 1), added}}, {}));
    const auto position = must(journal().append(std::vector<JournalEntry>{
        {name("@"), applied.from, applied.to, zone::encode(applied.effective)}}));
    must(next.publish(position));
    return position;
  }
  /// The zone leaves the configuration.
  void leave() {
    NextVersion next(*data_->store, NextVersion::Step::kCommit);
    const std::vector<JournalEntry> gone = {removed_entry(name("@"), zone().serial(), 1)};
    must(next.draft().remove_zone(name("@")));
    must(next.publish(must(journal().append(gone))));
  }
  void compact() {
    journal().seal();
    const std::uint64_t position = data_->store->current().journal_position;
    const JournalFiles sealed = journal().sealed_files();
    const std::string path = must(write_snapshot(disk_, directory_, sealed, version(), position));
    must(journal().replace_by_snapshot(path, position, sealed));
  }
  /// The last segment has zeros from this offset on.
  void lose_end(std::uint64_t from) {
    const std::string path = journal().files().segments.back().path;
    stop();
    Bytes& bytes = disk_.contents(path);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(), std::uint8_t{0});
  }
  /// An update of the zone, then one more with the zone's leaving, which the journal has lost.
  void leave_behind_the_lost_end() {
    load_zone();
    update();
    const std::uint64_t end = journal().files().segments.back().bytes;
    update();
    leave();
    lose_end(end);
  }
  /// `files` tell that the zone, if it comes back, must not go on at a serial that it has had.
  void expect_doubt(const JournalFiles& files) {
    const auto history = JournalHistory::read(disk_, files, [](const JournalNote&) {});
    EXPECT_TRUE(history->may_have_lost(name("@")));
    EXPECT_GT(history->unused_serial(name("@"), dns::Serial{10}).value, 12U);
  }
  void break_segments() {
    disk_.unreadable = [](const std::string& path, std::uint64_t, std::uint64_t) {
      return path.ends_with(".journal");
    };
  }
  Journal& journal() { return *data_->journal; }
  zone::StoreView version() {
    const shm::VersionInfo now = data_->store->current();
    return {data_->store->window(), now.root, now.number};
  }
  zone::ZoneView zone() { return version().zone_at(name("@")); }

  std::string directory_ = kDirectory;
  FakeDisk disk_;
  std::unique_ptr<shm::test::Folder> memory_ = std::make_unique<shm::test::Folder>();
  std::unique_ptr<OpenedData> data_;
};

TEST_F(StartupOnADisk, ALiveStoreWithAllZonesHasWhatCannotBeRead) {
  load_zone();
  update();
  break_segments();
  start();
  EXPECT_FALSE(journal().health().has_durable_end());
  EXPECT_TRUE(journal().health().has_gap_to_close());
}

/// The store was made while the journal could not be read, so the zone's updates are there alone.
TEST_F(StartupOnADisk, ALiveStoreWhoseZoneWaitsDoesNotHaveWhatCannotBeRead) {
  load_zone();
  const std::uint64_t position = update();
  break_segments();
  lose_memory();
  start();
  EXPECT_FALSE(journal().health().has_durable_end());
  start();
  EXPECT_FALSE(data_->zones_missing);
  EXPECT_FALSE(journal().health().has_gap_to_close())
      << "a snapshot would take the place of the updates";
  disk_.unreadable = {};
  ASSERT_TRUE(journal().append({}));
  EXPECT_EQ(journal().last_position(), position);
  EXPECT_FALSE(is_void(journal().files(), position));
}

/// The live store has no data of the zone. Its position tells that the journal's end is missing.
TEST_F(StartupOnADisk, ARemovedZoneMayHaveHadRecordsInTheJournalsLostEnd) {
  leave_behind_the_lost_end();
  start();
  EXPECT_TRUE(journal().health().lacks_records());
  expect_doubt(journal().files());
  expect_doubt(journal().sealed_files());
  compact();
  EXPECT_FALSE(journal().health().lacks_records());
  expect_doubt(journal().files());
}

/// The header of a segment without records tells of the gap, and such a segment is left out of a
/// snapshot's sources.
TEST_F(StartupOnADisk, ALostEndIsMissingAlsoBeforeAnEmptySegment) {
  leave_behind_the_lost_end();
  start();
  must(journal().begin_segment());
  start();
  expect_doubt(journal().files());
  expect_doubt(journal().sealed_files());
  compact();
  expect_doubt(journal().files());
}

TEST_F(StartupOnADisk, ALostEndIsFoundWhenAnUnreadableJournalCanBeRead) {
  leave_behind_the_lost_end();
  break_segments();
  start();
  EXPECT_FALSE(journal().health().lacks_records()) << "nobody knows where it ends";
  disk_.unreadable = {};
  must(journal().append({}));
  EXPECT_TRUE(journal().health().lacks_records());
  expect_doubt(journal().files());
}

/// The store at store.path may belong to another journal. The journal's own files tell.
TEST_F(StartupOnADisk, ADamagedIdentityIsNotTakenFromAnotherJournalsStore) {
  load_zone();
  update();
  const Bytes before = disk_.contents(identity());
  directory_ = "/disk/other";
  lose_memory();
  start();
  load_zone();
  update();
  stop();
  directory_ = kDirectory;
  disk_.contents(identity()).clear();
  const auto refused = open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text.find("belongs to the journal in another folder"),
            std::string::npos);
  EXPECT_EQ(disk_.contents(identity()), before);
  lose_memory();
  start();
  EXPECT_EQ(records(), 1);
}

TEST_F(StartupOnADisk, AMissingIdentityComesFromTheJournalsFiles) {
  load_zone();
  update();
  const Bytes before = disk_.contents(identity());
  for (const bool is_live : {true, false}) {
    must(disk_.remove(identity()));
    if (!is_live) lose_memory();
    start();
    EXPECT_EQ(data_->zones_missing, !is_live);
    EXPECT_EQ(disk_.contents(identity()), before);
    EXPECT_EQ(records(), 1);
  }
}

TEST_F(StartupOnADisk, ASnapshotHasTheIdentityToo) {
  load_zone();
  update();
  const Bytes before = disk_.contents(identity());
  compact();
  ASSERT_TRUE(journal().files().segments.empty());
  lose_memory();
  disk_.contents(identity())[3] ^= 1;
  start();
  EXPECT_EQ(disk_.contents(identity()), before);
}

/// It may have records of a zone that left the configuration, which the live store has not.
TEST_F(StartupOnADisk, AnUnreadSnapshotIsKeptBesideANewOneOfItsPosition) {
  load_zone();
  update();
  compact();
  const std::uint64_t position = data_->store->current().journal_position;
  const JournalFiles sealed = journal().sealed_files();
  const std::string path = must(write_snapshot(disk_, directory_, sealed, version(), position,
                                               JournalHistory::Unreadable::kDamage));
  must(journal().replace_by_snapshot(path, position, sealed, Journal::Replaced::kKept));
  EXPECT_TRUE(disk_.has(sealed.snapshot + ".unread"));
  EXPECT_EQ(journal().files().health.replaced().files, 1U);
  update();
  lose_memory();
  start();
  const auto history = JournalHistory::read(disk_, journal().files(), [](const JournalNote&) {});
  EXPECT_FALSE(history->damaged());
  EXPECT_EQ(history->highest_serial(name("@")), dns::Serial{12});
}

/// The host's next restart would take such a journal away, which `status` tells.
TEST_F(StartupOnADisk, AJournalInMemoryIsTold) {
  EXPECT_FALSE(data_->journal_in_memory);
  lose_memory();
  directory_ = memory_->path();
  start();
  EXPECT_TRUE(data_->journal_in_memory);
}

/// No store and no image refers to it, and updates may not be lost for it.
TEST_F(StartupOnADisk, AnIdentityThatNothingKnowsIsMadeAnew) {
  stop();
  lose_memory();
  const Bytes before = disk_.contents(identity());
  disk_.contents(identity())[3] ^= 1;
  start();
  EXPECT_NE(disk_.contents(identity()), before);
  EXPECT_TRUE(disk_.has(identity() + ".damaged"));
}

}  // namespace startup_test
}  // namespace pando::manager
