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

/// Change history of a zone in the store: the changesets from each serial to the next. Workers
/// answer IXFR (RFC 1995) from this mapped memory, without the manager.
///
/// A changeset is a run of leaves in a trie of its own (ZoneEntry::history). A key is one label:
/// the serial from which the changeset starts and the number of the piece, in twelve hexadecimal
/// digits. So one descent finds the changeset that follows a serial, whatever the history's length,
/// and blocks are moved and released like those of names. A leaf is a name record with one RRset of
/// kHistoryType. The RDATAs of that set are, numbers in network order:
///
///   first   | flags, 1: the changeset's last piece | u32 serial to | u32 records before | author |
///   others  | flags, 1: comes in, 2: owner as before | u8 octets, relative labels | u16 type |
///           | u32 TTL | RDATA |
///
/// The author (put_author) stands in a changeset's first piece, if it is known.
///
/// Records stand in the order of RFC 1995 §4: old SOA, removed records, new SOA, added records. The
/// changesets are without gaps; the last leads to the zone's serial. A change that is no changeset
/// (a zone put whole, a change without a new serial) ends the history; a new one begins.
namespace pando::zone {

struct ZoneEntry;
struct RootData;

/// RRset type of history leaves, from the range for private use; no trie of names has it.
inline constexpr dns::RRType kHistoryType{0xFF00};
/// A changeset is cut into pieces of about this many bytes, which fit into chunks.
inline constexpr std::size_t kHistoryPieceBytes = std::size_t{16} << 10;

/// One record of a changeset; views into the store.
struct HistoryRecord {
  bool added = false;
  dns::NameView owner;
  dns::RRType type{};
  dns::Ttl ttl{};
  ByteView rdata;
};

/// Reads a zone's changesets from one serial to the present one, record by record. Valid while the
/// version is pinned. Not for the query path: the reader allocates memory.
class HistoryReader {
 public:
  /// Nullopt when the history does not reach back to `serial`.
  static std::optional<HistoryReader> from(const ZoneView& zone, dns::Serial serial);
  /// Starts where the history begins; nullopt when there is no history.
  static std::optional<HistoryReader> from_oldest(const ZoneView& zone);

  /// Number of records left, SOA records included.
  [[nodiscard]] std::uint32_t records() const noexcept { return left_; }
  /// The next record, valid until the next call; null at the end, or where the store is damaged.
  const HistoryRecord* next();
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }
  /// The changeset of the last record; the first changeset before any record was read.
  [[nodiscard]] dns::Serial from() const noexcept { return serial_; }
  [[nodiscard]] dns::Serial to() const noexcept { return to_; }
  /// The author of that changeset.
  [[nodiscard]] Author author() const;

 private:
  HistoryReader(const ZoneView& zone, dns::Serial serial) noexcept : zone_(zone), serial_(serial) {}
  bool load_piece();
  bool take_record(ByteView rdata);

  ZoneView zone_;
  dns::Serial serial_;            // serial from which the current changeset starts
  dns::Serial to_{};              // serial to which the current changeset leads
  ByteView author_;               // of the current changeset
  std::uint32_t piece_ = 0;       // the next one to be read
  bool last_piece_ = false;       // whether the changeset's last piece has been read
  std::vector<ByteView> rdatas_;  // of the current piece
  std::size_t at_ = 0;
  std::uint32_t left_ = 0;
  bool damaged_ = false;
  dns::Name owner_;
  HistoryRecord record_;
};

/// Bytes of the changesets from one serial to another, or as far as they reach. For the manager's
/// pool: one descent for each changeset.
[[nodiscard]] std::uint64_t history_bytes(const ZoneView& zone, dns::Serial from, dns::Serial to);

/// Changes a zone's history in a transaction; `entry` and `root` are the writer's copies.
class HistoryEditor {
 public:
  HistoryEditor(shm::Transaction& transaction, ZoneEntry& entry, RootData& root) noexcept
      : transaction_(transaction), entry_(entry), root_(root) {}

  /// Bytes that the records of a changeset take in pieces.
  [[nodiscard]] static std::uint64_t bytes_of(const Changeset& changeset) noexcept;
  /// Appends a changeset of the zone from `from` to `to`, a later serial; both SOA records are in
  /// it. The history must not have a changeset that starts from `from` yet: see has().
  Status append(const Changeset& changeset, dns::Serial from, dns::Serial to);
  /// Whether the history has a changeset that starts from `from`.
  [[nodiscard]] bool has(dns::Serial from) const;
  /// Drops at most `changesets` of the oldest changesets. Stops once at most `octets` bytes are
  /// left, or the changeset that starts from `stop_at` is the oldest.
  Status trim(std::uint64_t octets, std::size_t changesets,
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
