#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "shm/store.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"
#include "zone/settings/compiled_settings.h"

namespace pando::zone {

/// Fingerprint of every memory layout in zone/; pass it as StoreOptions::layout.
[[nodiscard]] std::uint64_t layout_fingerprint() noexcept;

/// Limits checked when changes are applied (configuration `limits`).
struct DataLimits {
  std::uint32_t rrset_records = 100;
  std::uint32_t name_types = 100;
  std::uint64_t zone_records = 0;  ///< 0 = none
  /// Bytes of change history of a zone, and of all zones together.
  std::uint64_t history = std::uint64_t{16} << 20;
  std::uint64_t history_total = UINT64_MAX;
  /// Bytes that a zone's history may have beyond `history`, for snapshots
  /// (zone/history/zone_snapshot.h).
  std::uint64_t snapshots = std::uint64_t{64} << 20;

  /// Bytes of the largest changeset that the history of a zone takes, with or without snapshots
  /// that need the history.
  [[nodiscard]] std::uint64_t largest_changeset(bool for_snapshots) const noexcept;
  static constexpr DataLimits none() noexcept { return {0, 0, 0}; }
  /// The limits of history alone: records from the operator, unlike those from a client, have no
  /// limits.
  [[nodiscard]] constexpr DataLimits of_history() const noexcept {
    return {0, 0, 0, history, history_total, snapshots};
  }
};

/// A built zone, which put_zone() puts: see zone/draft/built.h.
struct BuiltZone;

/// The effect of applying one Changeset.
struct Applied {
  dns::Serial from;
  dns::Serial to;
  Changeset effective;                 ///< the real changes: empty = no change
  std::uint32_t missing_removals = 0;  ///< records to remove that did not exist
  std::uint32_t redundant_additions = 0;
};

/// The next version under construction: the one door of the store. A step that fails with kInvalid
/// or kNotFound leaves the draft unchanged. After kFull or kCorrupt the whole transaction must be
/// dropped. Publish with Store::publish(transaction, root(), ...).
class Draft {
 public:
  /// `root` null: start from an empty store. `version` is the version number that view() shows.
  Draft(shm::Transaction& transaction, shm::Ref<> root, std::uint64_t version);

  /// Adds or replaces settings; a new zone starts unloaded with side table index `side_index`.
  Status put_zone_settings(dns::NameView apex, const EncodedSettings& settings,
                           std::uint32_t side_index);
  Status put_zone_settings(dns::NameView apex, const ZoneSettings& settings,
                           std::uint32_t side_index) {
    return put_zone_settings(apex, EncodedSettings(settings), side_index);
  }
  Status put_server_settings(const ServerSettings& settings);
  /// Replaces a zone's data by a built zone (whose transaction was absorbed). The old data's blocks
  /// go to the discarded list: see dismantle_discarded().
  Status put_zone(dns::NameView apex, const BuiltZone& built, const ZoneFileInfo& source);
  /// Records that the zone's data agrees with this state of its file now (the file was merged as a
  /// changeset).
  Status put_zone_source(dns::NameView apex, const ZoneFileInfo& source);
  /// Appends to a zone's history the changeset that led to its data, or to the next changeset; for
  /// a store that is rebuilt. Oldest first, without gaps; a changeset that does not fit ends the
  /// history so far.
  Status put_changeset(const Changeset& changeset, dns::Serial from, dns::Serial to,
                       const DataLimits& limits);
  Status remove_zone(dns::NameView apex);
  /// Drops a zone's data but keeps its settings: the zone answers SERVFAIL.
  Status unload_zone(dns::NameView apex);
  /// Applies a changeset: stage and check (RFC 2136 §3.4.2.7 order is the caller's business).
  /// kInvalid names the rule that the result would break (one SOA, CNAME alone, NS at apex), kFull
  /// a limit or the store.
  Result<Applied> apply(const Changeset& changes, const DataLimits& limits);
  /// From now on apply() ends with kFull when `stop` becomes true: a large changeset takes seconds,
  /// which may be unwanted by then. `stop` must outlive the draft.
  void give_up_when(const std::atomic<bool>* stop) noexcept { stop_ = stop; }
  /// The time of changes from now on, in seconds since 1970; 0, the default = unknown.
  void set_time(std::uint64_t seconds) noexcept { time_ = static_cast<std::uint32_t>(seconds); }

  /// Makes a snapshot of the zone's present version (zone/history/zone_snapshot.h); `taken` is
  /// seconds since 1970. A lost snapshot gives its label up. kInvalid: the label is malformed.
  /// kExists: the zone has the label already. kNotFound: no such zone, or not loaded. kFull: too
  /// many snapshots, `limits` allow none, or low space.
  Status take_snapshot(dns::NameView apex, std::string_view label, std::uint64_t taken,
                       const DataLimits& limits);
  /// Appends a snapshot of a store that is rebuilt: of the serial that put_changeset() has
  /// reached, or with the reason why the snapshot was lost. Later changes, through put_changeset()
  /// or put_zone(), keep or lose the snapshot as usual. kInvalid, kExists, kNotFound as above;
  /// kFull: too many snapshots.
  Status put_snapshot(dns::NameView apex, const ZoneSnapshot& version);
  /// Drops a snapshot, and the data that only this snapshot needed. kNotFound.
  Status drop_snapshot(dns::NameView apex, std::string_view label, const DataLimits& limits);
  /// Drops all snapshots of a zone.
  Status drop_snapshots(dns::NameView apex);

  /// Copies blocks in victim chunks, starting after `cursor`, at most `names` names and some
  /// kMaxCompacted bytes. Returns true when the walk reached the end (cursor is then reset). Zones
  /// for which `leave_alone` (may be empty) is true are skipped. `is_over` (may be empty) is asked
  /// every few names; true ends the step.
  struct CompactCursor {
    dns::Name zone;
    dns::Name name;
    std::uint8_t phase = 0;
    std::uint32_t part = 0;      ///< 0 = the zone's own data, n = the n-th archived data
    std::uint64_t settings = 0;  ///< tag of the last settings moved; they come before all zones
    bool settings_done = false;
  };
  /// Bounds a step by what it writes: a walk comes from names that stay to thousands that move.
  static constexpr std::uint64_t kMaxCompacted = std::uint64_t{128} << 10;
  using LeaveAlone = std::function<bool(dns::NameView apex)>;
  Result<bool> compact(CompactCursor& cursor, std::size_t names,
                       const LeaveAlone& leave_alone = {},
                       const std::function<bool()>& is_over = {});
  /// Halves the change histories of zones after `cursor`, at most `zones` of them, when all
  /// histories together have grown too large. Returns true when the walk reached the end (cursor is
  /// then reset). At low space without pinned chunks, snapshots that need changesets or archived
  /// data are lost.
  Result<bool> shorten_histories(dns::Name& cursor, std::size_t zones);
  /// Releases up to `blocks` blocks of replaced zones; true when none are left.
  Result<bool> dismantle_discarded(std::size_t blocks);

  [[nodiscard]] StoreView view() const noexcept;  ///< shows the draft: for prerequisites
  [[nodiscard]] shm::Ref<> root() const noexcept { return root_; }

 private:
  friend class DetachedDraft;
  friend class ZoneEdit;
  /// Blocks of one zone's data go to `transaction`; the path to the zone goes to `table`.
  Draft(shm::Transaction& transaction, shm::Transaction& table, shm::Ref<> root,
        std::uint64_t version);
  Result<RootData*> writable_root();
  /// `before`: tag of the settings that the zone had, 0 = none.
  Status share_settings(const EncodedSettings& settings, std::uint64_t before);
  Status drop_settings(std::uint64_t tag);
  Status discard(ZoneEntry& entry);
  Status discard_blocks(const std::vector<std::uint32_t>& refs);
  Status append_history(ZoneEntry& entry, const Applied& applied, const DataLimits& limits);
  Status drop_history(ZoneEntry& entry);
  Status trim_history(ZoneEntry& entry, std::uint64_t allowed, std::uint64_t room);
  Status put_snapshots(ZoneEntry& entry, const std::vector<ZoneSnapshot>& snapshots);
  Status lose_snapshots(ZoneEntry& entry, const std::function<bool(ZoneSnapshot&)>& lose);
  Status put_archive(ZoneEntry& entry, dns::NameView apex, ZoneEntry data);
  Status archive_data(ZoneEntry& entry, dns::NameView apex);
  Status archive_copy(ZoneEntry& entry, const Applied& applied, const DataLimits& limits);
  Status release_snapshots(ZoneEntry& entry);
  Status discard_archive(std::uint32_t ref);
  /// `spelling`: the name to be kept from now on, by default as before.
  Status put_entry(const ZoneEntry& entry, dns::NameView apex, const dns::Name* spelling = nullptr);
  [[nodiscard]] const ZoneEntry* entry_at(dns::NameView apex) const noexcept;
  Status compact_fixed_blocks();

  shm::Transaction& transaction_;
  shm::Transaction& table_;
  shm::Ref<> root_;
  std::uint64_t version_;
  std::uint32_t time_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace pando::zone
