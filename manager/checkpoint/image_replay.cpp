#include "manager/checkpoint/image_replay.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/commit/compaction_limits.h"
#include "manager/commit/next_version.h"
#include "manager/journal/journal_payload.h"
#include "zone/build/draft.h"

namespace pando::manager {

namespace {

/// A version for each record would cost a root block each.
constexpr std::size_t kRecordsPerVersion = 256;
/// Records per version while less than an eighth of the store is free. With only half of that free,
/// drafts give up histories and snapshots.
constexpr std::size_t kRecordsPerSmallVersion = 8;
constexpr std::uint64_t kCrowdedPart = 8;
/// Few: moved blocks need space before the next step can use the space that they leave.
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

class ImageReplay {
 public:
  ImageReplay(shm::Store& store, const zone::DataLimits& limits) : store_(store) {
    // Records were within the limits when they were accepted, and the limits may have changed
    // since.
    limits_.history = limits.history;
    limits_.history_total = limits.history_total;
    limits_.snapshots = UINT64_MAX;
    begin();
  }

  Status take(const JournalRecord& record) {
    last_ = record.position;
    zone::ZoneView zone = next_->draft().view().zone_at(record.zone);
    if (zone && zone.has_snapshots() && record.kind == RecordKind::kGone) {
      if (auto gone = next_->draft().drop_snapshots(record.zone); !gone) return gone;
      zone = next_->draft().view().zone_at(record.zone);
    }
    if (!zone || !zone.loaded()) return {};
    if (auto done = apply(zone, record); !done) return done;
    const bool crowded = is_crowded(store_.stats());
    if (++pending_ < (crowded ? kRecordsPerSmallVersion : kRecordsPerVersion)) return {};
    if (auto published = publish(); !published) return published;
    return crowded ? make_room() : Status();
  }

  Status lose(const dns::Name& zone) {
    const zone::ZoneView view = next_->draft().view().zone_at(zone);
    if (!view || !view.loaded()) return {};
    lost_.push_back(zone.folded());
    return next_->draft().unload_zone(zone);
  }

  /// Only zones for which `which` is true; empty: all.
  Status lose_all(const std::function<bool(const zone::ZoneView&)>& which = {}) {
    std::vector<dns::Name> names;
    next_->draft().view().for_each_zone([&](const zone::ZoneView& zone) {
      if (zone.loaded() && (!which || which(zone))) names.emplace_back(zone.apex());
    });
    for (const dns::Name& name : names)
      if (auto lost = lose(name); !lost) return lost;
    return {};
  }

  void reach(std::uint64_t position) noexcept { last_ = std::max(last_, position); }

  Status publish() {
    auto version = next_->publish(last_);
    if (!version) return pass(version);
    crash_point("image-replayed");
    pending_ = 0;
    begin();
    return {};
  }

  [[nodiscard]] std::uint64_t applied() const noexcept { return applied_; }
  [[nodiscard]] const std::vector<dns::Name>& lost() const noexcept { return lost_; }

 private:
  /// Frees data that the published version no longer needs, as space for the next one. Nothing is
  /// served before the replay ends, so all of this is one walk.
  Status make_room() {
    store_.reclaim();
    if (!is_crowded(store_.stats())) return {};
    Status done = next_->draft().view().has_discarded() ? dismantle() : Status();
    if (done) done = compact();
    store_.forget_victims();
    store_.reclaim();
    // With no space even for this, the next record tells whether it fits.
    if (!done && done.error().code != Errc::kFull) return done;
    begin();
    return {};
  }

  Status dismantle() {
    return in_steps([this] { return next_->draft().dismantle_discarded(kBlocksPerStep); });
  }

  /// Runs steps until one reports that it was the last. A step that changed something is published,
  /// so that its freed space serves the next step.
  template <class Step>
  Status in_steps(const Step& step) {
    for (;;) {
      const shm::Ref<> before = next_->draft().root();
      auto finished = step();
      if (!finished) return pass(finished);
      const bool changed = !(next_->draft().root() == before);
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
    zone::Draft::CompactCursor cursor;
    return in_steps([&]() -> Result<bool> {
      if (!store_.narrow_victims()) return true;
      return next_->draft().compact(cursor, kNamesPerStep, {});
    });
  }

  void begin() {
    next_.reset();  // first, since it holds the chunk being filled
    next_.emplace(store_, NextVersion::Step::kRecovery);
    last_ = std::max(last_, next_->base().journal_position);
  }

  Status apply(const zone::ZoneView& zone, const JournalRecord& record) {
    switch (record.kind) {
      case RecordKind::kGone:
        return lose(record.zone);
      case RecordKind::kPrimary:
        return {};
      case RecordKind::kBase:
      case RecordKind::kDynamicChanges:
        return zone.serial() == record.to ? Status() : lose(record.zone);
      case RecordKind::kSource:
        return zone.serial() == record.to ? put_source(record) : lose(record.zone);
      case RecordKind::kTransfer:
        // A zone that was sent whole may be another one with the same serial.
        return record.from == record.to ? lose(record.zone) : apply_difference(zone, record);
      default:
        return apply_difference(zone, record);
    }
  }

  Status put_source(const JournalRecord& record) {
    auto source = decode_source(record.payload);
    if (!source) return pass(source);
    return next_->draft().put_zone_source(record.zone, *source);
  }

  Status apply_difference(const zone::ZoneView& zone, const JournalRecord& record) {
    if (!changes_zone(record)) return zone.serial() == record.to ? Status() : lose(record.zone);
    if (!(zone.serial() == record.from)) return lose(record.zone);
    auto changes = served_changes(record);
    if (!changes) return pass(changes);
    auto done = next_->draft().apply(*changes, limits_);
    if (!done && done.error().code == Errc::kInvalid) return lose(record.zone);
    if (!done) return pass(done);
    ++applied_;
    return {};
  }

  shm::Store& store_;
  zone::DataLimits limits_ = zone::DataLimits::none();
  std::optional<NextVersion> next_;
  std::size_t pending_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t applied_ = 0;
  std::vector<dns::Name> lost_;  // each zone once: an unloaded zone has no data
};

/// Whether records behind the image may be missing from the journal: folded into its snapshot, or
/// lost with a file. The journal snapshot names the zones with records, but not those that left the
/// configuration and came again.
bool has_forgotten(const JournalFiles& present, std::uint64_t position) noexcept {
  if (present.snapshot_position > position || present.damaged > position) return true;
  if (present.segments.empty()) return false;
  // Positions voided by the first segment are not missing. If the image has some of these
  // positions, the journal began behind a dump or another store.
  const SegmentHeader& head = present.segments.front().header;
  return (head.void_from > position ? std::min(head.first, head.void_from) : head.first) >
         position + 1;
}

}  // namespace

Result<std::vector<dns::Name>> replay_onto_image(shm::Store& store, const Journal& journal,
                                                 Files& files, const zone::DataLimits& limits,
                                                 const NoteSink& note) {
  const std::uint64_t position = store.current().journal_position;
  const JournalFiles present = journal.files();
  ImageReplay replay(store, limits);
  if (has_forgotten(present, position))
    if (auto lost = replay.lose_all(); !lost) return pass(lost);
  bool damaged = false;
  auto walked = for_each_record(
      files, present, position, [&](JournalRecord&& record) { return replay.take(record); },
      [&](const JournalNote& told) {
        damaged = damaged || told.severe;
        note(told);
      });
  if (!walked && walked.error().code != Errc::kIo) return pass(walked);
  if (damaged)
    if (auto lost = replay.lose_all(); !lost) return pass(lost);
  // What cannot be read now may be readable later. Zones that it cannot concern are served.
  if (!walked || !present.unreadable.empty())
    if (auto lost = replay.lose_all(may_have_updates); !lost) return pass(lost);
  // Every journal record is in the store now, or waits for a zone to be loaded. A version of an
  // older position would precede records that the journal no longer has.
  replay.reach(journal.last_position());
  if (auto published = replay.publish(); !published) return pass(published);
  log::info("image_replayed", "records", replay.applied(), "zones_unloaded", replay.lost().size());
  return replay.lost();
}

}  // namespace pando::manager
