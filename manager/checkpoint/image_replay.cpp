#include "manager/checkpoint/image_replay.h"

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/crash_point.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/checkpoint/store_replay.h"
#include "manager/commit/zone_diff.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/journal/snapshot_file.h"
#include "manager/support/found_damage.h"
#include "manager/support/soa.h"
#include "manager/support/withheld_data.h"
#include "manager/upkeep/compaction_rest.h"
#include "zone/draft/compaction.h"
#include "zone/draft/discarded_blocks.h"

namespace pando::manager {

namespace {

/// A version for each record would cost a root block each.
constexpr std::size_t kRecordsPerVersion = 256;
/// Records per version while less than an eighth of the store is free. With only half of that free,
/// drafts give up histories and snapshots.
constexpr std::size_t kRecordsPerSmallVersion = 8;
constexpr std::uint64_t kCrowdedPart = 8;
/// Of a million zones, each group's sync is one of a few hundred.
constexpr std::size_t kRecordsPerGroup = 4096;
/// Number of lost records that is assumed where nobody can count them. No larger step of a serial
/// is needed for as many updates as fit a segment.
constexpr std::uint64_t kUncounted = 1 << 20;
/// Serial step for zones whose last serial is unknown, because earlier faults may have raised it
/// often.
constexpr std::uint64_t kUnknownSerialStep = kUncounted << 6;
/// RFC 1982: no step of a serial may be 2^31 or more.
constexpr std::uint64_t kLargestRaise = (std::uint64_t{1} << 31) - 2;
/// Few, because moved blocks need new space before their old space can be used again.
constexpr std::size_t kNamesPerStep = 32;
constexpr std::size_t kBlocksPerStep = 1024;

bool is_crowded(const shm::StoreStats& stats) noexcept {
  const std::uint64_t bytes = stats.chunks_in_use * shm::kChunkBytes;
  return bytes + stats.limit_bytes / kCrowdedPart >= stats.limit_bytes;
}

bool is_wasteful(const shm::StoreStats& stats) noexcept {
  const std::uint64_t bytes = stats.chunks_in_use * shm::kChunkBytes;
  return bytes > stats.live_bytes && (bytes - stats.live_bytes) * 100 >= bytes * kGarbagePercent;
}

zone::DataLimits limits_of_histories(const zone::DataLimits& limits) noexcept {
  zone::DataLimits all = zone::DataLimits::none();
  all.history = limits.history;
  all.history_total = limits.history_total;
  all.snapshots = UINT64_MAX;
  return all;
}

class ImageReplay {
 public:
  ImageReplay(shm::Store& store, const zone::DataLimits& limits)
      : store_(store),
        replay_(store, RecordReplay::Data::kImage, limits_of_histories(limits)),
        last_(store.current().journal_position),
        image_(last_) {}

  /// Counts a gap: `records` records before the next one are lost.
  void pass_gap(std::uint64_t records) noexcept {
    ++gaps_;
    lost_records_ += std::min(records, kUncounted);
  }
  /// The highest serials of zones are lost as well.
  void pass_lost_serials() noexcept { step_ += kUnknownSerialStep; }

  Status take(const JournalRecord& record) {
    last_ = record.position;
    Seen& state = see(record.zone, record.to);
    const zone::ZoneView zone = replay_.zone(record.zone);
    const bool is_loaded = zone && zone.loaded();
    auto step = replay_.take(record, is_loaded && is_in_doubt(zone), state.lacks);
    if (!step) return pass(step);
    if (!is_loaded) return {};
    count(*step, record, state);
    const bool crowded = is_crowded(store_.stats());
    if (++pending_ < (crowded ? kRecordsPerSmallVersion : kRecordsPerVersion)) return {};
    if (auto published = publish(); !published) return published;
    return crowded ? make_room() : Status();
  }

  Status lose(const dns::Name& zone) {
    const zone::ZoneView view = replay_.zone(zone);
    if (!view || !view.loaded()) return {};
    lost_.push_back(zone.folded());
    return replay_.draft().unload_zone(zone);
  }

  /// Unloads the zones for which `which` is true. The data of a primary zone are kept, with the
  /// records so far: no other copy may have all of that. Records may be lost after the image.
  Status withhold_all(const std::function<bool(const zone::ZoneView&)>& which) {
    for (const dns::Name& name : loaded_zones(which)) {
      if (is_secondary(replay_.zone(name))) {
        if (auto lost = lose(name); !lost) return lost;
        continue;
      }
      lost_.push_back(name.folded());
      if (auto kept = withhold_data(replay_.draft(), name, image_); !kept) return kept;
    }
    return {};
  }

  /// A serial that the zone had, for raise_serials().
  void note_serial(dns::NameView zone, dns::Serial serial) { see(zone, serial); }

  /// Only zones for which `which` is true; empty: all.
  Status lose_all(const std::function<bool(const zone::ZoneView&)>& which = {}) {
    for (const dns::Name& name : loaded_zones(which))
      if (auto lost = lose(name); !lost) return lost;
    return {};
  }

  /// After a gap, zones that may have lost records get a serial that nobody has seen: other data
  /// have had each serial that the lost records led to.
  Status raise_serials() {
    if (gaps_ == 0) return {};
    std::vector<dns::Name> names;
    replay_.draft().view().for_each_zone([&](const zone::ZoneView& zone) {
      if (is_in_doubt(zone)) names.emplace_back(zone.apex());
    });
    for (const dns::Name& name : names) {
      if (auto raised = raise_serial(replay_.zone(name)); !raised) return raised;
      if (++pending_ < kRecordsPerVersion) continue;
      if (auto published = publish(); !published) return published;
    }
    log::error("image_replayed_with_gaps", "records_lost", lost_records_, "zones", names.size());
    found_damage().add(fmt::format(
        "the journal lacks {} records behind the image: {} zones that may have lost some have new "
        "serials",
        lost_records_, names.size()));
    return {};
  }

  /// Without these records another start from the same image would not know of the serials: one
  /// more lost record lowers the highest serial as much as it adds to the step. A journal that
  /// takes none has told why, and a journal snapshot will have the serials.
  void journal_raised(Journal& journal) const {
    const std::span<const JournalEntry> all(raised_);
    for (std::size_t done = 0; done < all.size(); done += kRecordsPerGroup) {
      const auto group = all.subspan(done, std::min(kRecordsPerGroup, all.size() - done));
      if (!journal.append(group)) return;
    }
  }

  void reach(std::uint64_t position) noexcept { last_ = std::max(last_, position); }

  Status publish() {
    if (auto published = replay_.publish(last_); !published) return published;
    crash_point("image-replayed");
    pending_ = 0;
    return {};
  }

  [[nodiscard]] bool has_records(const zone::ZoneView& zone) const {
    return seen_.contains(dns::folded_key(zone.apex()));
  }
  [[nodiscard]] std::uint64_t applied() const noexcept { return applied_; }
  [[nodiscard]] const std::vector<dns::Name>& lost() const noexcept { return lost_; }

 private:
  [[nodiscard]] std::vector<dns::Name> loaded_zones(
      const std::function<bool(const zone::ZoneView&)>& which) {
    std::vector<dns::Name> names;
    replay_.draft().view().for_each_zone([&](const zone::ZoneView& zone) {
      if (zone.loaded() && (!which || which(zone))) names.emplace_back(zone.apex());
    });
    return names;
  }

  /// Frees data that the published version no longer needs, as space for the next one. Nothing is
  /// served before the replay ends, so all of this is one walk.
  Status make_room() {
    store_.reclaim();
    if (!is_crowded(store_.stats())) return {};
    Status done = replay_.draft().view().has_discarded() ? dismantle() : Status();
    if (done) done = compact();
    store_.forget_victims();
    store_.reclaim();
    // With no space even for this, the next record tells whether it fits.
    if (!done && done.error().code != Errc::kFull) return done;
    replay_.drop();
    return {};
  }

  Status dismantle() {
    return in_steps([this] { return zone::dismantle_discarded(replay_.draft(), kBlocksPerStep); });
  }

  /// Runs steps until one reports that it was the last. A step that changed something is published,
  /// so that its freed space serves the next step.
  template <class Step>
  Status in_steps(const Step& step) {
    for (;;) {
      const shm::Ref<> before = replay_.draft().root();
      auto finished = step();
      if (!finished) return pass(finished);
      const bool changed = !(replay_.draft().root() == before);
      if (changed)
        if (auto published = publish(); !published) return published;
      if (changed) store_.reclaim();
      if (*finished) return {};
    }
  }

  Status compact() {
    const shm::StoreStats stats = store_.stats();
    if (!is_crowded(stats) || !is_wasteful(stats) ||
        store_.choose_victims(kVictimPercent, stats.chunks_in_use / 2 + 1) == 0)
      return {};
    zone::CompactCursor cursor;
    return in_steps([&]() -> Result<bool> {
      if (!store_.narrow_victims()) return true;
      return zone::compact(replay_.draft(), cursor, kNamesPerStep, {});
    });
  }

  /// The zone's part in the records so far; only zones with records have one.
  struct Seen {
    dns::Serial highest;
    std::uint64_t sure = 0;  // no record of the zone is lost in this many gaps
    bool lacks = false;      // a record of the zone is lost
  };

  Seen& see(dns::NameView zone, dns::Serial serial) {
    auto [seen, is_new] = seen_.try_emplace(dns::folded_key(zone));
    dns::Serial& highest = seen->second.highest;
    if (is_new || serial.ahead_of(highest)) highest = serial;
    return seen->second;
  }

  /// Whether records of a loaded zone may be lost, which a secondary's primary sends again.
  [[nodiscard]] bool is_in_doubt(const zone::ZoneView& zone) const {
    if (gaps_ == 0 || !zone.loaded() || is_secondary(zone)) return false;
    const auto seen = seen_.find(dns::folded_key(zone.apex()));
    return seen == seen_.end() ? may_have_updates(zone)
                               : seen->second.lacks || seen->second.sure < gaps_;
  }

  /// Notes what a record has done to a zone that was loaded.
  void count(ReplayStep step, const JournalRecord& record, Seen& state) {
    switch (step) {
      case ReplayStep::kApply:
        ++applied_;
        state.sure = gaps_;
        break;
      case ReplayStep::kApplyBehindGap:
        ++applied_;
        state.lacks = true;
        break;
      case ReplayStep::kSkip:
        state.lacks = true;
        break;
      case ReplayStep::kConfirm:
        state.sure = gaps_;
        state.lacks = false;
        break;
      case ReplayStep::kForget:
      case ReplayStep::kReload:
        lost_.push_back(record.zone.folded());
        break;
      default:
        break;
    }
  }

  /// A signed SOA keeps its serial, since nobody can sign it anew here.
  Status raise_serial(const zone::ZoneView& zone) {
    auto present = soa_record(zone);
    if (!present || zone.soa().signature_count() != 0) return {};
    const auto seen = seen_.find(dns::folded_key(zone.apex()));
    dns::Serial highest = zone.serial();
    if (seen != seen_.end() && seen->second.highest.ahead_of(highest))
      highest = seen->second.highest;
    const auto step = static_cast<std::uint32_t>(std::min(lost_records_ + step_, kLargestRaise));
    const dns::Serial unused = dns::Serial{highest.value + step}.next();
    raised_.push_back(source_entry(dns::Name(zone.apex()), unused, zone.source()));
    zone::Changeset changes{dns::Name(zone.apex()), {*present}, {*present}};
    set_soa_serial(changes.added.back().rdata, unused);
    return replay_.change(changes);
  }

  shm::Store& store_;
  StoreReplay replay_;
  std::size_t pending_ = 0;
  std::uint64_t last_;
  std::uint64_t image_;  // position of the image
  std::uint64_t applied_ = 0;
  std::uint64_t gaps_ = 0;
  std::uint64_t lost_records_ = 0;
  std::uint64_t step_ = 0;  // of serials, beside the number of lost records
  std::unordered_map<std::string, Seen> seen_;  // by folded name
  std::vector<dns::Name> lost_;  // each zone once: an unloaded zone has no data
  std::vector<JournalEntry> raised_;  // records of raised serials
};

/// Whether the journal's records do not continue the image: those after it were folded into the
/// journal's snapshot, or the journal began after a dump or another store. The journal snapshot
/// names the zones with records, but not those that left the configuration and came again.
bool has_forgotten(const JournalFiles& present, std::uint64_t position) noexcept {
  // A snapshot of the image's own position proves that this journal has had the position. Refused
  // groups on both sides of the position may have made void positions only.
  if (present.snapshot_position >= position) return present.snapshot_position > position;
  if (present.segments.empty()) return false;
  // The image has positions that never took place in this journal: all positions before it are
  // void. Positions of refused groups are void as well, but lie after a snapshot. An image may
  // have such a position, since a start gives the store the position at which the journal ends. A
  // journal whose first groups were all refused cannot be told apart: zones are then loaded anew.
  const SegmentHeader& head = present.segments.front().header;
  return head.void_from == 1 && position >= 1 && head.first > position + 1;
}

/// The zones that a journal snapshot has no longer, for damage, or that cannot be read for now.
struct DamagedZones {
  std::vector<SnapshotFile::Place> places;
  std::unordered_set<std::string> sound;   // by folded name
  std::unordered_set<std::string> unread;  // the same
  bool all_others = false;                 // zones that were not found may be damaged, too
  bool others_unread = false;              // or may be readable later
  [[nodiscard]] bool may_come(const zone::ZoneView& zone) const {
    const std::string key = dns::folded_key(zone.apex());
    return unread.contains(key) || (others_unread && !sound.contains(key) && !contains(zone));
  }
  [[nodiscard]] bool contains(const zone::ZoneView& zone) const {
    const std::string key = dns::folded_key(zone.apex());
    const bool is_found = std::any_of(places.begin(), places.end(), [&](const auto& place) {
      return dns::folded_key(place.name) == key;
    });
    return is_found || (all_others && !sound.contains(key));
  }
};

DamagedZones damaged_zones(Files& files, const std::string& path) {
  DamagedZones damaged;
  const auto snapshot = SnapshotFile::open(files, path);
  const auto is_damage = [](const Error& why) { return why.code == Errc::kCorrupt; };
  if (!snapshot) {
    damaged.all_others = is_damage(snapshot.error());
    damaged.others_unread = !damaged.all_others;
    return damaged;
  }
  SnapshotFile::Zones zones = snapshot->zones();
  damaged.all_others = !zones.others && is_damage(zones.others.error());
  damaged.others_unread = !zones.others && !damaged.all_others;
  for (SnapshotFile::Place& place : zones.places) {
    const auto read = snapshot->for_each_item(place, [](zone::DumpItem&&) { return Status(); });
    if (!read && is_damage(read.error()))
      damaged.places.push_back(std::move(place));
    else
      (read ? damaged.sound : damaged.unread).insert(dns::folded_key(place.name));
  }
  return damaged;
}

/// For an image older than the journal's snapshot, from which zones are taken then. A zone that is
/// damaged in the snapshot keeps the image's data and takes the journal's later records. So does an
/// unreadable zone, because it may prove damaged.
Status pass_snapshot(ImageReplay& replay, Files& files, const JournalFiles& present,
                     std::uint64_t position, const NoteSink& note) {
  DamagedZones damaged;
  if (present.snapshot_position > position) damaged = damaged_zones(files, present.snapshot);
  auto lost = replay.withhold_all(
      [&](const zone::ZoneView& zone) { return damaged.may_come(zone); });
  if (lost)
    lost = replay.lose_all([&](const zone::ZoneView& zone) { return !damaged.contains(zone); });
  if (!lost || (damaged.places.empty() && !damaged.all_others)) return lost;
  replay.pass_gap(present.snapshot_position - position);
  if (damaged.all_others) replay.pass_lost_serials();
  for (const SnapshotFile::Place& place : damaged.places)
    replay.note_serial(place.name, place.serial);
  note({true,
        fmt::format("journal snapshot {}: damaged, {} or more zones come from the older image",
                    present.snapshot, damaged.places.size()),
        position + 1, present.snapshot_position});
  return {};
}

}  // namespace

Result<std::vector<dns::Name>> replay_onto_image(shm::Store& store, Journal& journal, Files& files,
                                                 const zone::DataLimits& limits,
                                                 const NoteSink& note) {
  const std::uint64_t position = store.current().journal_position;
  const JournalFiles present = journal.files();
  ImageReplay replay(store, limits);
  if (has_forgotten(present, position))
    if (auto lost = pass_snapshot(replay, files, present, position, note); !lost)
      return pass(lost);
  auto walked = for_each_record(
      files, present, position, [&](JournalRecord&& record) { return replay.take(record); },
      [&](const JournalNote& told) {
        if (told.missing_to > position)
          replay.pass_gap(told.missing_to - std::max(position, told.missing_from - 1));
        note(told);
      });
  // A segment that could not be read a moment ago may turn out to be damaged. The journal is read
  // again, and the image's other zones must not go with it.
  const bool is_fault = !walked && (walked.error().code == Errc::kIo ||
                                    walked.error().code == Errc::kCorrupt);
  if (!walked && !is_fault) return pass(walked);
  // Zones with records in an unreadable part are tried again later; others are served.
  const auto may_be_concerned = [&](const zone::ZoneView& zone) {
    return may_have_updates(zone) || replay.has_records(zone);
  };
  if (!walked || present.health.is_unreadable())
    if (auto kept = replay.withhold_all(may_be_concerned); !kept) return pass(kept);
  // A file that was left out for its header lies among the segments, which shows as a gap, or
  // after them. In the second case it may have records after the image, wherever it begins.
  if (ends_in_damage(present) && position < present.health.lost().from + kPositionsOfAFile)
    replay.pass_gap(UINT64_MAX);
  if (auto raised = replay.raise_serials(); !raised) return pass(raised);
  replay.journal_raised(journal);
  // Every journal record is in the store now, or waits for a zone to be loaded. A version of an
  // older position would precede records that the journal no longer has.
  replay.reach(journal.last_position());
  if (auto published = replay.publish(); !published) return pass(published);
  log::info("image_replayed", "records", replay.applied(), "zones_unloaded", replay.lost().size());
  return replay.lost();
}

}  // namespace pando::manager
