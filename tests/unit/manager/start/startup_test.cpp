// Opening the data of the manager on a model of a disk. tests/crash/media_states.cpp does it in
// large numbers.

#include "manager/start/startup.h"

#include <gtest/gtest.h>

#include "manager/commit/next_version.h"
#include "manager/journal/journal_payload.h"
#include "manager/journal/journal_snapshot.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/zone_support.h"

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
    const auto soa = [](int serial) {
      return testing::record(fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial));
    };
    const auto applied = must(next.draft().apply(
        {name("@"), {soa(10)}, {soa(11), testing::record("new 60 A 192.0.2.1")}}, {}));
    const auto position = must(journal().append(std::vector<JournalEntry>{
        {name("@"), applied.from, applied.to, zone::encode(applied.effective)}}));
    must(next.publish(position));
    return position;
  }
  void break_segments() {
    disk_.unreadable = [](const std::string& path, std::uint64_t, std::uint64_t) {
      return path.ends_with(".journal");
    };
  }
  Journal& journal() { return *data_->journal; }

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
  EXPECT_FALSE(journal().is_secured());
  EXPECT_TRUE(journal().has_gap_to_close());
}

/// The store was made while the journal could not be read, so the zone's updates are there alone.
TEST_F(StartupOnADisk, ALiveStoreWhoseZoneWaitsDoesNotHaveWhatCannotBeRead) {
  load_zone();
  const std::uint64_t position = update();
  break_segments();
  lose_memory();
  start();
  EXPECT_FALSE(journal().is_secured());
  start();
  EXPECT_FALSE(data_->zones_missing);
  EXPECT_FALSE(journal().has_gap_to_close()) << "a snapshot would take the place of the updates";
  disk_.unreadable = {};
  ASSERT_TRUE(journal().append({}));
  EXPECT_EQ(journal().last_position(), position);
  EXPECT_FALSE(is_void(journal().files(), position));
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
  journal().seal();
  const Bytes before = disk_.contents(identity());
  const shm::VersionInfo now = data_->store->current();
  const JournalFiles sealed = journal().sealed_files();
  const zone::StoreView version(data_->store->window(), now.root, now.number);
  const std::string path =
      must(write_snapshot(disk_, directory_, sealed, version, now.journal_position));
  must(journal().replace_by_snapshot(path, now.journal_position, sealed));
  ASSERT_TRUE(journal().files().segments.empty());
  lose_memory();
  disk_.contents(identity())[3] ^= 1;
  start();
  EXPECT_EQ(disk_.contents(identity()), before);
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
