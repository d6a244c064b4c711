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

/// Fingerprint of every byte layout in this folder; pass it as StoreOptions::layout.
[[nodiscard]] std::uint64_t layout_fingerprint() noexcept;

/// Limits checked when changes are applied (configuration `limits`).
struct DataLimits {
  std::uint32_t rrset_records = 100;
  std::uint32_t name_types = 100;
  std::uint64_t zone_records = 0;  ///< 0 = none
  /// Octets of change history of a zone, and of all zones together.
  std::uint64_t history = std::uint64_t{16} << 20;
  std::uint64_t history_total = UINT64_MAX;
  /// Octets that a zone's history may have beyond that, for saved versions
  /// (zone/history/zone_snapshot.h).
  std::uint64_t saved = std::uint64_t{64} << 20;

  static constexpr DataLimits none() noexcept { return {0, 0, 0}; }
  /// The same of history alone: records that come from the operator, not from a client, have none.
  [[nodiscard]] constexpr DataLimits of_history() const noexcept {
    return {0, 0, 0, history, history_total, saved};
  }
};

/// Builds a whole zone in a transaction of its own while its records come. Those in canonical order
/// are in the store when the next name comes; only what comes out of order is collected. Duplicates
/// are dropped. Checks: one SOA, at the apex; NS at the apex; CNAME and DNAME alone; nothing
/// outside the zone (error); limits.
class ZoneBuilder {
 public:
  /// `transaction` must stay where it is until finish(); if that fails or is not called, it can
  /// only be dropped. Names beyond `limits` are an error of finish().
  ZoneBuilder(dns::NameView apex, shm::Transaction& transaction,
              const DataLimits& limits = DataLimits::none());
  ~ZoneBuilder();
  ZoneBuilder(ZoneBuilder&&) noexcept;
  ZoneBuilder& operator=(ZoneBuilder&&) noexcept;
  /// kInvalid: the record can be in no zone of this name, whatever the others are.
  Status add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  /// Records added, duplicates too.
  [[nodiscard]] std::uint64_t record_count() const noexcept;
  /// Name server sets that delegations repeat are shared once that saves so many octets. Only
  /// before the first record.
  void share_from(std::uint64_t octets) noexcept;

  /// The finished zone: references into blocks of the transaction.
  struct Built;
  /// kInvalid names the first rule that the zone breaks, in canonical order; kFull a limit or the
  /// store.
  Result<std::shared_ptr<Built>> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Where a zone's data came from, kept with the zone so that a restart can tell an edited file.
struct ZoneFileInfo {
  std::int64_t file_mtime_ns = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t hash = 0;   ///< of its content (base/content_hash.h), 0 = not known
  std::uint32_t stamp = 0;  ///< of its inode's state (manager/zonefile/merge_base.h), 0 = not known
  bool operator==(const ZoneFileInfo&) const = default;
};

/// What applying one Changeset did.
struct Applied {
  dns::Serial from;
  dns::Serial to;
  Changeset effective;                 ///< what really changed: empty = nothing did
  std::uint32_t missing_removals = 0;  ///< records to remove that were not there
  std::uint32_t redundant_additions = 0;
};

/// The next version under construction: the one door of the store. A step that fails with kInvalid
/// or kNotFound leaves the draft as it was; after kFull or kCorrupt the whole transaction must be
/// dropped. Publish with Store::publish(transaction, root(), ...).
class Draft {
 public:
  /// `root` null: start from nothing. `version` is what snapshot() says its number is.
  Draft(shm::Transaction& transaction, shm::Ref<> root, std::uint64_t version);

  /// Adds or replaces settings; a new zone starts unloaded with side table index `side_index`.
  Status put_zone_settings(dns::NameView apex, const EncodedSettings& settings,
                           std::uint32_t side_index);
  Status put_zone_settings(dns::NameView apex, const ZoneSettings& settings,
                           std::uint32_t side_index) {
    return put_zone_settings(apex, EncodedSettings(settings), side_index);
  }
  Status put_server_settings(const ServerSettings& settings);
  /// Replaces a zone's data by a built zone (whose transaction was absorbed). The old data is put
  /// on the retired list: see take_retired().
  Status put_zone(dns::NameView apex, const ZoneBuilder::Built& built, const ZoneFileInfo& source);
  /// Notes that the zone's data agrees with this state of its file now (it was merged as a
  /// difference).
  Status put_zone_source(dns::NameView apex, const ZoneFileInfo& source);
  /// Appends to a zone's history what led to its data, or to the next difference: of a store that
  /// is made again. Oldest first, without gaps; one that does not fit ends the history so far.
  Status put_difference(const Changeset& difference, dns::Serial from, dns::Serial to,
                        const DataLimits& limits);
  Status remove_zone(dns::NameView apex);
  /// Drops a zone's data but keeps its settings: it answers SERVFAIL.
  Status unload_zone(dns::NameView apex);
  /// Applies a difference: stage and check (RFC 2136 §3.4.2.7 order is the caller's business).
  /// kInvalid names the rule that the result would break (one SOA, CNAME alone, NS at apex),
  /// kFull a limit or the store.
  Result<Applied> apply(const Changeset& changes, const DataLimits& limits);
  /// From now on apply() ends with kFull when `stop` becomes true: a large one would take seconds
  /// that nobody wants to wait for. `stop` outlives the draft.
  void give_up_when(const std::atomic<bool>* stop) noexcept { stop_ = stop; }

  /// Gives the zone's present version a label (zone/history/zone_snapshot.h); `taken` is seconds
  /// since 1970. One that was lost gives its label up. kInvalid: the label cannot be one; kExists:
  /// the zone has it already; kNotFound: no such zone, or not loaded; kFull: as many as there may
  /// be, `limits` allow none, or the store is nearly full.
  Status save_version(dns::NameView apex, std::string_view label, std::uint64_t taken,
                      const DataLimits& limits);
  /// Puts a saved version of a store that is made again behind the others: of the serial that
  /// put_difference() has come to, or why it was lost. What comes later, as put_difference() or
  /// put_zone() bring it, keeps or loses it as ever. kInvalid, kExists, kNotFound as above; kFull:
  /// as many as there may be.
  Status put_saved_version(dns::NameView apex, const ZoneSnapshot& version);
  /// Lets a saved version go, and what only it needed. kNotFound.
  Status forget_version(dns::NameView apex, std::string_view label, const DataLimits& limits);
  /// Lets all saved versions of a zone go.
  Status forget_versions(dns::NameView apex);

  /// Copies blocks lying in victim chunks, going on behind `cursor`, at most `names` names.
  /// Returns true when the walk reached the end (cursor is then reset). Zones for which
  /// `leave_alone` (may be empty) says so are passed over.
  struct CompactCursor {
    dns::Name zone;
    dns::Name name;
    std::uint8_t phase = 0;
    std::uint32_t part = 0;  ///< 0 = the zone's own data, n = the n-th that were set aside
  };
  using LeaveAlone = std::function<bool(dns::NameView apex)>;
  Result<bool> compact(CompactCursor& cursor, std::size_t names,
                       const LeaveAlone& leave_alone = {});
  /// Halves the change histories of zones behind `cursor`, at most `zones` of them: when all
  /// together have grown too large. Returns true when the walk reached the end (cursor is then
  /// reset). In a store that stays nearly full saved versions are lost that need differences or
  /// data that were set aside.
  Result<bool> shorten_histories(dns::Name& cursor, std::size_t zones);
  /// Releases up to `blocks` blocks of retired zones; true when none are left.
  Result<bool> dismantle_retired(std::size_t blocks);

  [[nodiscard]] StoreView snapshot() const noexcept;  ///< sees the draft: for prerequisites
  [[nodiscard]] shm::Ref<> root() const noexcept { return root_; }

 private:
  friend class DetachedDraft;
  friend class ZoneEdit;
  /// What belongs to one zone's data goes to `transaction`, what leads to it to `table`.
  Draft(shm::Transaction& transaction, shm::Transaction& table, shm::Ref<> root,
        std::uint64_t version);
  Result<RootData*> writable_root();
  Status intern_settings(ByteView bytes, std::uint64_t hash);
  Status drop_settings(std::uint64_t hash, std::uint32_t zones);
  Status retire(ZoneEntry& entry);
  Status retire_blocks(const std::vector<std::uint32_t>& refs);
  Status note_history(ZoneEntry& entry, const Applied& applied, const DataLimits& limits);
  Status drop_history(ZoneEntry& entry);
  [[nodiscard]] std::uint64_t largest_difference(const ZoneEntry& entry,
                                                 const DataLimits& limits) const;
  Status trim_history(ZoneEntry& entry, std::uint64_t allowed, std::uint64_t room);
  Status put_saved(ZoneEntry& entry, const std::vector<ZoneSnapshot>& saved);
  Status lose_saved(ZoneEntry& entry, const std::function<bool(ZoneSnapshot&)>& lose);
  Status put_aside(ZoneEntry& entry, dns::NameView apex, ZoneEntry data);
  Status set_aside(ZoneEntry& entry, dns::NameView apex);
  Status copy_aside(ZoneEntry& entry, const Applied& applied, const DataLimits& limits);
  Status release_saved(ZoneEntry& entry);
  Status retire_aside(std::uint32_t ref);
  Status put_entry(const ZoneEntry& entry, dns::NameView apex);
  [[nodiscard]] const ZoneEntry* entry_at(dns::NameView apex) const noexcept;
  Status compact_fixed_blocks();
  Status compact_settings(RootData& root);

  shm::Transaction& transaction_;
  shm::Transaction& table_;
  shm::Ref<> root_;
  std::uint64_t version_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace pando::zone
