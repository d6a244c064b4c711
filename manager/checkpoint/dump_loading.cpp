#include "manager/checkpoint/dump_loading.h"

#include <optional>

#include "base/crash_point.h"
#include "manager/commit/next_version.h"
#include "manager/journal/record/journal_payload.h"
#include "zone/builder/zone_builder.h"
#include "zone/history/history.h"

namespace pando::manager {

namespace {

/// A version for each zone would cost a root block each.
constexpr std::size_t kZonesPerVersion = 256;
constexpr std::uint64_t kBytesPerVersion = std::uint64_t{64} << 20;

class DumpLoading {
 public:
  DumpLoading(shm::Store& store, std::uint64_t position, const zone::DataLimits& limits)
      : store_(store), position_(position), limits_(limits) {
    begin();
  }

  Status take(zone::DumpZone&& head) {
    if (zones_ >= shm::Store::kSideEntries)
      return fail(Errc::kFull, "more than {} zones", shm::Store::kSideEntries);
    zone_ = std::move(head);
    zone::ZoneSettings settings;
    settings.is_secondary = zone_.is_secondary;
    if (auto put = next_->draft().put_zone_settings(zone_.name, settings, zones_); !put) return put;
    has_data_ = false;
    return set_timers(zones_++);
  }

  Status take(zone::DumpPart&& part) {
    if (!builder_) builder_.emplace(zone_.name, next_->transaction());
    for (const zone::Record& record : part.records.added)
      if (auto added = builder_->add(record.owner, record.type, record.ttl, record.rdata); !added)
        return added;
    return {};
  }

  /// Joins the parts of a changeset until the last has come.
  Status take(zone::DumpChangeset&& part) {
    if (auto put = put_data(); !put) return put;
    if (changeset_.empty()) changeset_.zone = zone_.name;
    if (!too_long_) {
      append(changeset_.removed, std::move(part.records.removed));
      append(changeset_.added, std::move(part.records.added));
      too_long_ = zone::HistoryEditor::bytes_of(changeset_) > limits_.history;
    }
    if (!part.last) return {};
    // The end of a changeset that is too long does not fit either, and ends the history before it.
    too_long_ = false;
    const zone::Changeset whole = std::exchange(changeset_, {});
    return next_->draft().put_changeset(whole, part.from, part.to, limits_);
  }

  Status take(zone::DumpSnapshot&& snapshot) {
    if (auto put = put_data(); !put) return put;
    return next_->draft().put_snapshot(zone_.name, snapshot.version);
  }

  /// The data put next will archive the present data again.
  Status take(zone::DumpArchive&& archive) {
    if (auto put = put_data(); !put) return put;
    has_data_ = false;
    return check_serial(archive.serial);
  }

  Status take(zone::DumpNote&& note) {
    const auto kind = static_cast<RecordKind>(note.kind);
    if (kind != RecordKind::kDynamicChanges && kind != RecordKind::kSource)
      return fail(Errc::kCorrupt, "a note of kind {}", note.kind);
    JournalEntry entry{zone_.name, note.from, note.to, std::move(note.payload), kind};
    if (kind == RecordKind::kSource) return take_source(std::move(entry));
    notes_.push_back(std::move(entry));
    DynamicChanges dynamic_changes;
    return decode_dynamic_changes(notes_.back().payload, dynamic_changes);
  }

  Status take(zone::DumpZoneEnd&&) {
    if (auto put = put_data(); !put) return put;
    if (auto ended = end_zone(); !ended) return ended;
    const bool full = ++pending_ >= kZonesPerVersion ||
                      next_->transaction().allocated_bytes() >= kBytesPerVersion;
    return full ? publish() : Status();
  }

  Status take(zone::DumpCounts&& counts) {
    counts_ = counts;
    return publish();
  }

  LoadedDump result() && { return {counts_, std::move(notes_)}; }

 private:
  template <class T>
  static void append(std::vector<T>& to, std::vector<T>&& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }

  void begin() {
    next_.emplace(store_, NextVersion::Step::kDump);
    pending_ = 0;
  }

  Status publish() {
    auto version = next_->publish(position_);
    if (!version) return pass(version);
    crash_point("dump-zones-loaded");
    begin();
    return {};
  }

  Status set_timers(std::uint32_t index) {
    if (zone_.expires_at == 0 && zone_.next_refresh == 0 && zone_.last_ok == 0) return {};
    shm::Store::SideEntry* side = store_.side(index);
    if (side == nullptr) return fail(Errc::kFull, "no memory for timers");
    side->expires_at.store(zone_.expires_at, std::memory_order_relaxed);
    side->next_refresh.store(zone_.next_refresh, std::memory_order_relaxed);
    side->last_ok.store(zone_.last_ok, std::memory_order_relaxed);
    return {};
  }

  /// Puts the collected records, once: the zone's own, or those of archived data.
  Status put_data() {
    if (!builder_) return {};
    auto built = builder_->finish();
    builder_.reset();
    if (!built) return pass(built);
    has_data_ = true;
    return next_->draft().put_zone(zone_.name, **built, zone_.source);
  }

  [[nodiscard]] zone::ZoneView view() const { return next_->draft().view().zone_at(zone_.name); }

  [[nodiscard]] Status check_serial(dns::Serial serial) const {
    if (view().serial() == serial) return {};
    return fail(Errc::kCorrupt, "{} has serial {} where {} is said to be", to_text(zone_.name),
                view().serial().value, serial.value);
  }

  Status end_zone() {
    if (zone_.loaded && !has_data_)
      return fail(Errc::kCorrupt, "{} has no records", to_text(zone_.name));
    if (zone_.loaded && zone_.primary_serial)
      if (auto put = next_->draft().put_primary_serial(zone_.name, zone_.primary_serial); !put)
        return put;
    if (zone_.loaded) return check_serial(zone_.serial);
    // The zone has no data of its own now; its earlier records are archived data.
    return view().loaded() ? next_->draft().unload_zone(zone_.name) : Status();
  }

  /// Takes the merge base's file again, now with its stamp. The journal needs the record only
  /// beside dynamic changes.
  Status take_source(JournalEntry&& entry) {
    auto source = decode_source(entry.payload);
    if (!source) return pass(source);
    if (!notes_.empty() && notes_.back().zone == zone_.name) {
      entry.payload = encode(*source);
      notes_.push_back(std::move(entry));
    }
    zone::ZoneFileInfo stamped = zone_.source;
    stamped.stamp = source->stamp;
    if (source->stamp == 0 || !(stamped == *source)) return {};
    zone_.source = stamped;
    return has_data_ ? next_->draft().put_zone_source(zone_.name, stamped) : Status();
  }

  shm::Store& store_;
  std::uint64_t position_;
  zone::DataLimits limits_;
  std::optional<NextVersion> next_;
  std::optional<zone::ZoneBuilder> builder_;  // of the open zone, until its records are put
  bool has_data_ = false;                     // the zone's records are put, and not archived
  zone::DumpZone zone_;
  zone::Changeset changeset_;  // the parts so far
  bool too_long_ = false;      // the changeset exceeds the limits
  std::uint32_t zones_ = 0;
  std::size_t pending_ = 0;
  zone::DumpCounts counts_;
  std::vector<JournalEntry> notes_;
};

}  // namespace

Result<LoadedDump> load_dump(shm::Store& store, zone::DumpReader& dump,
                             const zone::DataLimits& limits) {
  DumpLoading loading(store, dump.header().position, limits);
  for (;;) {
    auto item = dump.next();
    if (!item) return pass(item);
    const bool last = std::holds_alternative<zone::DumpCounts>(*item);
    const Status taken =
        std::visit([&](auto&& part) { return loading.take(std::move(part)); }, std::move(*item));
    if (!taken) return dump.wrong(taken.error());
    if (last) return std::move(loading).result();
  }
}

}  // namespace pando::manager
