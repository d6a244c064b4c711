// The journal, and the image beside it, on a model of a disk that loses power at any call: groups,
// full segments, failing calls, snapshots that fold segments, checkpoints, and starts. Any part of
// the unsynced data may be there after a power loss. Every acknowledged record is present, in
// order, and an unacknowledged group is whole or absent. A zone made from its file and the journal,
// or from the image and the journal's later records, is the one that was served.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include "manager/checkpoint/image.h"
#include "manager/checkpoint/image_replay.h"
#include "manager/checkpoint/store_opening.h"
#include "manager/commit/zone_diff.h"
#include "manager/journal/journal_snapshot.h"
#include "manager/merge/merge_base.h"
#include "manager/zonefile/zone_file.h"
#include "shm/slots.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/zone_support.h"
#include "zone/read/each_record.h"

namespace pando::manager {
namespace {

using shm::test::must;
using testing::FakeDisk;
using testing::name;
using testing::record;
using Lines = std::vector<std::string>;

constexpr const char* kFolder = "/disk/journal";
constexpr std::uint64_t kSegment = 6000;
constexpr int kLives = 25;  // of one store
const std::vector<std::string> kZones = {"one", "two"};

std::string soa(const std::string& zone, std::uint32_t serial) {
  return fmt::format("{0} 60 SOA ns.{0} admin.{0} {1} 3600 600 86400 300", zone, serial);
}

Lines lines_of(const zone::ZoneView& zone) {
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

/// What a record of the journal is, for comparing.
struct Kept {
  std::uint64_t position = 0;
  RecordKind kind = RecordKind::kChangeset;
  std::string zone;
  std::uint32_t to = 0;
  Bytes payload;
  bool operator==(const Kept&) const = default;
};
using KeptGroup = std::vector<Kept>;

shm::StoreOptions options_in(const shm::test::Folder& folder) {
  shm::StoreOptions options = shm::test::options(folder, 64 << 20);
  options.layout = zone::layout_fingerprint();
  return options;
}

/// What a host has in its memory.
class Memory {
 public:
  Memory() : store_(must(shm::Store::create(options_in(folder_)))) { open_slots(); }
  /// As `image` has it with what the journal has behind that; `lost`: the zones that were unloaded.
  Memory(Image& image, Journal& journal, Files& files, const NoteSink& note,
         std::vector<dns::Name>& lost)
      : store_(restore(image, journal, files, note, lost)) {
    must(store_.check());
    open_slots();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { store_.set_slots(nullptr); }

  [[nodiscard]] shm::Store& store() noexcept { return store_; }
  [[nodiscard]] shm::SlotTable& slots() noexcept { return *slots_; }
  /// As it is now.
  [[nodiscard]] zone::StoreView version() const {
    const shm::VersionInfo now = store_.current();
    return {store_.window(), now.root, now.number};
  }

 private:
  /// The image's chunks, and the replay before the store has its name, as open_store() does it.
  class Source final : public shm::ImageSource {
   public:
    Source(shm::ImageSource& chunks, BringUp bring_up)
        : chunks_(chunks), bring_up_(std::move(bring_up)) {}
    Status read(std::uint32_t chunk, std::span<std::uint8_t> into,
                std::uint32_t checksum) override {
      return chunks_.read(chunk, into, checksum);
    }
    Status complete(shm::Store& store) override { return bring_up_(store); }

   private:
    shm::ImageSource& chunks_;
    BringUp bring_up_;
  };
  shm::Store restore(Image& image, Journal& journal, Files& files, const NoteSink& note,
                     std::vector<dns::Name>& lost) const {
    auto chunks = must(image.source());
    Source source(*chunks, [&](shm::Store& store) -> Status {
      auto done = replay_onto_image(store, journal, files, zone::DataLimits::none(), note);
      if (!done) return pass(done);
      lost = std::move(*done);
      return {};
    });
    return must(shm::Store::restore(options_in(folder_), image.index()->state, source));
  }
  void open_slots() {
    slots_.emplace(
        must(shm::SlotTable::open(folder_.slots(), folder_.store(), zone::layout_fingerprint())));
    store_.set_slots(&*slots_);
  }

  shm::test::Folder folder_;
  shm::Store store_;
  std::optional<shm::SlotTable> slots_;
};

/// The image of a host's store, as the checkpointer and the manager's start treat it.
class ImageBeside {
 public:
  explicit ImageBeside(FakeDisk& disk) : disk_(disk) { begin_anew(); }

  void checkpoint(Memory& memory) {
    auto current = memory.slots().pin_own(memory.store().current().number);
    const auto all = [](std::uint64_t) { return true; };
    auto written = image_->write(memory.store().capture(), memory.store().window(), all);
    if (written) {
      pin_ = std::move(current);
      durable_ = memory.store().current().journal_position;
    } else if (!image_->in_place()) {
      pin_ = {};
    }
  }
  /// The process is started again beside the live store.
  void attach(Memory& memory) {
    begin_anew();
    if (!image_->look(memory.store().lineage())) return image_->forget();
    pin_ = memory.slots().pin_own(image_->index()->state.version);
  }
  /// The store is lost. Null: there is no image.
  std::unique_ptr<Memory> restore(Journal& journal, const NoteSink& note,
                                  std::vector<dns::Name>& lost) {
    begin_anew();
    if (auto opened = image_->open(); !opened) {
      EXPECT_EQ(opened.error().code, Errc::kNotFound) << opened.error().text;
      EXPECT_FALSE(durable_.has_value()) << "an image that was there";
      return nullptr;
    }
    const std::uint64_t position = image_->index()->state.journal_position;
    EXPECT_GE(position, durable_.value_or(0)) << "older than one that was there";
    EXPECT_LE(position, journal.last_position());
    auto memory = std::make_unique<Memory>(*image_, journal, disk_, note, lost);
    pin_ = memory->slots().pin_own(image_->index()->state.version);
    return memory;
  }
  /// Before the memory goes that it was pinned in.
  void begin_anew() {
    pin_ = {};
    image_.emplace(disk_,
                   Image::Options{"/disk/image/zones.image", zone::layout_fingerprint(), {1, 2}});
    image_->forget();
  }
  [[nodiscard]] std::uint64_t position() const {
    return image_->index() == nullptr ? 0 : image_->index()->state.journal_position;
  }

 private:
  FakeDisk& disk_;
  std::optional<Image> image_;
  shm::SlotTable::OwnPin pin_;
  std::optional<std::uint64_t> durable_;  // the journal's position of the last one written
};

/// A store, its image and its journal: the store is what the clients were told, the disk is what a
/// crash leaves.
class Host {
 public:
  explicit Host(std::uint64_t seed) : random_(seed) {
    disk_.sectors = {64, 512, 4096};
    for (const std::string& zone : kZones) load(zone);
  }
  /// Starts from an image, of all hosts.
  static int from_image;

  /// From a start to a crash, and what is there afterwards.
  void live() {
    crash_in(random_() % (random_() % 4 == 0 ? 12 : 90));
    start_on_a_full_disk();
    for (int step = 0; step < 60 && !crashed_; ++step) take_step();
    journal_.reset();
    cut();
    if (random_() % 4 == 0) {  // once more, on the way back
      crash_in(random_() % 12);
      start();
      journal_.reset();
      cut();
    }
    look();
  }

 private:
  struct Killed {};

  // The host ---------------------------------------------------------------------------------

  /// Calls on the disk until nothing reaches it any more.
  void crash_in(std::uint64_t calls) {
    left_ = calls;
    crashed_ = false;
    failing_ = full_ = 0;
    disk_.fail = [this](FakeDisk::Call call, const std::string&) -> Status {
      crashed_ = crashed_ || left_-- == 0;
      if (crashed_) return fail(Errc::kIo, "the host has crashed");
      if (killing_ && call == FakeDisk::Call::kSync) throw Killed();
      const bool takes_room =
          call == FakeDisk::Call::kWrite || call == FakeDisk::Call::kPreallocate;
      if (takes_room && full_ != 0 && full_-- != 0) return fail(Errc::kFull, "the disk is full");
      if (failing_ == 0 || --failing_ != 0) return {};
      return fail(call == FakeDisk::Call::kPreallocate ? Errc::kFull : Errc::kIo, "as told");
    };
  }
  void cut() {
    disk_.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    crashed_ = false;
    full_ = 0;
    disk_.power_cut(random_);
  }
  void start() {
    journal_.reset();
    undurable_ = false;
    auto opened = Journal::open({kFolder, kSegment}, disk_, [this](const JournalNote& note) {
      if (!note.severe) return;
      const bool is_undurable = note.text.find("could not be made durable") != std::string::npos;
      const bool is_unreadable = note.text.find("the journal is read again") != std::string::npos;
      EXPECT_TRUE(is_undurable ? crashed_ || full_before_ : is_unreadable && crashed_)
          << note.text;
      undurable_ = true;
    });
    if (opened && !opened->health().is_unreadable())
      journal_.emplace(std::move(*opened));
    else
      crashed_ = true;  // a disk that cannot be read comes back with the host alone
    for (const std::string& zone : kZones) recorded_[zone] = false;
  }

  // What a manager does ----------------------------------------------------------------------

  void take_step() {
    switch (random_() % 20) {
      case 0:
      case 1:
        return compact();
      case 2:
        failing_ = 1 + random_() % 4;
        return;
      case 3:
        return commit(true);
      case 4:
        // The process alone: what it had written is in the page cache.
        if (random_() % 2 == 0) return restart();
        return journal_->seal();
      case 5:
        return be_killed();
      case 6:
      case 7:
        return image_.checkpoint(*memory_);
      default:
        return commit(false);
    }
  }

  /// Between a group's write and its sync, and somebody starts the manager again.
  void be_killed() {
    killing_ = true;
    commit(false);
    killing_ = false;
    if (!crashed_) restart();
  }

  void restart() {
    failing_ = 0;
    start_on_a_full_disk();
    // What cannot be made durable yet is served, and nothing is taken behind it: whether it counts
    // is only known when there is room again.
    while (undurable_ && !crashed_) undurable_ = !journal_->begin_segment();
    if (!crashed_) catch_up();
    if (!crashed_) image_.attach(*memory_);
  }
  /// One that has room again soon, perhaps after some updates were tried.
  void start_on_a_full_disk() {
    full_ = random_() % 3 == 0 ? random_() % 6 : 0;
    full_before_ = full_ != 0;
    start();
    full_before_ = false;
  }

  /// A group of changesets, as the committer takes it. `lost`: it is synced, and then the store is
  /// full.
  void commit(bool lost) {
    shm::Transaction transaction = store().begin();
    zone::Draft draft(transaction, store().current().root, store().current().number + 1);
    std::vector<JournalEntry> group;
    std::vector<std::string> recorded;
    for (std::uint64_t i = random_() % 4 + 1; i > 0; --i) {
      const std::string& zone = kZones[random_() % kZones.size()];
      const dns::Name apex = name(zone);
      auto applied = must(draft.apply(next_change(draft.view().zone_at(apex), zone), {}));
      if (!recorded_[zone] && std::find(recorded.begin(), recorded.end(), zone) == recorded.end()) {
        group.push_back(source_entry(apex, applied.from, *stat_source(file_of(zone))));
        recorded.push_back(zone);
      }
      group.push_back({apex, applied.from, applied.to, zone::encode(applied.effective)});
    }
    const std::uint64_t first = journal_->last_position() + 1;
    const auto position = append(group);
    KeptGroup kept;
    for (const JournalEntry& entry : group)
      kept.push_back(
          {first + kept.size(), entry.kind, to_text(entry.zone), entry.to.value, entry.payload});
    if (!position || lost) {
      unsure_.push_back(std::move(kept));
      if (position) journal_->abandon(first);
      return;
    }
    must(store().publish(std::move(transaction), draft.root(), *position));
    acknowledged_.insert(acknowledged_.end(), kept.begin(), kept.end());
    unsure_.clear();  // there is something behind them
    for (const std::string& zone : recorded) recorded_[zone] = true;
  }

  Result<std::uint64_t> append(const std::vector<JournalEntry>& group) {
    try {
      return journal_->append(group);
    } catch (const Killed&) {
      return fail(Errc::kIo, "killed");
    }
  }

  zone::Changeset next_change(const zone::ZoneView& before, const std::string& zone) {
    zone::Changeset changes{name(zone), {}, {}};
    changes.removed.push_back(record(soa(zone, before.serial().value)));
    changes.added.push_back(record(soa(zone, before.serial().value + 1)));
    // Some of several sectors, few of more than a segment.
    const std::uint64_t octets = random_() % 8 != 0 ? 10 + random_() % 200 : random_() % 2000;
    std::string text = fmt::format("\"{}\"", ++number_);
    for (std::uint64_t at = 0; at < octets; at += 200)
      text += fmt::format(" \"{:x>{}}\"", number_, std::min<std::uint64_t>(octets - at, 200));
    const std::string owner = fmt::format("r{}.{}", random_() % 12, zone);
    before.record_at(name(owner)).find(dns::RRType::kTXT).for_each_rdata([&](ByteView rdata) {
      changes.removed.push_back(
          {name(owner), dns::RRType::kTXT, {60}, {rdata.begin(), rdata.end()}});
    });
    changes.added.push_back(record(fmt::format("{} 60 TXT {}", owner, text)));
    return changes;
  }

  /// As JournalUpkeep has it, with groups between its steps.
  void compact() {
    const shm::VersionInfo now = store().current();
    const zone::StoreView version(store().window(), now.root, now.number);
    journal_->seal();
    const JournalFiles sealed = journal_->sealed_files();
    some_commits();
    const auto path = write_snapshot(disk_, kFolder, sealed, version, now.journal_position);
    some_commits();
    if (!path || crashed_) return;
    // Without it, as on a full disk, the image is older than what the journal still tells.
    if (random_() % 3 != 0) image_.checkpoint(*memory_);
    const auto done = journal_->replace_by_snapshot(*path, now.journal_position, sealed);
    static_cast<void>(done.has_value());  // when it fails, the journal goes on as it is
  }
  void some_commits() {
    for (std::uint64_t i = random_() % 4; i > 1 && !crashed_; --i) commit(false);
  }

  // What is there ----------------------------------------------------------------------------

  /// A start on what the crash has left, by a disk that works.
  void look() {
    start();
    ASSERT_TRUE(journal_.has_value());
    catch_up();
    compare_zones();
    restore();
    journal_.reset();
  }

  /// What a host without the store makes of image and journal; it goes on with that.
  void restore() {
    std::vector<dns::Name> lost;
    auto restored = image_.restore(*journal_, expect_none(), lost);
    if (!restored) return image_.begin_anew();
    const JournalFiles files = journal_->files();
    const bool folded = files.snapshot_position > image_.position();
    EXPECT_EQ(lost.size(), folded ? kZones.size() : 0)
        << "image at " << image_.position() << "; files" << said(files);
    const zone::StoreView served = memory_->version();
    const zone::StoreView found = restored->version();
    for (const std::string& zone : kZones) {
      const dns::Name apex = name(zone);
      if (std::find(lost.begin(), lost.end(), apex) != lost.end()) continue;
      EXPECT_EQ(lines_of(found.zone_at(apex)), lines_of(served.zone_at(apex)))
          << "image at " << image_.position() << "; files" << said(files);
    }
    // Zones that were unloaded come from their files then: compare_zones() has looked at that.
    if (!lost.empty()) return image_.begin_anew();
    ++from_image;
    memory_ = std::move(restored);
  }

  /// Compares the records, and brings the store up to them, as a manager does that finds it.
  void catch_up() {
    const JournalFiles files = journal_->files();
    EXPECT_EQ(files.health.lost().from, 0U);
    KeptGroup found;
    const auto read = for_each_record(
        disk_, files, files.snapshot_position,
        [&](JournalRecord&& one) -> Status {
          found.push_back(
              {one.position, one.kind, to_text(one.zone), one.to.value, std::move(one.payload)});
          return {};
        },
        expect_none());
    if (!read && crashed_) return;
    must(read);
    std::erase_if(acknowledged_,
                  [&](const Kept& kept) { return kept.position <= files.snapshot_position; });
    for (const KeptGroup& group : unsure_) {
      KeptGroup with = acknowledged_;
      with.insert(with.end(), group.begin(), group.end());
      if (found == with) acknowledged_ = std::move(with);
    }
    EXPECT_TRUE(found == acknowledged_)
        << "found" << said(found) << "; acknowledged" << said(acknowledged_) << "; unsure"
        << said(unsure_) << "; files" << said(files);
    unsure_.clear();
    journal_->skip_to(store().current().journal_position);
    const auto replayed = replay_journal(store(), *journal_, disk_, expect_none());
    EXPECT_TRUE(replayed || crashed_) << replayed.error().text;
  }

  static std::string said(const KeptGroup& group) {
    std::string text;
    for (const Kept& one : group)
      text += fmt::format(" {}:{}/{}", one.position, one.zone.front(), one.to);
    return text;
  }
  static std::string said(const JournalFiles& files) {
    std::string text = fmt::format(" snapshot {}", files.snapshot_position);
    for (const JournalFiles::Segment& segment : files.segments)
      text +=
          fmt::format(", from {} (void from {})", segment.header.first, segment.header.void_from);
    return text;
  }
  static std::string said(const std::vector<KeptGroup>& groups) {
    std::string text;
    for (const KeptGroup& group : groups) text += said(group) + " |";
    return text;
  }

  /// What a host without the store would serve.
  void compare_zones() {
    const auto history = JournalHistory::read(disk_, journal_->files(), expect_none());
    EXPECT_EQ(history->problem(), "");
    EXPECT_FALSE(history->damaged());
    const zone::StoreView version = memory_->version();
    for (const std::string& zone : kZones) {
      const dns::Name apex = name(zone);
      EXPECT_TRUE(must(history->merge_base(apex, UINT64_MAX)).dynamic_changes.known()) << zone;
      if (random_() % 4 != 0) continue;  // takes as long as all the rest
      shm::Transaction transaction = store().begin_private();
      const ZoneHistory before{*history, UINT64_MAX, false};
      const auto built = build_zone(transaction, apex, file_of(zone), &before);
      ASSERT_TRUE(built) << built.error().lines.front();
      EXPECT_EQ(built->skipped, 0U);
      const BuiltView recovered(store(), apex, *built->built);
      EXPECT_EQ(lines_of(must(recovered.zone())), lines_of(version.zone_at(apex)));
    }
  }
  static NoteSink expect_none() {
    return [](const JournalNote& note) { ADD_FAILURE() << note.text; };
  }

  // The store --------------------------------------------------------------------------------

  [[nodiscard]] shm::Store& store() noexcept { return memory_->store(); }
  [[nodiscard]] std::string file_of(const std::string& zone) const {
    return folder_.path() + "/" + zone;
  }
  void load(const std::string& zone) {
    std::ofstream(file_of(zone)) << "@ 60 SOA ns admin 10 3600 600 86400 300\n"
                                    "@ 60 NS ns\nns 60 A 192.0.2.1\n";
    shm::Transaction built_in = store().begin_private();
    auto built = build_zone(built_in, name(zone), file_of(zone), nullptr);
    ASSERT_TRUE(built);
    shm::Transaction transaction = store().begin();
    transaction.absorb(std::move(built_in));
    zone::Draft draft(transaction, store().current().root, store().current().number + 1);
    must(draft.put_zone_settings(name(zone), {}, zone == kZones[0] ? 0 : 1));
    must(draft.put_zone(name(zone), *built->built, built->source));
    must(store().publish(std::move(transaction), draft.root(), 0));
  }

  std::mt19937_64 random_;
  shm::test::Folder folder_;  // of zone files
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  FakeDisk disk_;
  std::optional<Journal> journal_;
  ImageBeside image_{disk_};
  std::uint64_t left_ = 0;     // calls until the crash
  std::uint64_t failing_ = 0;  // the call of that number from here fails, and only that; 0 = none
  std::uint64_t full_ = 0;     // calls that want room and find none, from here on
  bool killing_ = false;       // the process, at its next sync
  bool full_before_ = false;   // the start found it so
  bool undurable_ = false;     // the start told that its last segment may be lost again
  bool crashed_ = false;
  std::map<std::string, bool> recorded_;  // the journal has the zone's file, in this life
  int number_ = 0;
  KeptGroup acknowledged_;         // behind the last snapshot that was seen
  std::vector<KeptGroup> unsure_;  // groups that failed, and nothing was synced since
};

int Host::from_image = 0;

TEST(JournalStates, HaveWhatWasAcknowledgedInOrder) {
  const char* const given = std::getenv("PANDO_SEED");
  const std::uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  const char* const wanted = std::getenv("PANDO_CRASH_STATES");
  const std::uint64_t states = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : 500;
  std::cout << states << " states from PANDO_SEED=" << first << std::endl;
  std::uint64_t tried = 0;
  for (std::uint64_t seed = first; tried < states; ++seed) {
    SCOPED_TRACE(fmt::format("again with PANDO_SEED={} PANDO_CRASH_STATES={}", seed, kLives));
    Host host(seed);
    for (int life = 0; life < kLives && !::testing::Test::HasFailure(); ++life, ++tried)
      host.live();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(Host::from_image, 0);
  std::cout << Host::from_image << " of the starts behind them from an image" << std::endl;
}

}  // namespace
}  // namespace pando::manager
