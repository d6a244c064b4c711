#include "manager/journal/snapshot_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "manager/journal/journal_history.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/journal/snapshot_maker.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace snapshot_file_test {

using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::record;

constexpr const char* kPath = "/journal/0000000000000014.snapshot";
constexpr std::uint64_t kPosition = 20;

/// A snapshot of some zones, with two records and a note each.
class JournalSnapshot : public ::testing::Test {
 protected:
  JournalSnapshot() {
    std::vector<zone::DumpItem> items;
    for (const char* zone : kZones) {
      items.emplace_back(testing::whole_zone(name(zone), kSerial, 2));
      zone::DumpPart part{{name(zone), {}, {}}};
      for (const int host : {1, 2}) {
        part.records.added.push_back(record(fmt::format("x 60 A 192.0.2.{}", host)));
        part.records.added.back().owner = dns::HeapName(name(zone));
      }
      items.emplace_back(std::move(part));
      items.emplace_back(note_of(dynamic_changes_entry(name(zone), {1}, {kSerial}, {})));
      items.emplace_back(zone::DumpZoneEnd{});
    }
    sound_ = testing::snapshot_of(kPosition, items);
    put(sound_);
  }
  void put(const Bytes& bytes) { ASSERT_TRUE(write_file_atomically(disk_, kPath, bytes)); }
  std::shared_ptr<const JournalHistory> read() {
    JournalFiles files;
    files.snapshot = kPath;
    files.snapshot_position = kPosition;
    return JournalHistory::read(disk_, files, [](const JournalNote&) {});
  }
  /// Zones of which all is there.
  static std::size_t whole_zones(const JournalHistory& history) {
    std::size_t found = 0;
    for (const char* zone : kZones) {
      std::size_t records = 0;
      const auto counted = history.for_each_base_record(name(zone), [&](const zone::Record&) {
        ++records;
        return Status();
      });
      const auto state = history.merge_base(name(zone), UINT64_MAX);
      const bool is_whole = counted && records == 2 && state && state->dynamic_changes.known();
      EXPECT_TRUE(is_whole || !history.has_whole(name(zone)));
      found += is_whole ? 1 : 0;
    }
    return found;
  }

  static constexpr std::array kZones = {"a", "b", "c", "d"};
  static constexpr std::uint32_t kSerial = 9;
  FakeDisk disk_;
  Bytes sound_;
};

TEST_F(JournalSnapshot, GivesWhatWasWritten) {
  const auto history = read();
  EXPECT_FALSE(history->damaged());
  EXPECT_EQ(whole_zones(*history), kZones.size());
  EXPECT_EQ(history->merge_base(name("c"), UINT64_MAX)->serial, dns::Serial{kSerial});
}

TEST_F(JournalSnapshot, ADamagedByteCostsAtMostTheZoneOfIt) {
  for (std::size_t at = 0; at < sound_.size(); ++at) {
    Bytes bytes = sound_;
    bytes[at] ^= 0x41;
    disk_.contents(kPath) = bytes;
    const auto history = read();
    const std::size_t whole = whole_zones(*history);
    ASSERT_GE(whole, kZones.size() - 1) << "byte " << at;
    ASSERT_EQ(whole == kZones.size(), !history->damaged()) << "byte " << at;
    if (whole == kZones.size()) continue;
    for (const char* zone : kZones) {
      ASSERT_TRUE(history->knows(name(zone))) << "byte " << at;
      ASSERT_NE(history->has_whole(name(zone)), history->may_have_lost(name(zone)));
      ASSERT_TRUE(history->unused_serial(name(zone), {2}).ahead_of({kSerial}))
          << "the serial of a damaged zone is known";
    }
  }
}

TEST_F(JournalSnapshot, AnUnreadableZoneIsNotLostAndTheOthersAreThere) {
  const auto opened = SnapshotFile::open(disk_, kPath);
  ASSERT_TRUE(opened.has_value());
  const std::uint64_t bad = opened->zones().places[1].offset + 40;
  disk_.unreadable = [&](const std::string&, std::uint64_t from, std::uint64_t to) {
    return from <= bad && bad < to;
  };
  const auto history = read();
  EXPECT_THAT(history->problem(), HasSubstr("unreadable"));
  EXPECT_FALSE(history->damaged());
  for (const char* zone : kZones) {
    const bool is_hit = std::string_view(zone) == "b";
    EXPECT_EQ(history->unreadable(name(zone), true).empty(), !is_hit) << zone;
    EXPECT_EQ(history->has_whole(name(zone)), !is_hit) << zone;
  }
  EXPECT_THAT(history->unreadable(name("not-there"), true), IsEmpty()) << "the index names all";
}

TEST_F(JournalSnapshot, AFileThatIsCutKeepsTheZonesBeforeTheCut) {
  const auto opened = SnapshotFile::open(disk_, kPath);
  const std::uint64_t cut = opened->zones().places[2].offset + 10;
  disk_.contents(kPath).resize(cut);
  const auto history = read();
  EXPECT_TRUE(history->damaged());
  EXPECT_TRUE(history->has_whole(name("a")) && history->has_whole(name("b")));
  EXPECT_FALSE(history->knows(name("c")));
  EXPECT_TRUE(history->may_have_lost(name("c"))) << "no index tells which zones were there";
}

/// The index is damaged, and a zone: those behind it are found by their first records.
TEST_F(JournalSnapshot, ZonesBehindDamageAreFoundWithoutTheIndex) {
  const auto opened = SnapshotFile::open(disk_, kPath);
  Bytes& bytes = disk_.contents(kPath);
  bytes[bytes.size() - zone::kDumpTrailerBytes] ^= 1;
  bytes[opened->zones().places[1].offset + 40] ^= 1;
  const auto history = read();
  EXPECT_TRUE(history->damaged());
  EXPECT_TRUE(history->has_whole(name("a")) && history->has_whole(name("c")) &&
              history->has_whole(name("d")));
  EXPECT_FALSE(history->has_whole(name("b")));
}

/// The index may be readable later, and then names zones that the search did not find.
TEST_F(JournalSnapshot, DamageDoesNotHideThatTheIndexIsUnreadable) {
  const auto opened = SnapshotFile::open(disk_, kPath);
  ASSERT_TRUE(opened.has_value());
  Bytes& bytes = disk_.contents(kPath);
  bytes[opened->zones().places[1].offset + 40] ^= 1;
  const std::uint64_t bad = bytes.size() - zone::kDumpTrailerBytes;
  disk_.unreadable = [&](const std::string&, std::uint64_t from, std::uint64_t to) {
    return from <= bad && bad < to;
  };
  const auto history = read();
  EXPECT_THAT(history->problem(), HasSubstr("unreadable"));
  EXPECT_FALSE(history->unreadable(name("not-there"), true).empty());
}

/// The index has the serials, and so has each zone's beginning.
TEST_F(JournalSnapshot, TheSerialOfADamagedZoneIsKnownWithoutTheIndex) {
  auto file = SnapshotFile::open(disk_, kPath);
  ASSERT_TRUE(file);
  for (const SnapshotFile::Place& place : file->zones().places) {
    Bytes bytes = sound_;
    bytes[place.notes_offset + zone::kDumpFrameBytes] ^= 1;
    bytes[bytes.size() - zone::kDumpTrailerBytes] ^= 1;
    put(bytes);
    const auto history = read();
    for (const char* zone : kZones)
      EXPECT_EQ(history->has_whole(name(zone)), !(name(zone) == dns::Name(place.name))) << zone;
    EXPECT_TRUE(history->may_have_lost(place.name));
    EXPECT_TRUE(history->unused_serial(place.name, dns::Serial{1}).ahead_of(dns::Serial{kSerial}));
  }
}

}  // namespace snapshot_file_test
}  // namespace pando::manager
