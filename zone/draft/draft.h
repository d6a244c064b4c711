#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "shm/store.h"
#include "zone/draft/applied.h"
#include "zone/draft/data_limits.h"
#include "zone/draft/draft_core.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"
#include "zone/settings/compiled_settings.h"

namespace pando::zone {

/// Fingerprint of every memory layout in zone/; pass it as StoreOptions::layout.
[[nodiscard]] std::uint64_t layout_fingerprint() noexcept;

/// A built zone, which put_zone() puts: see zone/draft/built.h.
struct BuiltZone;

/// The next version under construction: the edits of zones. The upkeep of a store works on a draft,
/// too: compact() (zone/draft/compaction.h), dismantle_discarded() (zone/draft/discarded_blocks.h)
/// and shorten_histories() (zone/draft/shorten_histories.h).
///
/// A step that fails with kInvalid or kNotFound leaves the draft unchanged. After kFull or kCorrupt
/// the whole transaction must be dropped. Publish with Store::publish(transaction, root(), ...).
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
  /// Sets primary_serial() of a zone with data; nullopt: there is none. put_zone() drops it,
  /// apply() keeps it.
  Status put_primary_serial(dns::NameView apex, std::optional<dns::Serial> serial);
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
  void set_time(std::uint64_t seconds) noexcept { core_.set_time(seconds); }

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

  [[nodiscard]] StoreView view() const noexcept {  ///< shows the draft: for prerequisites
    return core_.view();
  }
  [[nodiscard]] shm::Ref<> root() const noexcept { return core_.root(); }
  /// For the steps of this folder alone: changes past the rules above.
  [[nodiscard]] DraftCore& core() noexcept { return core_; }

 private:
  friend class DetachedDraft;
  /// See DraftCore.
  Draft(shm::Transaction& data, shm::Transaction& table, shm::Ref<> root, std::uint64_t version);
  /// `before`: tag of the settings that the zone had, 0 = none.
  Status share_settings(const EncodedSettings& settings, std::uint64_t before);
  Status drop_settings(std::uint64_t tag);

  DraftCore core_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace pando::zone
