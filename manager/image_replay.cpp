#include "manager/image_replay.h"

#include <algorithm>
#include <optional>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/journal_payload.h"
#include "zone/draft.h"

namespace pando::manager {

namespace {

/// A version for each record would cost a root block each.
constexpr std::size_t kRecordsPerVersion = 256;

class ImageReplay {
 public:
  explicit ImageReplay(shm::Store& store) : store_(store) { begin(); }

  Status take(const JournalRecord& record) {
    last_ = record.position;
    zone::ZoneView zone = draft_->snapshot().zone_at(record.zone);
    if (zone && zone.has_saved() && record.kind == RecordKind::kGone) {
      if (auto gone = draft_->forget_versions(record.zone); !gone) return gone;
      zone = draft_->snapshot().zone_at(record.zone);
    }
    if (!zone || !zone.loaded()) return {};
    if (auto done = apply(zone, record); !done) return done;
    return ++pending_ < kRecordsPerVersion ? Status() : publish();
  }

  Status lose(const dns::Name& zone) {
    const zone::ZoneView view = draft_->snapshot().zone_at(zone);
    if (!view || !view.loaded()) return {};
    lost_.push_back(zone.folded());
    return draft_->unload_zone(zone);
  }

  Status lose_all() {
    std::vector<dns::Name> names;
    draft_->snapshot().for_each_zone([&](const zone::ZoneView& zone) {
      if (zone.loaded()) names.emplace_back(zone.apex());
    });
    for (const dns::Name& name : names)
      if (auto lost = lose(name); !lost) return lost;
    return {};
  }

  void reach(std::uint64_t position) noexcept { last_ = std::max(last_, position); }

  Status publish() {
    auto version = store_.publish(std::move(*transaction_), draft_->root(), last_);
    if (!version) return pass(version);
    crash_point("image-replayed");
    pending_ = 0;
    begin();
    return {};
  }

  [[nodiscard]] std::uint64_t applied() const noexcept { return applied_; }
  [[nodiscard]] const std::vector<dns::Name>& lost() const noexcept { return lost_; }

 private:
  void begin() {
    const shm::VersionInfo base = store_.current();
    last_ = std::max(last_, base.journal_position);
    draft_.reset();
    transaction_.emplace(store_.begin());
    transaction_->use_reserve();
    draft_.emplace(*transaction_, base.root, base.number + 1);
  }

  Status apply(const zone::ZoneView& zone, const JournalRecord& record) {
    switch (record.kind) {
      case RecordKind::kGone:
        return lose(record.zone);
      case RecordKind::kPrimary:
        return {};
      case RecordKind::kBase:
      case RecordKind::kOverlay:
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
    return draft_->put_zone_source(record.zone, *source);
  }

  Status apply_difference(const zone::ZoneView& zone, const JournalRecord& record) {
    if (!changes_zone(record)) return zone.serial() == record.to ? Status() : lose(record.zone);
    if (!(zone.serial() == record.from)) return lose(record.zone);
    auto changes = served_changes(record);
    if (!changes) return pass(changes);
    // It was within the limits when it was accepted, and they may have changed since.
    zone::DataLimits limits = zone::DataLimits::none();
    limits.saved = UINT64_MAX;
    auto done = draft_->apply(*changes, limits);
    if (!done && done.error().code == Errc::kInvalid) return lose(record.zone);
    if (!done) return pass(done);
    ++applied_;
    return {};
  }

  shm::Store& store_;
  std::optional<shm::Transaction> transaction_;
  std::optional<zone::Draft> draft_;
  std::size_t pending_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t applied_ = 0;
  std::vector<dns::Name> lost_;  // each once: it has no data from then on
};

/// Whether the journal may have had records behind the image that are not there any more: folded
/// into its snapshot, or lost with a file. The snapshot names the zones that it has records of, but
/// not those that left the configuration and came again.
bool has_forgotten(const JournalFiles& present, std::uint64_t position) noexcept {
  if (present.snapshot_position > position || present.damaged > position) return true;
  if (present.segments.empty()) return false;
  // What the first segment says never took place is not missing.
  const SegmentHeader& head = present.segments.front().header;
  return std::min(head.first, head.void_from) > position + 1;
}

}  // namespace

Result<std::vector<dns::Name>> replay_onto_image(shm::Store& store, const Journal& journal,
                                                 Files& files, const NoteSink& note) {
  const std::uint64_t position = store.current().journal_position;
  const JournalFiles present = journal.files();
  ImageReplay replay(store);
  if (has_forgotten(present, position))
    if (auto lost = replay.lose_all(); !lost) return pass(lost);
  bool damaged = false;
  auto walked = for_each_record(
      files, present, position, [&](JournalRecord&& record) { return replay.take(record); },
      [&](const JournalNote& told) {
        damaged = damaged || told.severe;
        note(told);
      });
  if (!walked) return pass(walked);
  if (damaged)
    if (auto lost = replay.lose_all(); !lost) return pass(lost);
  // Whatever stands in the journal is in the store now, or waits for a zone to be loaded. A version
  // of an older position would take back what the journal was shortened up to.
  replay.reach(journal.last_position());
  if (auto published = replay.publish(); !published) return pass(published);
  log::info("image_replayed", "records", replay.applied(), "zones_unloaded", replay.lost().size());
  return replay.lost();
}

}  // namespace pando::manager
