// Opening the data of the manager on a model of a disk. tests/crash/media_states.cpp does it in
// large numbers.

#include "manager/start/startup.h"

#include <gtest/gtest.h>

#include "manager/commit/next_version.h"
#include "manager/journal/journal_payload.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace {

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
    stop();
    config::Settings settings;
    settings.store.path = memory_->store();
    settings.store.size_limit = 64 << 20;
    settings.store.journal = kDirectory;
    settings.server.run_directory = memory_->path();
    const Host host{};
    UnreadLists lists;
    CurrentConfiguration configuration{"", must(make_runtime(std::move(settings))), 0, 0};
    Startup startup(host, configuration, lists,
                    {disk_, {"", 64 << 10, std::chrono::milliseconds(0)}});
    data_ = must(startup.open());
    if (data_->zones_missing) put_settings();
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

}  // namespace
}  // namespace pando::manager
