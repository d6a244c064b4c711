#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"
#include "shm/map/ref.h"
#include "zone/read/fetch.h"
#include "zone/read/relative_name.h"
#include "zone/settings/compiled_settings.h"
#include "zone/trie/key.h"

/// Reading zone data in the store. Every type here is a view: valid while its version is pinned.
/// Damage in the store shows as "absent" or as other data, never as a fault or an endless loop
/// (docs/ARCHITECTURE.md says how far that goes). Names in RDATA are as stored: code that takes
/// RDATA for a name checks it first.
namespace pando::zone {

struct RawRRset;
struct RootData;
struct ZoneEntry;
struct ZoneSnapshot;

/// One RRset of a name with the RRSIGs that cover it. Trivially copyable, 40 bytes.
class RRsetView {
 public:
  RRsetView() = default;
  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
  [[nodiscard]] dns::RRType type() const noexcept { return type_; }
  /// of the RRSIGs, too (RFC 4034 §3)
  [[nodiscard]] dns::Ttl ttl() const noexcept { return ttl_; }
  [[nodiscard]] std::uint16_t count() const noexcept {
    return count_;
  }  ///< RDATAs; 0 = only RRSIGs
  [[nodiscard]] std::uint16_t signature_count() const noexcept { return signature_count_; }

  /// Calls `visit(ByteView rdata)` for each RDATA (uncompressed wire form). A view lasts as long as
  /// the version is pinned. A view of the type kRelativeType lasts for the call only.
  template <class Visit>
  void for_each_rdata(Visit&& visit) const;
  /// Calls `visit(ByteView rest)` for each RRSIG; `rest` is its RDATA *without* the two octets
  /// "type covered", which are type().
  template <class Visit>
  void for_each_signature(Visit&& visit) const;
  /// First RDATA (SOA, CNAME, DNAME, NSEC, NSEC3: sets of one). Empty when there is none, and for
  /// the type kRelativeType, which is only visited.
  [[nodiscard]] ByteView first_rdata() const noexcept;
  /// Whether some RDATA's name is at or below `name`; for the type kRelativeType.
  [[nodiscard]] bool has_name_at_or_below(dns::NameView name) const noexcept;
  /// True when no RDATA is in relative form: all views last as long as the version is pinned.
  [[nodiscard]] bool has_whole_names() const noexcept;
  /// True when other names of the zone may have this very RRset (zone/record/shared_sets.h).
  [[nodiscard]] bool is_shared() const noexcept { return shared_; }
  /// Equal for the same stored RRset, and for no other one of the version.
  [[nodiscard]] const void* identity() const noexcept { return data_; }
  /// True for the same stored RRset; an equal one elsewhere is not the same.
  [[nodiscard]] bool is_same(const RRsetView& other) const noexcept { return data_ == other.data_; }

 private:
  friend class RecordView;
  template <class Visit>
  void for_each_stored(Visit&& visit) const;
  [[nodiscard]] OwnerName owner() const noexcept;
  const std::uint8_t* data_ = nullptr;   // packed RDATAs, then packed RRSIGs
  const std::uint8_t* block_ = nullptr;  // the record's block
  const std::uint8_t* apex_ = nullptr;   // the apex as a whole name
  std::uint32_t size_ = 0;
  dns::Ttl ttl_{};
  dns::RRType type_{};
  std::uint16_t count_ = 0;
  std::uint16_t signature_count_ = 0;
  bool shared_ = false;
};
static_assert(sizeof(RRsetView) == 40, "an answer has some hundred of them");

class Trie;
class TrieWalk;

/// All RRsets at one owner name. Trivially copyable.
class RecordView {
 public:
  RecordView() = default;
  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }
  /// Owner relative to the apex: wire labels without the root octet; empty at the apex, and when
  /// the record is damaged.
  [[nodiscard]] ByteView relative_owner() const noexcept;
  [[nodiscard]] bool has_ns() const noexcept;  ///< from a flag, without a search
  [[nodiscard]] bool has_cname() const noexcept;
  [[nodiscard]] bool has_dname() const noexcept;
  [[nodiscard]] bool has_nsec() const noexcept;
  [[nodiscard]] RRsetView find(dns::RRType type) const noexcept;
  /// Calls `visit(RRsetView)` for each RRset in ascending order of type.
  template <class Visit>
  void for_each_rrset(Visit&& visit) const;
  [[nodiscard]] std::size_t rrset_count() const noexcept;
  /// Reference of the set if the zone stores it once for many names (zone/record/shared_sets.h); 0
  /// = the set is in this record.
  [[nodiscard]] std::uint32_t shared_set(dns::RRType type) const noexcept;
  bool operator==(const RecordView& other) const noexcept { return block_ == other.block_; }
  /// As many lines of the processor's caches as most records take.
  static constexpr std::size_t kFetchedLines = 10;
  /// Asks for the memory of the record, without waiting for it.
  void fetch() const noexcept {
    constexpr std::size_t kLine = 64;
    if (block_ == nullptr) return;
    for (std::size_t line = 1; line < kFetchedLines; ++line) zone::fetch(block_ + line * kLine);
  }

 private:
  friend class Bookmark;
  friend class ZoneView;
  friend RecordView record_view(shm::Window window, std::uint32_t ref, dns::NameView apex) noexcept;
  /// See record_view(); `apex` is a whole name.
  static RecordView at(shm::Window window, std::uint32_t ref, const std::uint8_t* apex) noexcept;
  [[nodiscard]] RRsetView view_of(const RawRRset& raw) const noexcept;
  /// The RRset at `p`; the position after it, nullptr when damaged.
  const std::uint8_t* step(const std::uint8_t* p, RRsetView& out) const noexcept;
  [[nodiscard]] const std::uint8_t* first() const noexcept;
  [[nodiscard]] const std::uint8_t* end() const noexcept {
    return block_ + window_.room_after(block_);
  }
  const std::uint8_t* block_ = nullptr;
  shm::Window window_;
  const std::uint8_t* apex_ = nullptr;  // the apex as a whole name
};

/// The record block at `ref` of a zone with that apex. `apex` must live as long as the views read
/// from the record. An empty view when the record's header or labels are cut off.
[[nodiscard]] RecordView record_view(shm::Window window, std::uint32_t ref,
                                     dns::NameView apex) noexcept;

/// The result of one descent of the names trie, for a name at or below the apex.
struct Match {
  RecordView exact;                 ///< the name owns records
  bool empty_non_terminal = false;  ///< the name has no records, but a name below it has (RFC 8020)
  /// Longest existing ancestor-or-self of the name, ENTs included (RFC 4592 §3.3.1): number of
  /// labels (without root) of that name. Equals the name's own count when it exists or is an ENT.
  std::uint8_t encloser_labels = 0;
  /// The topmost *proper* ancestor of the name that has NS (below the apex) or DNAME (apex
  /// included). This record stands between the name and authoritative data. NS before DNAME at one
  /// name.
  RecordView barrier;
  std::uint8_t barrier_labels = 0;  ///< labels (without root) of the barrier's owner
  bool damaged = false;             ///< the trie is damaged: no other member counts
  /// See ZoneView::Wanted.
  RecordView nsec;
};

enum class Denial : std::uint8_t { kUnsigned, kNsec, kNsec3 };

struct Nsec3Parameters {  // RFC 5155 §4
  std::uint8_t hash = 1;
  std::uint16_t iterations = 0;
  ByteView salt;
};

/// The source of a zone's data, stored with the zone so that a restart can detect an edited file.
struct ZoneFileInfo {
  std::int64_t file_mtime_ns = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t hash = 0;   ///< of the file's content (base/content_hash.h), 0 = not known
  std::uint32_t stamp = 0;  ///< of its inode's state (manager/merge/merge_base.h), 0 = not known
  bool operator==(const ZoneFileInfo&) const = default;
};

class Bookmark;

/// One zone of a version. Trivially copyable.
class ZoneView {
 public:
  ZoneView() = default;
  [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
  /// True for the same zone of the same version.
  [[nodiscard]] bool is_same(const ZoneView& other) const noexcept {
    return entry_ == other.entry_;
  }
  [[nodiscard]] dns::NameView apex() const noexcept;
  [[nodiscard]] bool loaded() const noexcept;  ///< false: configured, no data yet → SERVFAIL
  [[nodiscard]] std::uint32_t side_index() const noexcept;  ///< entry of the unversioned side table
  [[nodiscard]] dns::Serial serial() const noexcept;
  /// The version that last changed the zone's data. An equal value means equal data, wherever the
  /// compactor has moved them.
  [[nodiscard]] std::uint64_t data_version() const noexcept;
  [[nodiscard]] RecordView apex_record() const noexcept;
  [[nodiscard]] RRsetView soa() const noexcept { return apex_record().find(dns::RRType::kSOA); }
  [[nodiscard]] Denial denial() const noexcept;
  [[nodiscard]] Nsec3Parameters nsec3_parameters() const noexcept;
  [[nodiscard]] std::uint64_t record_count() const noexcept;
  [[nodiscard]] std::uint64_t name_count() const noexcept;
  /// Bytes of the changesets in the zone's history (zone/history/history.h).
  [[nodiscard]] std::uint64_t history_bytes() const noexcept;
  /// Whether the zone may have snapshots: see zone/history/zone_snapshot.h.
  [[nodiscard]] bool has_snapshots() const noexcept;
  /// Whether some RRsets of the zone may be shared: see RRsetView::is_shared().
  [[nodiscard]] bool has_shared_sets() const noexcept;

  /// One descent for `name`, which must be at or below the apex.
  /// kNsecToo: without `exact` and `barrier`, `nsec` is that of nsec_at_or_before(), which then
  /// costs no descent of its own.
  enum class Wanted : std::uint8_t { kMatch, kNsecToo };
  [[nodiscard]] Match lookup(dns::NameView name, Wanted wanted = Wanted::kMatch) const noexcept;
  /// lookup() of the name whose key the caller has.
  [[nodiscard]] Match lookup(const NameKey& key, Wanted wanted = Wanted::kMatch) const noexcept;
  /// Exact record at `name`, no other.
  [[nodiscard]] RecordView record_at(dns::NameView name) const noexcept;
  /// The record at "*." + encloser, if any (RFC 4592 §3.3.1: source of synthesis).
  [[nodiscard]] RecordView wildcard_below(dns::NameView encloser) const noexcept;
  /// The record that has an NSEC RRset and whose owner is `name` or the nearest name before it in
  /// canonical order (RFC 4035 §3.1.3.2). Glue is skipped. The search never wraps: the apex is
  /// first.
  [[nodiscard]] RecordView nsec_at_or_before(dns::NameView name) const noexcept;
  /// NSEC3 whose owner hash equals (`exact`) or else covers `hash` (20 octets, RFC 5155 §7.2). A
  /// record with `exact` false covers the hash. Only records of the chain with nsec3_parameters()
  /// count; none is found when another chain has 1,024 records in between.
  [[nodiscard]] RecordView nsec3_match_or_cover(ByteView hash, bool& exact) const noexcept;
  /// NSEC3 whose owner hash equals `hash` (20 octets), of the chain with nsec3_parameters().
  [[nodiscard]] RecordView nsec3_at(ByteView hash) const noexcept;

  /// The two ordered trees of a zone: names below the apex, and owners of NSEC3 records.
  enum class Tree : std::uint8_t { kNames, kNsec3 };
  /// The record with exactly this owner among the NSEC3 records, of any chain.
  [[nodiscard]] RecordView nsec3_record_at(dns::NameView owner) const noexcept;
  /// The nearest record before or after `name` in canonical order, or the last record; none at the
  /// end. A loop over them ends in a damaged tree too: a record out of order counts as the end. For
  /// the manager: record_after() uses the heap.
  [[nodiscard]] RecordView record_before(Tree tree, dns::NameView name) const noexcept;
  [[nodiscard]] RecordView record_after(Tree tree, dns::NameView name) const;
  [[nodiscard]] RecordView last_record(Tree tree) const noexcept;

  /// Full owner name of a record of this zone.
  [[nodiscard]] dns::Name owner_of(const RecordView& record) const noexcept;

  /// Ordered walk: apex, names in canonical order, then NSEC3 owners in hash order. A walk can
  /// resume at any record, so a transfer can continue where its last message ended.
  class Cursor;
  [[nodiscard]] Cursor begin() const;

  [[nodiscard]] ByteView settings_bytes() const noexcept;  ///< see decode_zone_settings()
  [[nodiscard]] std::uint64_t settings_tag()
      const noexcept;  ///< equal tags = equal settings: cacheable
  /// The zone file that is the data's source; a time of 0 for another source.
  [[nodiscard]] ZoneFileInfo source() const noexcept;

 private:
  friend class Bookmark;
  friend class StoreView;
  friend class DraftCore;
  friend class DetachedDraft;
  friend class ZoneWalk;
  friend class Comparison;
  friend class HistoryReader;
  friend class ReadAhead;
  friend std::vector<ZoneSnapshot> snapshots_of(const ZoneView& zone);
  friend ZoneView data_of(const ZoneView& zone, const ZoneSnapshot& version);
  friend std::uint64_t history_bytes(const ZoneView& zone, dns::Serial from, dns::Serial to);
  friend struct ZoneFigures;
  friend std::optional<dns::Serial> primary_serial(const ZoneView& zone) noexcept;
  [[nodiscard]] Match lookup_below(ByteView labels, KeyView key, std::size_t apex_labels,
                                   Wanted wanted, const TrieDescent* made) const noexcept;
  [[nodiscard]] Trie names() const noexcept;
  [[nodiscard]] Trie nsec3() const noexcept;
  [[nodiscard]] Trie trie_of(Tree tree) const noexcept;
  [[nodiscard]] RecordView record(std::uint32_t ref) const noexcept;
  [[nodiscard]] RecordView nsec_from(struct LeafBlock leaf) const noexcept;
  [[nodiscard]] RecordView topmost_barrier(const struct TrieMatch& found, std::size_t apex_labels,
                                           std::uint8_t& labels) const noexcept;
  const ZoneEntry* entry_ = nullptr;
  const RootData* root_ = nullptr;
  shm::Window window_;
};

/// A compact reference to a zone and optionally one of its records, for caches. Making a view of it
/// repeats all checks of a lookup, because the store may have been damaged meanwhile.
class Bookmark {
 public:
  Bookmark() = default;
  Bookmark(const ZoneView& zone, const RecordView& record) noexcept;
  explicit Bookmark(const ZoneView& zone) noexcept : Bookmark(zone, RecordView()) {}
  [[nodiscard]] bool has_record() const noexcept { return record_ != 0; }
  /// The record; `zone` is StoreView::zone_at() for this bookmark.
  [[nodiscard]] RecordView record_in(const ZoneView& zone) const noexcept;
  /// Asks for the memory of the record, so many lines of the processor's caches, before
  /// record_in().
  void fetch_record(const ZoneView& zone, std::size_t lines) const noexcept;

 private:
  friend class StoreView;
  std::uint32_t zone_ = 0;
  std::uint32_t record_ = 0;
};

/// The parts that the lookup of a question's name in `zone` must find. `dnssec_ok`: its answer may
/// show proofs.
[[nodiscard]] inline ZoneView::Wanted wanted_in(const ZoneView& zone, bool dnssec_ok) noexcept {
  const bool nsec = dnssec_ok && zone.denial() == Denial::kNsec;
  return nsec ? ZoneView::Wanted::kNsecToo : ZoneView::Wanted::kMatch;
}

/// See ZoneView::begin(). next() gives each record once, then an empty view.
class ZoneView::Cursor {
 public:
  explicit Cursor(ZoneView zone);
  RecordView next();

 private:
  enum class Phase : std::uint8_t { kApex, kNames, kNsec3, kEnd };
  ZoneView zone_;
  Phase phase_ = Phase::kApex;
  std::unique_ptr<TrieWalk, void (*)(TrieWalk*)> walk_;
};

class ZoneWalk;

/// The serial that the zone's data have at the primary, of a secondary zone with serials of its own:
/// this server signs it, or did so until the primary's serial is ahead. Nullopt: the zone is another
/// one or absent, or the serial is not known.
[[nodiscard]] std::optional<dns::Serial> primary_serial(const ZoneView& zone) noexcept;

/// Numbers about a zone's data, for those who watch it.
struct ZoneFigures {
  std::uint64_t data_bytes = 0;  ///< of the store, without its history and its snapshots
  std::uint64_t changed_at = 0;  ///< time of data_version(), seconds since 1970; 0 = unknown
  [[nodiscard]] static ZoneFigures of(const ZoneView& zone) noexcept;
};

/// One whole version.
class StoreView {
 public:
  StoreView() = default;
  StoreView(shm::Window window, shm::Ref<> root, std::uint64_t version) noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return root_ != nullptr; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// The zone with the longest apex that `name` is at or below.
  [[nodiscard]] ZoneView find_zone(dns::NameView name) const noexcept {
    const dns::Name copy(name);
    return find_zone(NameKey(copy));
  }
  /// find_zone() of the name whose key the caller has.
  [[nodiscard]] ZoneView find_zone(const NameKey& key) const noexcept;
  /// The zone whose apex is exactly `apex`.
  [[nodiscard]] ZoneView zone_at(dns::NameView apex) const noexcept;
  /// Whether some zone's apex is `name` or below it; true as well when the store is damaged there.
  [[nodiscard]] bool has_zone_at_or_below(dns::NameView name) const noexcept;
  /// The zone of a bookmark that was made when this very version was pinned before.
  [[nodiscard]] ZoneView zone_at(const Bookmark& bookmark) const noexcept;
  /// Calls `visit(ZoneView)` for all zones in canonical order.
  template <class Visit>
  void for_each_zone(Visit&& visit) const;
  [[nodiscard]] std::uint64_t zone_count() const noexcept;
  /// Octets of the store in which blocks of any version may stand.
  [[nodiscard]] std::uint64_t octets() const noexcept {
    return window_.limit() > shm::kFirstBlock ? window_.limit() - shm::kFirstBlock : 0;
  }
  [[nodiscard]] std::uint64_t history_bytes() const noexcept;  ///< of all zones
  /// Number of archived data (zone/history/zone_snapshot.h), of all zones.
  [[nodiscard]] std::uint64_t archives() const noexcept;
  /// Changes whenever a snapshot is lost.
  [[nodiscard]] std::uint32_t snapshot_losses() const noexcept;
  /// Whether blocks of replaced zones wait to be released: see dismantle_discarded().
  [[nodiscard]] bool has_discarded() const noexcept;
  [[nodiscard]] ByteView server_settings_bytes() const noexcept;
  [[nodiscard]] std::uint64_t server_settings_tag() const noexcept;

 private:
  friend class ReadAhead;
  friend class ZoneWalk;
  friend class DraftCore;
  friend class DetachedDraft;
  [[nodiscard]] Trie zones() const noexcept;
  [[nodiscard]] ZoneView view_at(std::uint32_t ref) const noexcept;
  shm::Window window_;
  const RootData* root_ = nullptr;
  std::uint64_t version_ = 0;
};

/// Zones of a version in canonical order.
class ZoneWalk {
 public:
  explicit ZoneWalk(const StoreView& snapshot);
  /// Starts after `apex` (which need not exist).
  void seek_after(dns::NameView apex);
  /// The next zone, or an empty view.
  ZoneView next();

 private:
  StoreView snapshot_;
  std::unique_ptr<TrieWalk, void (*)(TrieWalk*)> walk_;
};

template <class Visit>
void StoreView::for_each_zone(Visit&& visit) const {
  ZoneWalk walk(*this);
  while (const ZoneView zone = walk.next()) visit(zone);
}

}  // namespace pando::zone

#include "zone/read/store_view_inl.h"
