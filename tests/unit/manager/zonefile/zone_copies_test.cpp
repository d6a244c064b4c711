#include "manager/zonefile/zone_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>

#include "manager/zonefile/zone_file.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace zone_copies_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kinds_of;
using testing::name;
using testing::Parts;
using testing::record;
using ::testing::UnorderedElementsAre;

constexpr const char* kPath = "/copies/example.zone";

class Copies : public ::testing::Test {
 protected:
  std::string text() {
    const Bytes& bytes = disk_.contents(kPath);
    return std::string(bytes.begin(), bytes.end());
  }
  zone::ZoneView live() {
    version_ = parts_.committer.current();
    return version_.zone_at(name("@"));
  }
  Status write() {
    auto hash = write_zone_file(disk_, live(), kPath);
    return hash ? Status() : Status(pass(hash));
  }
  void change() { ASSERT_TRUE(parts_.apply({}, {"new 300 A 192.0.2.200"})); }
  static zone::ZoneSettings secondary() {
    zone::ZoneSettings settings;
    settings.is_secondary = true;
    return settings;
  }
  void put(const dns::Name& zone, const zone::ZoneSettings& settings) {
    const auto put_settings = [&](zone::Draft& draft) {
      return draft.put_zone_settings(zone, settings, 0);
    };
    EXPECT_TRUE(parts_.edit(put_settings).has_value());
  }

  FakeDisk disk_;
  Parts parts_;
  zone::StoreView version_;
};

TEST_F(Copies, HaveAllRecordsWithTheSoaFirst) {
  ASSERT_TRUE(write());
  const std::string copy = text();
  const auto soa = copy.find("SOA");
  ASSERT_NE(soa, std::string::npos);
  EXPECT_LT(soa, copy.find(" NS "));
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(copy.begin(), copy.end(), '\n')),
            live().record_count() + 2);  // a comment and $ORIGIN
}

TEST_F(Copies, AreOldOrNewAfterALossOfPower) {
  ASSERT_TRUE(write());
  const std::string before = text();
  change();
  ASSERT_TRUE(write());
  const std::string after = text();
  ASSERT_THAT(after, HasSubstr("192.0.2.200"));
  using Call = FakeDisk::Call;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    disk_ = FakeDisk();
    auto file = disk_.open(kPath, OpenMode::kCreate).value();
    ASSERT_TRUE(file->write_at(0, Bytes(before.begin(), before.end())));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(disk_.sync_directory("/copies"));
    int calls = static_cast<int>(random() % 8);  // power goes before this call takes effect
    disk_.fail = [&](Call, const std::string&) -> Status {
      return calls-- > 0 ? Status() : fail(Errc::kIo, "power is gone");
    };
    static_cast<void>(write());
    disk_.power_cut(random);
    EXPECT_TRUE(text() == before || text() == after) << "seed " << seed << "\n" << text();
  }
}

TEST_F(Copies, StayAsTheyWereWhenTheDiskIsFull) {
  ASSERT_TRUE(write());
  const std::string before = text();
  change();
  disk_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kWrite ? fail(Errc::kFull, "no space") : Status();
  };
  const Status status = write();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text, "no space");
  EXPECT_EQ(text(), before);
  EXPECT_EQ(disk_.paths().size(), 1U) << "nothing half-written is left";
}

TEST_F(Copies, AskedForWhileOneIsWrittenEndWithTheNewestVersion) {
  put(name("@"), secondary());
  ZoneCopies copies(parts_.io, parts_.pool, disk_, parts_.committer, parts_.slots, "/folder");
  std::latch all_asked(1);
  disk_.fail = [&](FakeDisk::Call, const std::string&) {
    all_asked.wait();  // holds the first copy until all are asked for
    return Status();
  };
  copies.write(name("@"), kPath, false);
  change();
  for (int i = 0; i < 5; ++i) copies.write(name("@"), kPath, false);
  all_asked.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return copies.written() == 2; }));
  EXPECT_THAT(text(), HasSubstr("192.0.2.200"));
}

/// Copies of so many zones that they are synced together.
class ManyCopies : public Copies {
 protected:
  static constexpr std::size_t kCount = 20;
  static std::string path(std::size_t i) { return fmt::format("/copies/{}.zone", i); }
  std::vector<Result<std::uint64_t>> write_all() {
    std::vector<ZoneFileToWrite> zones;
    for (std::size_t i = 0; i < kCount; ++i) zones.push_back({live(), path(i)});
    return write_zone_files(disk_, zones);
  }
  std::string text_of(std::size_t i) {
    if (!disk_.has(path(i))) return "";
    const Bytes& bytes = disk_.contents(path(i));
    return std::string(bytes.begin(), bytes.end());
  }
  std::vector<std::size_t> failed(const std::vector<Result<std::uint64_t>>& results) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!results[i]) found.push_back(i);
    return found;
  }
  using Call = FakeDisk::Call;
};

TEST_F(ManyCopies, NeedOneSyncAndAreTheSameFiles) {
  EXPECT_THAT(failed(write_all()), IsEmpty());
  EXPECT_EQ(disk_.calls[Call::kSyncGroup], 1);
  EXPECT_EQ(disk_.calls[Call::kSync], 0);
  EXPECT_EQ(disk_.calls[Call::kSyncDirectory], 1);
  ASSERT_TRUE(write());
  EXPECT_EQ(disk_.paths().size(), kCount + 1);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(text_of(i), text());
}

TEST_F(ManyCopies, AreSyncedOneByOneWhereNothingElseIsKnownToReachTheDisk) {
  disk_.syncs_groups = false;
  EXPECT_THAT(failed(write_all()), IsEmpty());
  EXPECT_EQ(disk_.calls[Call::kSync], static_cast<int>(kCount));
}

TEST_F(ManyCopies, AreOldOrNewAfterALossOfPower) {
  ASSERT_TRUE(write());
  const std::string before = text();
  change();
  ASSERT_TRUE(write());
  const std::string after = text();
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    disk_ = FakeDisk();
    for (std::size_t i = 0; i < kCount; ++i) {
      auto file = disk_.open(path(i), OpenMode::kCreate).value();
      ASSERT_TRUE(file->write_at(0, Bytes(before.begin(), before.end())));
      ASSERT_TRUE(file->sync());
    }
    ASSERT_TRUE(disk_.sync_directory("/copies"));
    int calls = static_cast<int>(random() % (3 * kCount + 4));
    disk_.fail = [&](Call, const std::string&) -> Status {
      return calls-- > 0 ? Status() : fail(Errc::kIo, "power is gone");
    };
    const auto results = write_all();
    disk_.power_cut(random);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_TRUE(text_of(i) == before || text_of(i) == after) << "seed " << seed;
      if (results[i]) {
        EXPECT_EQ(text_of(i), after) << "seed " << seed;
      }
      seen.insert(text_of(i));
    }
  }
  EXPECT_EQ(seen.size(), 2U) << "power went before and after the names changed";
}

/// The error may be that of another program's file.
TEST_F(ManyCopies, AreWrittenOnceMoreOneByOneAfterAnErrorOfTheirCommonSync) {
  disk_.fail = [](Call call, const std::string&) -> Status {
    return call == Call::kSyncGroup ? fail(Errc::kIo, "EIO") : Status();
  };
  EXPECT_THAT(failed(write_all()), IsEmpty());
  EXPECT_EQ(disk_.calls[Call::kSync], static_cast<int>(kCount));
  std::mt19937_64 random(1);
  disk_.power_cut(random);
  ASSERT_TRUE(write());
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(text_of(i), text());
}

TEST_F(ManyCopies, FailOneByOne) {
  disk_.fail = [](Call call, const std::string& file) -> Status {
    const bool fails = (call == Call::kWrite && file == path(3) + kPartial) ||
                       (call == Call::kRename && file == path(5) + kPartial);
    return fails ? fail(Errc::kFull, "no space") : Status();
  };
  EXPECT_THAT(failed(write_all()), ElementsAre(3, 5));
  EXPECT_EQ(disk_.paths().size(), kCount - 2) << "nothing half-written is left";
}

TEST_F(ManyCopies, ThatWereWrittenBeforeTheDiskWasFullCountAndTheOthersStayAsTheyWere) {
  EXPECT_THAT(failed(write_all()), IsEmpty());
  const std::string before = text_of(0);
  change();
  constexpr std::size_t kRoom = 8;
  std::set<std::string> written;
  disk_.fail = [&](Call call, const std::string& file) -> Status {
    if (call != Call::kWrite || written.contains(file)) return {};
    if (written.size() == kRoom) return fail(Errc::kFull, "no space");
    written.insert(file);
    return {};
  };
  const auto results = write_all();
  EXPECT_EQ(failed(results).size(), kCount - kRoom);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(text_of(i) == before, !results[i].has_value()) << i;
  EXPECT_EQ(disk_.paths().size(), kCount) << "nothing half-written is left";
  disk_.fail = [](Call, const std::string&) { return Status(); };
  EXPECT_THAT(failed(write_all()), IsEmpty());
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NE(text_of(i), before) << i;
}

/// Between the sync of all files and the change of the first name.
TEST_F(ManyCopies, AreWrittenOverDraftsThatAnEndOfTheHostLeft) {
  EXPECT_THAT(failed(write_all()), IsEmpty());
  const std::string before = text_of(0);
  change();
  disk_.fail = [](Call call, const std::string&) -> Status {
    return call == Call::kRename || call == Call::kRemove ? fail(Errc::kIo, "the host has ended")
                                                          : Status();
  };
  EXPECT_EQ(failed(write_all()).size(), kCount);
  ASSERT_TRUE(disk_.sync_directory("/copies")) << "as a file system may have done by itself";
  std::mt19937_64 random(1);
  disk_.power_cut(random);
  EXPECT_EQ(disk_.paths().size(), 2 * kCount) << "with the drafts";
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(text_of(i), before) << i;
  disk_.fail = [](Call, const std::string&) { return Status(); };
  ASSERT_TRUE(parts_.apply({}, {"more 300 A 192.0.2.201"}));
  EXPECT_THAT(failed(write_all()), IsEmpty());
  EXPECT_EQ(disk_.paths().size(), kCount);
  ASSERT_TRUE(write());
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(text_of(i), text()) << i;
}

TEST_F(ManyCopies, OfWhichTheNamesAreNotDurableDoNotCount) {
  disk_.fail = [](Call call, const std::string&) -> Status {
    return call == Call::kSyncDirectory ? fail(Errc::kIo, "EIO") : Status();
  };
  EXPECT_EQ(failed(write_all()).size(), kCount);
}

/// Zones like "example." that wait while others are written.
class WaitingCopies : public ManyCopies {
 protected:
  static dns::Name zone(std::size_t i) { return name(fmt::format("z{}", i)); }
  void put(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      shm::Transaction transaction = parts_.zone.store().begin_private();
      zone::ZoneBuilder builder(zone(i), transaction);
      const zone::Record soa = record("@ 60 SOA ns1 admin 1 3600 600 86400 300");
      const zone::Record ns = record("@ 60 NS ns1");
      for (const zone::Record& one : {soa, ns})
        ASSERT_TRUE(builder.add(zone(i), one.type, one.ttl, one.rdata).has_value());
      auto built = builder.finish();
      ASSERT_TRUE(built.has_value());
      ASSERT_TRUE(parts_.commit([&](Stage& stage) -> Status {
        stage.transaction.absorb(std::move(transaction));
        if (auto made = stage.draft.put_zone_settings(zone(i), secondary(), 0); !made) return made;
        return stage.draft.put_zone(zone(i), **built, {});
      }));
    }
  }
};

TEST_F(WaitingCopies, AreOneBatchPerFolder) {
  constexpr std::size_t kZones = 60;
  put(kZones);
  asio::thread_pool thread{1};  // the model of a disk knows one
  ZoneCopies copies(parts_.io, thread, disk_, parts_.committer, parts_.slots, "/folder");
  std::latch all_asked(1);
  disk_.fail = [&](Call, const std::string&) {
    all_asked.wait();
    return Status();
  };
  for (std::size_t i = 0; i < kZones; ++i)
    copies.write(zone(i), fmt::format("/{}/{}.zone", i < 40 ? "a" : "b", i), false);
  all_asked.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return copies.written() == kZones; }));
  thread.join();
  EXPECT_EQ(disk_.paths().size(), kZones);
  EXPECT_EQ(disk_.calls[Call::kSyncGroup], 2);
}

TEST_F(WaitingCopies, OfZonesThatLeftMeanwhileAreNotWritten) {
  put(8);
  asio::thread_pool thread{1};
  ZoneCopies copies(parts_.io, thread, disk_, parts_.committer, parts_.slots, "/folder");
  std::latch have_left(1);
  disk_.fail = [&](Call, const std::string&) {
    have_left.wait();
    return Status();
  };
  for (std::size_t i = 0; i < 8; ++i) copies.write(zone(i), fmt::format("/a/{}.zone", i), false);
  for (std::size_t i : {6, 7})
    ASSERT_TRUE(parts_.edit([&](zone::Draft& draft) { return draft.remove_zone(zone(i)); }));
  have_left.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return copies.written() == 6; }));
  ASSERT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
  thread.join();
  EXPECT_EQ(copies.failures(), 0U);
  EXPECT_EQ(disk_.paths().size(), 6U);
}

TEST_F(WaitingCopies, OfZonesMadePrimaryMeanwhileAreNotWritten) {
  put(8);
  asio::thread_pool thread{1};
  ZoneCopies copies(parts_.io, thread, disk_, parts_.committer, parts_.slots, "/folder");
  std::latch are_primary(1);
  disk_.fail = [&](Call, const std::string&) {
    are_primary.wait();
    return Status();
  };
  for (std::size_t i = 0; i < 8; ++i) copies.write(zone(i), fmt::format("/a/{}.zone", i), false);
  for (std::size_t i : {6, 7}) Copies::put(zone(i), {});
  are_primary.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return copies.written() == 6; }));
  ASSERT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
  thread.join();
  EXPECT_EQ(copies.failures(), 0U);
  EXPECT_EQ(disk_.paths().size(), 6U);
}

/// Copies in a folder of the file system, where they can be looked at.
class NotedCopies : public Copies {
 protected:
  NotedCopies() { put(name("@"), secondary()); }
  /// Gives what the journal got of the copy.
  std::vector<RecordKind> copy(bool in_journal) {
    const std::uint64_t before = parts_.journal.last_position();
    copies_.write(name("@"), path_, in_journal);
    EXPECT_TRUE(parts_.run_until([&] { return copies_.written() == 1; }));
    EXPECT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
    return kinds_of(parts_.journalled(before));
  }
  bool is_base_file() {
    return live().source().file_mtime_ns == stat_source(path_)->file_mtime_ns &&
           live().source().file_bytes == stat_source(path_)->file_bytes;
  }
  std::string path_ = parts_.folder.path() + "/example.zone";
  ZoneCopies copies_{parts_.io,        parts_.pool,  native_files(),
                     parts_.committer, parts_.slots, "/folder"};
};

TEST_F(NotedCopies, OfAZoneThatTheJournalDoesNotKnowAreNotedInTheStore) {
  EXPECT_THAT(copy(false), IsEmpty());
  EXPECT_TRUE(is_base_file());
}

TEST_F(NotedCopies, OfAZoneThatTheJournalKnowsSayThereThatTheyAreAllOfIt) {
  EXPECT_THAT(copy(true),
              ElementsAre(RecordKind::kBase, RecordKind::kTransfer, RecordKind::kSource));
  EXPECT_TRUE(is_base_file());
}

TEST_F(NotedCopies, OfAZoneThatHasMovedOnAreTheBaseOfItsChangesets) {
  const auto moved = parts_.submit(parts_.changes({"@ 0 SOA ns1 admin 10 3600 600 86400 300"},
                                                  {"@ 60 SOA ns1 admin 11 3600 600 86400 300"}));
  EXPECT_THAT(copy(true), ElementsAre(RecordKind::kChangeset, RecordKind::kSource));
  EXPECT_TRUE(moved->has_value() && (*moved)->has_value());
  EXPECT_TRUE(is_base_file());
}

TEST_F(NotedCopies, AreNotThoseOfAZoneMadePrimaryWhileItIsWritten) {
  std::latch is_primary(1);
  for (int thread = 0; thread < 2; ++thread)
    asio::post(parts_.pool, [&] { is_primary.wait(); });  // keeps the copy from being written
  const std::uint64_t before = parts_.journal.last_position();
  copies_.write(name("@"), path_, true);
  put(name("@"), {});
  is_primary.count_down();
  EXPECT_TRUE(parts_.run_until([&] { return copies_.written() == 1; }));
  EXPECT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
  EXPECT_THAT(kinds_of(parts_.journalled(before)), IsEmpty());
  EXPECT_FALSE(is_base_file());
}

TEST_F(NotedCopies, AreNotedInTheStoreWhenTheJournalCannotBeWritten) {
  Parts parts(64 << 20, disk_);
  disk_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kSync ? fail(Errc::kIo, "EIO") : Status();
  };
  bool put = false;
  parts.committer.edit(
      [&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), secondary(), 0); },
      [&](const Status&) { put = true; });
  ASSERT_TRUE(parts.run_until([&] { return put; }));
  ZoneCopies copies(parts.io, parts.pool, native_files(), parts.committer, parts.slots, "/folder");
  copies.write(name("@"), path_, true);
  ASSERT_TRUE(parts.run_until(
      [&] { return parts.committer.current().zone_at(name("@")).source().file_mtime_ns != 0; }));
  EXPECT_EQ(copies.written(), 1U);
}

TEST_F(Copies, GoWithTheirZonesAndNoneIsTakenAwayWhileItIsWritten) {
  config::Settings settings;
  config::ZoneOptions secondary;
  secondary.primaries = {"primary"};
  ASSERT_TRUE(settings.zones.add(name("@"), "", settings.zones.add_options(secondary)));
  ASSERT_TRUE(settings.zones.add(name("now-primary"), "/x/..//folder/now-primary.example.zone",
                                 settings.zones.add_options({})));
  const auto runtime = make_runtime(std::move(settings));
  ASSERT_TRUE(runtime.has_value());
  for (const char* file : {"example.zone", "example.zone.partial", "gone.zone", "gone.zone.partial",
                           "now-primary.example.zone", "now-primary.example.zone.export",
                           "not-now-primary.example.zone"})
    ASSERT_TRUE(disk_.open(std::string("/folder/") + file, OpenMode::kCreate).has_value());
  ZoneCopies copies(parts_.io, parts_.pool, disk_, parts_.committer, parts_.slots, "/folder");
  copies.keep_only(*runtime);
  parts_.pool.join();
  EXPECT_THAT(disk_.paths(), ElementsAre("/folder/example.zone", "/folder/example.zone.partial",
                                         "/folder/now-primary.example.zone",
                                         "/folder/now-primary.example.zone.export"));
}

/// Files of a folder while zones come and go. The model of a disk knows one thread.
class KeptCopies : public WaitingCopies {
 protected:
  static RuntimePtr secondaries(const std::vector<dns::Name>& zones) {
    config::Settings settings;
    config::ZoneOptions secondary;
    secondary.primaries = {"primary"};
    for (const dns::Name& zone : zones)
      EXPECT_TRUE(settings.zones.add(zone, "", settings.zones.share_options(secondary)));
    auto runtime = make_runtime(std::move(settings));
    EXPECT_TRUE(runtime.has_value());
    return *runtime;
  }
  static std::string file(std::size_t i) { return "/folder/" + copy_name(zone(i)); }
  void put_files(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(disk_.open(file(i), OpenMode::kCreate).has_value());
  }
  asio::thread_pool thread_{1};
};

TEST_F(KeptCopies, AreThoseOfZonesThatCameSinceTheFolderWasToBeCleaned) {
  put_files(3);
  ZoneCopies copies(parts_.io, thread_, disk_, parts_.committer, parts_.slots, "/folder");
  std::latch configured(1);
  disk_.fail = [&](Call, const std::string&) {
    configured.wait();
    return Status();
  };
  copies.keep_only(secondaries({zone(0)}));
  copies.configure(secondaries({zone(1)}));
  configured.count_down();
  thread_.join();
  EXPECT_THAT(disk_.paths(), ElementsAre(file(1)));
}

TEST_F(KeptCopies, AreAllThatIsLeftOfManyFiles) {
  put_files(100);
  ZoneCopies copies(parts_.io, thread_, disk_, parts_.committer, parts_.slots, "/folder");
  std::atomic<int> removed = 0;
  disk_.fail = [&](Call call, const std::string&) {
    removed += call == Call::kRemove ? 1 : 0;
    return Status();
  };
  copies.keep_only(secondaries({zone(7), zone(70)}));
  ASSERT_TRUE(parts_.run_until([&] { return removed == 98; }));
  thread_.join();
  EXPECT_THAT(disk_.paths(), UnorderedElementsAre(file(7), file(70)));
}

TEST_F(KeptCopies, AreNoneOfAZoneThatLeftWhileItWasWritten) {
  put(2);
  ZoneCopies copies(parts_.io, thread_, disk_, parts_.committer, parts_.slots, "/folder");
  std::latch has_left(1);
  std::atomic<int> removed = 0;
  disk_.fail = [&](Call call, const std::string&) {
    has_left.wait();
    removed += call == Call::kRemove ? 1 : 0;
    return Status();
  };
  copies.configure(secondaries({zone(0), zone(1)}));
  for (std::size_t i = 0; i < 2; ++i) copies.write(zone(i), file(i), false);
  copies.configure(secondaries({zone(0)}));
  has_left.count_down();
  ASSERT_TRUE(parts_.run_until([&] { return removed == 1; }));
  thread_.join();
  EXPECT_EQ(copies.written(), 2U);
  EXPECT_THAT(disk_.paths(), ElementsAre(file(0)));
}

TEST_F(Copies, HaveNamesThatNoFileSystemMisunderstands) {
  const auto file_of = [](const char* text) {
    return copy_name(dns::Name::from_text(text).value());
  };
  EXPECT_EQ(file_of("."), "%2E.zone");
  EXPECT_EQ(file_of("EXAMPLE.com."), "example.com.zone");
  EXPECT_EQ(file_of("a/b.\\000.x."), "a%2Fb.%5C000.x.zone");
  EXPECT_EQ(file_of("\\..x."), "%5C..x.zone");
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + label.substr(2) + ".";
  EXPECT_LE(file_of(longest.c_str()).size(), 240U);
  EXPECT_NE(file_of(longest.c_str()), file_of(("b" + longest.substr(1)).c_str()));
  EXPECT_NE(file_of(longest.c_str()), file_of((longest.substr(0, 250) + "b.").c_str()));
}

TEST_F(Copies, OfAZoneWithoutDataFailAndCount) {
  ASSERT_TRUE(parts_.edit(
      [](zone::Draft& draft) { return draft.put_zone_settings(name("other"), {}, 0); }));
  ZoneCopies copies(parts_.io, parts_.pool, disk_, parts_.committer, parts_.slots, "/folder");
  copies.write(name("other"), kPath, false);
  ASSERT_TRUE(parts_.run_until([&] { return copies.failures() == 1; }));
  EXPECT_TRUE(disk_.paths().empty());
}

}  // namespace zone_copies_test
}  // namespace pando::manager
