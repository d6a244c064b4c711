// Journal, image and live store on a disk whose media fail. A state is a run of updates, its end
// (the process is killed, or the host loses its memory), and one or more starts on media with
// faults. While places cannot be read, a zone is served with all that an intact copy has, or waits.
// When all can be read again, each zone is served with each update of which an intact copy is left.
// No serial ever stands for two contents.
//
// The starts are the product's: Startup opens journal, image and store, ZoneFileCheck loads zones,
// examine_journal() finds damage, write_snapshot() heals. The model plays the timers between them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "ipc/log.h"
#include "manager/commit/next_version.h"
#include "manager/journal/journal.h"
#include "manager/journal/journal_examination.h"
#include "manager/journal/journal_identity.h"
#include "manager/journal/journal_snapshot.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/start/startup.h"
#include "manager/support/withheld_data.h"
#include "manager/zonefile/zone_file_check.h"
#include "tests/crash/media_clients.h"
#include "tests/crash/media_faults.h"
#include "tests/unit/manager/zone_support.h"
#include "zone/read/each_record.h"

namespace pando::manager {
namespace {

using shm::test::must;
using testing::FakeDisk;
using testing::MediaClients;
using testing::MediaFaults;
using testing::name;
using testing::record;
using testing::ServedZone;

constexpr const char* kJournal = "/disk/journal";
constexpr const char* kIdentity = "/disk/journal/identity";
constexpr const char* kImage = "/disk/image/zones.image";
constexpr std::uint64_t kSegment = 6000;
constexpr std::uint64_t kLongSegment = 60'000;  // with a reserve of many pages
constexpr std::uint64_t kStore = 64 << 20;
constexpr int kLives = 10;  // of one host
/// Enough that each kind of event takes place, whatever the seed.
constexpr std::uint64_t kStates = 500;
const std::vector<std::string> kZones = {"one", "two", "three"};

/// Zones of which a store or an image has data up to a position, without serving them.
using Withheld = std::map<std::string, std::uint64_t>;

/// The image as it was written last.
struct WrittenImage {
  std::uint64_t position = 0;
  std::set<std::string> zones;  // with data
  Withheld withheld{};
};

RuntimePtr runtime_in(const shm::test::Folder& folder, bool has_image) {
  config::Settings settings;
  settings.store.path = folder.store();
  settings.store.size_limit = kStore;
  settings.store.journal = kJournal;
  if (has_image) settings.store.image = kImage;
  settings.server.run_directory = folder.path();
  return must(make_runtime(std::move(settings)));
}

class MediaHost {
 public:
  explicit MediaHost(std::uint64_t seed)
      : random_(seed),
        removals_(seed),
        removes_(seed % 2 == 0),
        segment_(seed % 3 == 0 ? kLongSegment : kSegment),
        checkpoints_of_12_(random_() % 3) {
    disk_.sectors = {512, 4096};
    for (const std::string& zone : kZones) write_file(zone);
    start(false);
    run();
    for (const std::string& zone : kZones) EXPECT_TRUE(is_served(zone));
  }
  MediaHost(const MediaHost&) = delete;
  MediaHost& operator=(const MediaHost&) = delete;
  ~MediaHost() { stop(); }

  void live() {
    for (std::uint64_t steps = random_() % 16 + 4; steps > 0; --steps) {
      take_step();
      if (removes_ && removed_.empty() && removals_() % 16 == 0) leave();
    }
    stop();
    steps_.clear();
    if (random_() % 3 != 0) lose_memory();
    faults_.strike(random_() % 4);
    serves_all_ = faults_.is_reserve_alone();
    counts["starts beside an unreadable reserve alone"] += serves_all_ ? 1 : 0;
    bool live = true;  // unless the store is lost already
    for (std::uint64_t starts = random_() % 3 == 0 ? 2 + random_() % 2 : 1; starts > 0; --starts) {
      stop();
      start(live);
      live = random_() % 2 == 0;
      if (::testing::Test::HasFailure()) return;
      run();
      serves_all_ = false;  // records may have come to lie there
    }
    faults_.make_readable();
    run();
    check_complete();
  }

  static MediaFaults::Counts counts;

 private:
  // A manager ----------------------------------------------------------------------------------

  void take_step() {
    if (random_() % 12 < checkpoints_of_12_) return checkpoint();
    switch (random_() % 12) {
      case 0:
        return compact();
      case 1:
        return journal().seal();
      default:
        return commit_if_possible();
    }
  }

  /// A zone leaves the configuration, as ZoneTableSync has it. The journal keeps its updates.
  void leave() {
    const std::string zone = kZones[removals_() % kZones.size()];
    if (!is_served(zone) || !check_whole(journal())) return;
    if (remove(zone)) removed_ = zone;
  }
  bool remove(const std::string& zone) {
    NextVersion next(store(), NextVersion::Step::kCommit);
    const std::vector<JournalEntry> record = {
        removed_entry(name(zone), zone_of(zone).serial(), 1)};
    must(next.draft().remove_zone(name(zone)));
    const auto position = journal().append(record);
    if (!position) return false;
    must(next.publish(*position));
    pending_.erase(zone);
    clients_.zone_left(zone);
    image_.zones.erase(zone);  // its record puts the image's data away
    image_.withheld.erase(zone);
    ++counts["zones that left"];
    return true;
  }

  /// As Server::tick(), with the load of zones that precedes it at a start.
  void run() {
    load_zones();
    for (std::uint64_t ticks = random_() % 3 + 3; ticks > 0; --ticks) {
      if (::testing::Test::HasFailure()) return;
      check_served();
      if (random_() % 2 == 0) commit_if_possible();
      secure();
      check_journal();
      if (random_() % 12 < checkpoints_of_12_) checkpoint();
      load_zones();
    }
    check_served();
  }

  /// As Committer::secure_journal().
  void secure() {
    if (journal().health().has_durable_end() || !journal().append({})) return;
    if (journal().last_position() > store().current().journal_position)
      must(recover_position(store(), journal().last_position()));
  }

  /// As JournalUpkeep::check().
  void check_journal() {
    for (const std::string& zone : kZones)
      if (zone != removed_ && !is_served(zone)) return;
    const bool heals = journal().health().has_gap_to_close() || journal().health().lacks_records();
    if (heals) {
      counts[journal().health().lacks_records() ? "journals to be healed" : "gaps to be closed"] +=
          1;
      return compact();
    }
    if (!std::exchange(is_examination_due_, false)) return;
    const JournalFaults faults = examine_journal(disk_, journal().files());
    counts["unreadable places found beside a live store"] += faults.unreadable.empty() ? 0 : 1;
    tell_faults(faults, journal());
  }

  /// As JournalUpkeep makes a snapshot.
  void compact() {
    using Unreadable = JournalHistory::Unreadable;
    const shm::VersionInfo now = store().current();
    journal().seal();
    const JournalFiles sealed = journal().sealed_files();
    const bool closes_gap = journal().health().has_gap_to_close() && !zone_without_data(version());
    const auto unreadable = closes_gap ? Unreadable::kDamage : Unreadable::kProblem;
    std::string unread;
    const auto path = write_snapshot(disk_, kJournal, sealed, version(), now.journal_position,
                                     unreadable, &unread);
    if (!path) {
      if (!unread.empty() && journal().health().state() == JournalHealth::State::kBehind)
        journal().report(JournalHealth::State::kPartUnread, unread);
      return;
    }
    forget_destroyed();
    if (closes_gap && !removed_.empty())
      counts["updates of removed zones that are kept unread"] += clients_.forget(removed_);
    // Without it, as on a full disk, the image is older than what the journal still tells.
    if (random_() % 3 < checkpoints_of_12_) checkpoint();
    steps_ += fmt::format("; snapshot at {}", now.journal_position);
    must(journal().replace_by_snapshot(
        *path, now.journal_position, sealed,
        closes_gap ? Journal::Replaced::kKept : Journal::Replaced::kRemoved));
    faults_.replaced(now.journal_position);
    ++counts["journal snapshots"];
  }

  /// As Checkpointer, which waits for a durable journal.
  void checkpoint() {
    if (!data_->image || !journal().health().has_durable_end()) return;
    auto pin = data_->slots->pin_own(store().current().number);
    auto written = data_->image->write(store().capture(), store().window(),
                                       [](std::uint64_t) { return true; });
    if (written) {
      data_->image_pin = std::move(pin);
      image_ = {store().current().journal_position, {}, withheld_};
      for (const std::string& zone : kZones)
        if (is_served(zone)) image_.zones.insert(zone);
      if (written->anew) faults_.image_is_sound();
    } else if (!data_->image->in_place()) {
      data_->image_pin = {};
    }
  }

  void commit_if_possible() {
    if (!check_whole(journal())) return;
    const Status done = commit();
    counts[done ? "updates" : "updates refused"] += 1;
    check_serials();
  }

  /// A group with updates of one zone or more.
  Status commit() {
    NextVersion next(store(), NextVersion::Step::kCommit);
    std::vector<JournalEntry> group;
    std::vector<std::pair<std::size_t, int>> updates;  // index in the group, number
    std::set<std::string> named;
    for (std::uint64_t i = random_() % 4 + 1; i > 0; --i) {
      const std::string& zone = kZones[random_() % kZones.size()];
      const zone::ZoneView before = next.draft().view().zone_at(name(zone));
      if (!before || !before.loaded()) continue;
      if (named.insert(zone).second) begin_records(group, zone, before);
      auto applied = must(next.draft().apply(next_change(before, zone), {}));
      updates.emplace_back(group.size(), number_);
      group.push_back({name(zone), applied.from, applied.to, zone::encode(applied.effective)});
    }
    if (group.empty()) return {};
    auto position = journal().append(group);
    if (!position) return pass(position);
    must(next.publish(*position));
    for (const std::string& zone : named) pending_.erase(zone);
    for (const auto& [index, number] : updates)
      clients_.acknowledge(zone_named(group[index].zone), number,
                           *position - group.size() + 1 + index);
    return {};
  }

  /// As PendingRecords puts records of a zone that was loaded while the journal took none before
  /// the zone's first changeset; then the merge base.
  void begin_records(std::vector<JournalEntry>& group, const std::string& zone,
                     const zone::ZoneView& before) {
    if (const auto found = pending_.find(zone); found != pending_.end())
      group.insert(group.end(), found->second.begin(), found->second.end());
    group.push_back(source_entry(name(zone), before.serial(), before.source()));
  }

  zone::Changeset next_change(const zone::ZoneView& before, const std::string& zone) {
    const auto soa = [&](std::uint32_t serial) {
      return record(
          fmt::format("{0} 60 SOA ns.{0} admin.{0} {1} 3600 600 86400 300", zone, serial));
    };
    const std::string filler(random_() % 4 == 0 ? 240 : 10 + random_() % 60, 'x');
    return {name(zone),
            {soa(before.serial().value)},
            {soa(before.serial().value + 1),
             record(fmt::format("u{}.{} 60 TXT \"{}\"", ++number_, zone, filler))}};
  }

  // Starts -------------------------------------------------------------------------------------

  void stop() {
    if (!data_) return;
    if (data_->store) data_->store->set_slots(nullptr);
    data_.reset();
    pending_.clear();
  }

  void lose_memory() {
    disk_.power_cut(random_);
    memory_ = std::make_unique<shm::test::Folder>();
  }

  /// `live`: a store of the last process is used.
  void start(bool live) {
    if (!live) lose_memory();
    live = std::filesystem::exists(memory_->store());
    if (!open(live)) {
      // Nothing that can be read knows whose journal this is, so the operator brings the file back.
      EXPECT_TRUE(!live && faults_.is_unreadable()) << why_ << said();
      ++counts["starts that wait for the operator"];
      faults_.make_readable();
      must(write_file_atomically(disk_, kIdentity, identity_));
      ASSERT_TRUE(open(live)) << why_ << said();
    }
    if (journal_identity(disk_, kJournal)) identity_ = disk_.contents(kIdentity);
    note_start(live);
    make_zones();
    is_examination_due_ = true;
  }

  bool open(bool live) {
    const Host host{};
    UnreadLists lists;
    CurrentConfiguration configuration{"", runtime_in(*memory_, checkpoints_of_12_ != 0), 0, 0};
    Startup startup(host, configuration, lists,
                    {disk_, {"", segment_, std::chrono::milliseconds(0)}});
    auto opened = startup.open();
    if (!opened) {
      why_ = opened.error().text;
      return false;
    }
    data_ = std::move(*opened);
    EXPECT_EQ(data_->zones_missing, !live) << said();
    return true;
  }

  void note_start(bool live) {
    steps_ += live ? "; start beside the store" : data_->restored ? "; start from the image" : "; start from nothing";
    counts[live              ? "starts beside a live store"
           : data_->restored ? "starts from the image"
                             : "starts from files and journal"] += 1;
    is_image_used_ = data_->restored;
    image_at_start_ = image_;
    if (!live) note_withheld();
    if (!live) clients_.store_is_new();
    note_exceptions(live);
    if (!live && !data_->restored && image_.position != 0) {
      EXPECT_TRUE(faults_.is_image_struck()) << "a sound image was not used" << said();
      // What could not be read may be good: it is kept for the operator.
      EXPECT_TRUE(faults_.is_image_hit() || disk_.has(std::string(kImage) + ".quarantined") ||
                  disk_.has(kImage))
          << "an image that may be good is gone" << said();
    }
    if (data_->restored) faults_.image_is_sound();  // each chunk was compared
    if (!data_->image || data_->image->index() == nullptr) image_ = {};
  }

  /// Zones that may have records in a part that cannot be read are not served from the image. They
  /// wait for the journal, and the store keeps the image's data, unless the journal's snapshot has
  /// newer ones.
  void note_withheld() {
    withheld_ = is_image_used_ ? image_.withheld : Withheld();
    for (const std::string& zone : kZones) {
      if (!is_image_used_ || !faults_.is_unreadable() || is_served(zone)) continue;
      if (!image_at_start_.zones.contains(zone)) continue;
      if (faults_.snapshot_has(to_text(name(zone)), image_at_start_.position)) continue;
      withheld_[zone] = image_at_start_.position;
      ++counts["zones of the image that wait for the journal"];
    }
  }

  /// The two faults without proof. Damage of the last group may look like a group that was never
  /// synced; a live store or a newer image tells otherwise. A journal snapshot that is damaged in
  /// two places may have lost a zone's serial.
  void note_exceptions(bool live) {
    if (live) return;
    const std::uint64_t known = is_image_used_ ? image_at_start_.position : 0;
    for (const std::string& zone : kZones) {
      if (faults_.is_in_torn_end(to_text(name(zone)), known))
        clients_.may_go_back(zone,
                             "EXCEPTION (decision 068): zones set back by zeros in the last group");
      if (faults_.is_serial_lost(to_text(name(zone))))
        clients_.may_go_back(zone,
                             "zones whose serial both places of the journal's snapshot had lost");
    }
  }

  /// Zones that anybody may update, without data.
  void make_zones() {
    if (!removed_.empty() && removals_() % 2 == 0) {
      counts["zones that came back"] += 1;
      removed_.clear();
    }
    // A store from the image may have the zone from before it left, served or withheld.
    if (!removed_.empty() && zone_of(removed_)) remove(removed_);
    NextVersion next(store(), NextVersion::Step::kCommit);
    zone::ZoneSettings settings;
    settings.allow_update.emplace_back();
    for (std::uint32_t i = 0; i < kZones.size(); ++i)
      if (kZones[i] != removed_ && !next.draft().view().zone_at(name(kZones[i])))
        must(next.draft().put_zone_settings(name(kZones[i]), settings, i));
    if (version().server_settings_bytes().empty()) must(next.draft().put_server_settings({}));
    if (next.is_changed()) must(next.publish(store().current().journal_position));
  }

  /// As ZoneFileLoads loads zones at a start, and those that wait for the journal later.
  void load_zones() {
    const auto history =
        std::make_shared<HistorySource>(disk_, journal(), [](const JournalNote&) {});
    for (const std::string& zone : kZones)
      if (zone != removed_ && !is_served(zone)) load(zone, history);
  }

  void load(const std::string& zone, const std::shared_ptr<HistorySource>& history) {
    ZoneFileCheck check;
    check.job = {name(zone), file_of(zone)};
    check.history = history;
    check.version = version();
    check.position = store().current().journal_position;
    check.progress = std::make_shared<LoadProgress>();
    check.run(store());
    steps_ += fmt::format("; load {}{}", zone, check.zone ? "" : " waits");
    if (!check.zone) {
      EXPECT_TRUE(check.outcome && check.outcome->waits_for_journal) << zone << said();
      EXPECT_FALSE(serves_all_) << zone << " waits for space without records" << said();
      ++counts["loads that wait for the journal"];
      return;
    }
    NextVersion next(store(), NextVersion::Step::kCommit);
    next.transaction().absorb(std::move(*check.transaction));
    must(next.draft().put_zone(name(zone), *check.zone->built, check.zone->source));
    must(drop_withheld_data(next.draft(), name(zone)));
    std::uint64_t position = store().current().journal_position;
    if (!check.zone->journal.empty()) {
      if (const auto appended = journal().append(check.zone->journal))
        position = *appended;
      else
        pending_[zone] = check.zone->journal;  // the zone is served all the same
    }
    must(next.publish(position));
  }

  // What must be ---------------------------------------------------------------------------------

  /// Whether a copy has the update, after the last start or beside it.
  [[nodiscard]] bool is_intact(const std::string& zone, std::uint64_t position) const {
    if (is_image_used_ && position <= image_at_start_.position && image_at_start_.zones.contains(zone))
      return true;
    const auto withheld = withheld_.find(zone);
    if (withheld != withheld_.end() && position <= withheld->second) return true;
    return faults_.journal_has(to_text(name(zone)), position);
  }

  void check_served() {
    for (const std::string& zone : kZones) {
      if (!is_served(zone)) continue;
      clients_.check_updates(served(zone), said());
      withheld_.erase(zone);
    }
    check_serials();
  }

  /// A snapshot of the journal has what is intact, also for zones that are not loaded.
  void forget_destroyed() {
    for (const std::string& zone : kZones)
      if (!is_served(zone)) clients_.forget_destroyed(zone);
  }

  void check_serials() {
    for (const std::string& zone : kZones)
      if (is_served(zone)) clients_.check_serial(served(zone), said());
  }

  /// With all readable again, nothing waits, and the journal is healed.
  void check_complete() {
    for (const std::string& zone : kZones)
      EXPECT_TRUE(zone == removed_ || is_served(zone)) << zone << " waits for ever" << said();
    EXPECT_TRUE(journal().append({}))
        << "updates are refused: " << journal().health().refusal() << said();
    EXPECT_FALSE(journal().health().lacks_records()) << journal().health().lack() << said();
    compact();
    faults_.healed();
  }

  [[nodiscard]] std::string said() const {
    return fmt::format(" (image at {}{}; {}){}", image_at_start_.position,
                       is_image_used_ ? ", used" : "", faults_.said(), steps_);
  }

  ServedZone served(const std::string& zone) {
    ServedZone found{zone, zone_of(zone).serial().value};
    must(zone::for_each_record(
        zone_of(zone), [&](dns::NameView owner, dns::RRType, dns::Ttl, ByteView) -> Status {
          const std::string text = to_text(owner);
          if (text.front() == 'u') found.numbers.insert(std::stoi(text.substr(1)));
          return {};
        }));
    return found;
  }

  [[nodiscard]] shm::Store& store() noexcept { return *data_->store; }
  [[nodiscard]] Journal& journal() noexcept { return *data_->journal; }
  [[nodiscard]] zone::StoreView version() {
    const shm::VersionInfo now = store().current();
    return {store().window(), now.root, now.number};
  }
  [[nodiscard]] zone::ZoneView zone_of(const std::string& zone) {
    return version().zone_at(name(zone));
  }
  [[nodiscard]] bool is_served(const std::string& zone) {
    const zone::ZoneView view = zone_of(zone);
    return view && view.loaded();
  }
  static const std::string& zone_named(const dns::Name& apex) {
    return *std::find_if(kZones.begin(), kZones.end(),
                         [&](const std::string& zone) { return apex == name(zone); });
  }
  [[nodiscard]] std::string file_of(const std::string& zone) const {
    return folder_.path() + "/" + zone;
  }
  void write_file(const std::string& zone) {
    std::ofstream(file_of(zone)) << "@ 60 SOA ns admin 10 3600 600 86400 300\n"
                                    "@ 60 NS ns\nns 60 A 192.0.2.1\n";
  }

  std::mt19937_64 random_;
  std::mt19937_64 removals_;         // of its own: runs without removals stay as they are
  bool removes_;
  std::string removed_;  // the zone that is not configured; empty: all are
  std::uint64_t segment_;            // bytes
  std::uint64_t checkpoints_of_12_;  // steps of twelve; 0: there is no image
  shm::test::Folder folder_;  // of zone files
  std::unique_ptr<shm::test::Folder> memory_ = std::make_unique<shm::test::Folder>();
  FakeDisk disk_;
  MediaFaults faults_{disk_, random_, counts, kImage};
  std::unique_ptr<OpenedData> data_;
  bool serves_all_ = false;  // nothing has a fault that records may have
  bool is_examination_due_ = false;  // as JournalUpkeep
  std::map<std::string, std::vector<JournalEntry>> pending_;  // of zones
  WrittenImage image_;
  WrittenImage image_at_start_;
  Withheld withheld_;
  bool is_image_used_ = false;         // by the last start
  Bytes identity_;
  std::string steps_;  // since the faults, for people
  std::string why_;  // of the last start that failed
  MediaClients clients_{counts, [this](const std::string& zone, std::uint64_t position) {
                          return is_intact(zone, position);
                        }};
  int number_ = 0;
};

MediaFaults::Counts MediaHost::counts;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 0) : otherwise;
}

TEST(MediaStates, LoseNothingThatAnIntactCopyHas) {
  log::start({.level = "error"});
  const std::uint64_t first = number_from("PANDO_SEED", std::random_device{}());
  const std::uint64_t states = number_from("PANDO_CRASH_STATES", kStates);
  std::cout << states << " states from PANDO_SEED=" << first << std::endl;
  std::uint64_t tried = 0;
  for (std::uint64_t seed = first; tried < states; ++seed) {
    SCOPED_TRACE(fmt::format("again with PANDO_SEED={} PANDO_CRASH_STATES={}", seed, kLives));
    MediaHost host(seed);
    for (int life = 0; life < kLives && !::testing::Test::HasFailure(); ++life, ++tried)
      host.live();
    if (::testing::Test::HasFailure()) return;
  }
  for (const auto& [what, times] : MediaHost::counts) std::cout << what << ": " << times << "\n";
  if (states < kStates) return;  // a state that somebody looks at again
  for (const char* what :
       {"starts beside a live store", "starts from the image", "starts from files and journal",
        "gaps to be closed", "journals to be healed", "loads that wait for the journal",
        "updates lost with their last copy", "serials raised for a doubt",
        "unreadable places found beside a live store", "zones that came back",
        "zones of the image that wait for the journal",
        "starts beside an unreadable reserve alone"})
    EXPECT_GT(MediaHost::counts[what], 0U) << what;
}

}  // namespace
}  // namespace pando::manager
