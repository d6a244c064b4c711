#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "shm/store.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

/// Change history of a zone in the store: what turned each serial into the next, so that workers
/// answer IXFR (RFC 1995) from what they map, without the manager.
///
/// A *difference* is a run of leaves in a trie of its own (ZoneEntry::history), whose keys are one
/// label: the serial it starts from and the number of the piece, in twelve hexadecimal digits. So
/// the difference that follows a serial is found by one descent, whatever the history's length, and
/// blocks are moved and released like those of names. A leaf is a name record with one RRset of
/// kHistoryType, whose RDATAs are, numbers in network order:
///
///   first   | flags, 1: the difference's last piece | u32 serial to | u32 records before |
///   others  | flags, 1: comes in, 2: owner as before | u8 octets, relative labels | u16 type |
///           | u32 TTL | RDATA |
///
/// in the order of RFC 1995 §4: old SOA, what goes out, new SOA, what comes in. The differences are
/// without gaps; the last leads to the zone's serial. What cannot be written so (a zone put whole,
/// a change without a new serial) ends the history, which then begins anew.
namespace pando::zone {

struct ZoneEntry;
struct RootData;

/// RRset type of history leaves: from the range for private use, which no trie of names meets.
inline constexpr dns::RRType kHistoryType{0xFF00};
/// A difference is cut into pieces of about so many octets, which chunks have room for.
inline constexpr std::size_t kHistoryPieceBytes = std::size_t{16} << 10;

/// One record of a difference; views into the store.
struct HistoryRecord {
  bool added = false;
  dns::NameView owner;
  dns::RRType type{};
  dns::Ttl ttl{};
  ByteView rdata;
};

/// Reads a zone's differences from one serial to the present one, record by record. Valid while the
/// version is pinned. Not for the query path: it has memory of its own.
class HistoryReader {
 public:
  /// Nullopt when the history does not reach back to `serial`.
  static std::optional<HistoryReader> from(const ZoneView& zone, dns::Serial serial);
  /// The same from where the history begins; nullopt when there is none.
  static std::optional<HistoryReader> from_oldest(const ZoneView& zone);

  /// So many records are left, SOA records included.
  [[nodiscard]] std::uint32_t records() const noexcept { return left_; }
  /// The next record, valid until the next call; null at the end, or where the store is damaged.
  const HistoryRecord* next();
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }
  /// The difference that the last record belongs to; the first one before any was read.
  [[nodiscard]] dns::Serial from() const noexcept { return serial_; }
  [[nodiscard]] dns::Serial to() const noexcept { return to_; }

 private:
  HistoryReader(const ZoneView& zone, dns::Serial serial) noexcept : zone_(zone), serial_(serial) {}
  bool load_piece();
  bool take_record(ByteView rdata);

  ZoneView zone_;
  dns::Serial serial_;            // where the current difference starts
  dns::Serial to_{};              // and where it leads
  std::uint32_t piece_ = 0;       // the next one to be read
  bool last_piece_ = false;       // of the difference has been read
  std::vector<ByteView> rdatas_;  // of the current piece
  std::size_t at_ = 0;
  std::uint32_t left_ = 0;
  bool damaged_ = false;
  dns::Name owner_;
  HistoryRecord record_;
};

/// Octets of the differences that lead from one serial to another, or as far as they go. For the
/// manager's pool: one descent for each.
[[nodiscard]] std::uint64_t history_bytes(const ZoneView& zone, dns::Serial from, dns::Serial to);

/// Changeset a zone's history in a transaction; `entry` and `root` are the writer's copies.
class HistoryEditor {
 public:
  HistoryEditor(shm::Transaction& transaction, ZoneEntry& entry, RootData& root) noexcept
      : transaction_(transaction), entry_(entry), root_(root) {}

  /// Octets that the records of a difference take in pieces.
  [[nodiscard]] static std::uint64_t bytes_of(const Changeset& difference) noexcept;
  /// Appends a difference of the zone, which leads from `from` to `to`, a later serial; both SOA
  /// records are in it. Nothing may be in the history yet that starts from `from`: see has().
  Status append(const Changeset& difference, dns::Serial from, dns::Serial to);
  /// A difference that starts from there is in the history.
  [[nodiscard]] bool has(dns::Serial from) const;
  /// Drops the oldest differences until at most `octets` are left, or the one that starts from
  /// `stop_at` is the oldest; at most `differences` of them.
  Status trim(std::uint64_t octets, std::size_t differences,
              std::optional<dns::Serial> stop_at = {});

 private:
  class Pieces;
  Status put_piece(std::uint32_t ref, ByteView labels);
  Status drop_oldest();

  shm::Transaction& transaction_;
  ZoneEntry& entry_;
  RootData& root_;
};

}  // namespace pando::zone
