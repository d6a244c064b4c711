// Exports and dumps on a model of a disk that loses power at any call: the zone made from what is
// left of file, FILE.export and journal, or of dump and journal, is the one that was served, with
// each acknowledged update.

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <asio/post.hpp>
#include <cstdlib>
#include <iostream>
#include <latch>
#include <mutex>
#include <random>

#include "manager/checkpoint/placed_dump.h"
#include "manager/checkpoint/store_dump.h"
#include "manager/checkpoint/store_opening.h"
#include "manager/commit/zone_diff.h"
#include "manager/journal/journal_identity.h"
#include "manager/merge/merge_base.h"
#include "manager/zonefile/export_file.h"
#include "manager/zonefile/zone_exports.h"
#include "manager/zonefile/zone_file.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/read/each_record.h"

namespace pando::manager {
namespace {

using shm::test::must;
using testing::FakeDisk;
using testing::kBasicZone;
using testing::name;
using testing::Parts;
using Lines = std::vector<std::string>;

/// Behind any time at which the tests run: production code asks whether a file was changed after it
/// was written, and the time of such a change cannot be set.
constexpr std::int64_t kFirstTime = std::int64_t{4'000'000'000} * 1'000'000'000;

/// The model of a disk, with its zone files in a real folder, too, since zone files are read by
/// their names. Calls may come from several threads.
class Mirror final : public Files {
 public:
  FakeDisk disk;

  /// Files whose names begin so are the real folder's.
  void mirror(std::string prefix) { prefix_ = std::move(prefix); }
  Result<std::unique_ptr<StoreFile>> open(const std::string& path, OpenMode mode) override {
    const std::lock_guard lock(mutex_);
    auto file = disk.open(path, mode);
    if (!file) return file;
    std::unique_ptr<StoreFile> real;
    if (is_real(path)) {
      real = must(native_files().open(path, mode));
      if (mode == OpenMode::kCreate) stamp(path);
    }
    return std::unique_ptr<StoreFile>(
        std::make_unique<Handle>(*this, path, std::move(*file), std::move(real)));
  }
  Status rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    auto done = disk.rename(from, to);
    return done && is_real(from) ? native_files().rename(from, to) : done;
  }
  Status remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    auto done = disk.remove(path);
    return done && is_real(path) ? native_files().remove(path) : done;
  }
  Status sync_directory(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    return disk.sync_directory(directory);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    return disk.list(directory);
  }
  Status make_directory(const std::string& directory) override {
    return disk.make_directory(directory);
  }
  /// The model alone, then the folder as the model is.
  void power_cut(std::mt19937_64& random) {
    disk.power_cut(random);
    if (prefix_.empty()) return;
    const auto folder = std::filesystem::path(prefix_).parent_path();
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (is_real(entry.path().string())) std::filesystem::remove(entry.path());
    for (const std::string& path : disk.paths()) {
      if (!is_real(path)) continue;
      auto file = must(native_files().open(path, OpenMode::kCreate));
      must(file->write_at(0, disk.contents(path)));
      set_time(path);
    }
  }

 private:
  class Handle final : public StoreFile {
   public:
    Handle(Mirror& mirror, std::string path, std::unique_ptr<StoreFile> file,
           std::unique_ptr<StoreFile> real)
        : mirror_(mirror), path_(std::move(path)), file_(std::move(file)), real_(std::move(real)) {}
    Status write_at(std::uint64_t offset, ByteView bytes) override {
      const std::lock_guard lock(mirror_.mutex_);
      auto done = file_->write_at(offset, bytes);
      if (!done || !real_) return done;
      must(real_->write_at(offset, bytes));
      mirror_.stamp(path_);
      return done;
    }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
      const std::lock_guard lock(mirror_.mutex_);
      return file_->read_at(offset, out);
    }
    Status sync() override {
      const std::lock_guard lock(mirror_.mutex_);
      return file_->sync();
    }
    Status preallocate(std::uint64_t octets) override {
      const std::lock_guard lock(mirror_.mutex_);
      return file_->preallocate(octets);
    }
    Status truncate(std::uint64_t octets) override {
      const std::lock_guard lock(mirror_.mutex_);
      return file_->truncate(octets);
    }
    Result<std::uint64_t> size() override {
      const std::lock_guard lock(mirror_.mutex_);
      return file_->size();
    }

   private:
    Mirror& mirror_;
    std::string path_;
    std::unique_ptr<StoreFile> file_, real_;
  };

  bool is_real(const std::string& path) const {
    return !prefix_.empty() && path.starts_with(prefix_);
  }
  void stamp(const std::string& path) {
    disk.stamp(path) = kFirstTime + ++writes_ * 1'000'000;
    set_time(path);
  }
  void set_time(const std::string& path) {
    const std::int64_t at = disk.stamp(path);
    const timespec time{at / 1'000'000'000, at % 1'000'000'000};
    const timespec times[] = {time, time};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  std::mutex mutex_;
  std::string prefix_;
  std::int64_t writes_ = 0;
};

void quiet(const JournalNote&) {}
void expect_sound(const JournalNote& note) { EXPECT_FALSE(note.severe) << note.text; }

/// "example." is served and updated on a host that crashes.
class Host {
 public:
  explicit Host(std::uint64_t seed) : random(seed) {
    disk.disk.whole_renames = true;
    disk.disk.sectors = {512, 4096};
  }

  void crash_in(std::uint64_t calls) {
    crashed = false;
    disk.disk.fail = [this, left = calls](FakeDisk::Call, const std::string&) mutable -> Status {
      crashed = crashed || left-- == 0;
      return crashed ? Status(fail(Errc::kIo, "the host has crashed")) : Status();
    };
  }
  void cut() {
    disk.disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    crashed = false;
    disk.power_cut(random);
  }
  /// One that is not acknowledged may be there all the same.
  void update() {
    const std::uint32_t serial = parts->zone.zone().serial().value;
    const std::string owner = fmt::format("dyn{}", random() % 8);
    const bool there = !parts->zone.at(owner).empty();
    const std::string line = owner + " 300 A 192.0.2.200";
    Lines removed{soa(serial)};
    Lines added{soa(serial + 1)};
    (there ? removed : added).push_back(line);
    const Lines before = parts->zone.lines();
    if (parts->apply(removed, added)) return;
    unsure = before;
    std::erase(*unsure, shown(soa(serial)));
    if (there) std::erase(*unsure, shown(line));
    for (const std::string& one : added) unsure->push_back(shown(one));
    std::sort(unsure->begin(), unsure->end());
  }
  void expect(const Lines& found) {
    if (unsure && found == *unsure) return;
    EXPECT_EQ(found, parts->zone.lines());
  }
  static Lines lines_of(const zone::ZoneView& zone) {
    Lines lines;
    must(zone::for_each_record(
        zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          lines.push_back(fmt::format("{} {} {} {}", to_text(owner), ttl.seconds, to_text(type),
                                      dns::rdata_to_text(type, rdata)));
          return {};
        }));
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  std::string journal() const { return parts->folder.path() + "/journal"; }

  std::mt19937_64 random;
  Mirror disk;
  bool crashed = false;
  std::optional<Lines> unsure;  // the zone with the update that failed
  std::optional<Parts> parts;

 private:
  static std::string soa(std::uint32_t serial) {
    return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
  }
  static std::string shown(const std::string& line) {
    const zone::Record one = testing::record(line);
    return fmt::format("{} {} {} {}", to_text(one.owner), one.ttl.seconds, to_text(one.type),
                       dns::rdata_to_text(one.type, one.rdata));
  }
};

// Exports ----------------------------------------------------------------------------------------

class ExportHost : public Host {
 public:
  explicit ExportHost(std::uint64_t seed) : Host(seed) {
    parts.emplace(std::uint64_t{64} << 20, disk);
    path_ = parts->folder.path() + "/example.zone";
    disk.mirror(path_);
    std::string text;
    for (const std::string& line : kBasicZone) text += line + "\n";
    must(write_file_atomically(disk, path_,
                               {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    bool done = false;
    zone::ZoneFileInfo noted = *stat_source(path_);
    add_content(noted, read_content(path_));
    parts->committer.edit(
        [&](zone::Draft& draft) { return draft.put_zone_source(name("@"), noted); },
        [&](const Status& status) { done = status.has_value(); });
    EXPECT_TRUE(parts->run_until([&] { return done; }));
    exports_.emplace(
        parts->io, parts->pool, disk, parts->committer, parts->slots,
        [this] { return std::make_shared<HistorySource>(disk, parts->journal, quiet); },
        ZoneExports::Options{});
    config::Settings settings;
    settings.zones = config::ZoneTable(parts->folder.path());
    EXPECT_TRUE(settings.zones.add(name("@"), "example.zone", settings.zones.add_options({})));
    exports_->configure(*make_runtime(std::move(settings)));
    parts->committer.on_published([this](const PublishedVersion& version) {
      for (const JournalEntry& entry : version.records) exports_->journalled(entry);
    });
  }
  ~ExportHost() { parts->pool.join(); }

  void live() {
    update();
    crash_in(random() % 50);
    for (int step = 0; step < 12 && !crashed; ++step) random() % 3 == 0 ? write() : update();
    cut();
    if (random() % 3 == 0) {
      crash_in(random() % 12);
      static_cast<void>(recover(false));
      cut();
    }
    expect(*recover(true));
    for (const auto& entry : std::filesystem::directory_iterator(parts->folder.path()))
      EXPECT_EQ(entry.path().string().find(".edited"), std::string::npos) << entry.path();
  }
  [[nodiscard]] int written() const { return written_; }

 private:
  /// Its file is written behind the updates that come meanwhile, so that a seed says all.
  void write() {
    const auto free = std::make_shared<std::latch>(1);  // a thread may come to it late
    for (int thread = 0; thread < 2; ++thread) asio::post(parts->pool, [free] { free->wait(); });
    std::optional<bool> outcome;
    exports_->write_own(name("@"), [&](const auto& exported) { outcome = exported.has_value(); });
    for (std::uint64_t i = random() % 3; i > 0 && !crashed; --i) update();
    free->count_down();
    EXPECT_TRUE(parts->run_until([&] { return outcome.has_value(); }));
    written_ += *outcome ? 1 : 0;
  }
  /// What a host without the store serves.
  std::optional<Lines> recover(bool sound) {
    auto journal = Journal::open({this->journal(), 64 << 10}, disk, sound ? expect_sound : quiet);
    EXPECT_TRUE(journal.has_value() || !sound);
    if (!journal) return std::nullopt;
    const auto history = JournalHistory::read(disk, journal->files(), quiet);
    const auto state = history->merge_base(name("@"), UINT64_MAX);
    if (state && state->source && !sound)
      static_cast<void>(finish_export(disk, path_, *state->source).has_value());
    if (!sound) return std::nullopt;
    EXPECT_TRUE(state->dynamic_changes.known());
    shm::Transaction transaction = parts->zone.store().begin_private();
    const ZoneHistory before{*history, UINT64_MAX, false};
    const auto built = build_zone(transaction, name("@"), path_, &before);
    EXPECT_TRUE(built.has_value());
    if (!built) return Lines{built.error().lines};
    const BuiltView view(parts->zone.store(), name("@"), *built->built);
    return lines_of(must(view.zone()));
  }

  std::string path_;
  std::optional<ZoneExports> exports_;
  int written_ = 0;
};

// Dumps ------------------------------------------------------------------------------------------

constexpr shm::StoreOwner kOwner{5, 6};
constexpr shm::StoreOwner kOther{7, 8};

class DumpHost : public Host {
 public:
  explicit DumpHost(std::uint64_t seed) : Host(seed) {
    parts.emplace(std::uint64_t{64} << 20, disk);
    other_ = parts->folder.path() + "/other";
  }

  /// Dumps of the journal that goes on: each one that was told of is there, or a later one.
  void live() {
    crash_in(random() % 60);
    std::uint64_t told = 0;
    for (int step = 0; step < 12 && !crashed; ++step) {
      update();
      if (crashed || random() % 3 != 0) continue;
      const std::uint64_t position = parts->committer.position();
      if (dump(journal(), kOwner)) told = position;
    }
    cut();
    auto found = must(PlacedDump::find(disk, journal(), kOwner));
    EXPECT_TRUE(found != nullptr || told == 0);
    found_ = found != nullptr;
    Journal opened = must(Journal::open({journal(), 64 << 10}, disk, expect_sound));
    if (found) return expect(brought_up(*found, opened));
    testing::ZoneStore fresh;  // what the zone's file has
    must(replay_journal(fresh.store(), opened, disk, expect_sound));
    expect(fresh.lines());
  }

  /// One of another server, beside a journal without records: the start that makes it ours crashes,
  /// and so do some of those behind it.
  void move() {
    // The dump's header is written in place, and is less than a sector.
    disk.disk.half_writes = false;
    for (int i = 0; i < 5; ++i) update();
    must(disk.make_directory(other_));
    ASSERT_TRUE(dump(other_, kOther));
    const Lines served = parts->zone.lines();
    for (int crashes = 0; crashes < 3; ++crashes) {
      crash_in(random() % 30);
      static_cast<void>(start());
      cut();
    }
    const auto found = start();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, served);
    // The journal knows what came by update there.
    Journal journal = must(Journal::open({other_, 64 << 10}, disk, expect_sound));
    const auto state = must(JournalHistory::read(disk, journal.files(), expect_sound)
                                ->merge_base(name("@"), UINT64_MAX));
    EXPECT_TRUE(state.dynamic_changes.known());
    EXPECT_EQ(state.file_serial, dns::Serial{10});
    EXPECT_EQ(state.serial, dns::Serial{15});
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  bool dump(const std::string& folder, const shm::StoreOwner& owner) {
    DumpRequest request;
    request.path = PlacedDump::path_in(folder);
    request.owner = owner;
    request.history = std::make_shared<HistorySource>(disk, parts->journal, quiet);
    request.ended = std::make_shared<std::atomic<bool>>(false);
    std::optional<bool> done;
    dump_store(parts->zone.store(), parts->slots, parts->journal, parts->io, parts->pool, disk,
               request, [&](const Result<WrittenDump>& written) { done = written.has_value(); });
    EXPECT_TRUE(parts->run_until([&] { return done.has_value(); }));
    return *done;
  }
  /// As a manager with the identity kOwner does in `other_`.
  std::optional<Lines> start() {
    auto found = PlacedDump::find(disk, other_, kOwner);
    if (!found || !*found) return std::nullopt;
    auto opened = Journal::open({other_, 64 << 10}, disk, quiet);
    if (!opened) return std::nullopt;
    const Lines lines = brought_up(**found, *opened);
    return lines.empty() ? std::nullopt : std::optional(lines);
  }
  /// Empty when the host crashed.
  Lines brought_up(PlacedDump& dump, Journal& opened) {
    const shm::test::Folder folder;
    shm::StoreOptions options = shm::test::options(folder, 64 << 20);
    options.layout = zone::layout_fingerprint();
    auto store = must(shm::Store::create(options));
    const auto done = dump.bring_up(store, opened, {}, quiet);
    EXPECT_TRUE(done.has_value() || crashed) << done.error().text;
    if (!done) return {};
    const shm::VersionInfo now = store.current();
    return lines_of(zone::StoreView(store.window(), now.root, now.number).zone_at(name("@")));
  }

  std::string other_;
  bool found_ = false;
};

/// Calls `one(seed)` for as many seeds as are wanted, or one that is given.
template <class One>
void each_state(std::uint64_t usual, const One& one) {
  const char* const given = std::getenv("PANDO_SEED");
  const std::uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  const char* const wanted = std::getenv("PANDO_CRASH_STATES");
  const std::uint64_t states = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : usual;
  std::cout << states << " states from PANDO_SEED=" << first << std::endl;
  for (std::uint64_t seed = first; seed < first + states; ++seed) {
    SCOPED_TRACE(fmt::format("again with PANDO_SEED={} PANDO_CRASH_STATES=1", seed));
    one(seed);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ExportStates, AreTheZoneThatWasServed) {
  int written = 0;
  each_state(500, [&](std::uint64_t seed) {
    ExportHost host(seed);
    host.live();
    written += host.written();
  });
  EXPECT_GT(written, 0);
}

TEST(DumpStates, AreTheZoneThatWasServed) {
  int found = 0;
  each_state(500, [&](std::uint64_t seed) {
    DumpHost host(seed);
    host.live();
    found += host.found() ? 1 : 0;
  });
  EXPECT_GT(found, 0);
}

TEST(DumpStates, OfAnotherJournalBecomeOurs) {
  each_state(200, [](std::uint64_t seed) {
    DumpHost host(seed);
    host.move();
  });
}

}  // namespace
}  // namespace pando::manager
