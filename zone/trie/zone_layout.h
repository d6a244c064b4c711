#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/bytes.h"
#include "shm/map/ref.h"
#include "zone/trie/key.h"

/// The bytes of zone data in the store. Only zone/ and its white-box tests include this file.
///
///   RootData ── zones trie ── ZoneEntry ──┬─ apex record
///                                         ├─ names trie ── name records
///                                         ├─ NSEC3 trie ── name records
///                                         ├─ history trie ── changesets (zone/history/history.h)
///                                         └─ SnapshotList ── ZoneEntry of archived data
///
/// A trie reference points at a branch or at a leaf (ZoneEntry or name record). Bit 0 of the
/// block's first byte tells which, so a reference needs no tag and a child costs four bytes.
namespace pando::zone {

/// To be raised when any layout or meaning below changes: a part of the store's fingerprint.
inline constexpr std::uint32_t kFormatVersion = 2;

/// Trie branch: 8 bytes, then one 32-bit reference per child, in symbol order.
///
///   bit 0      1: this block is a branch
///   bits 1-48  which of the 48 symbols have a child
///   bits 49-58 offset of the tested symbol in the key; grows strictly on the way down
struct Branch {
  std::uint64_t header;

  static constexpr std::uint64_t kBitmapMask = ((std::uint64_t{1} << kSymbols) - 1) << 1;
  static constexpr unsigned kOffsetShift = 49;

  [[nodiscard]] static constexpr std::uint64_t make(std::uint64_t bitmap, std::size_t offset) {
    return 1U | (bitmap << 1) | (std::uint64_t{offset} << kOffsetShift);
  }
  [[nodiscard]] std::uint64_t bitmap() const noexcept { return (header & kBitmapMask) >> 1; }
  [[nodiscard]] std::size_t offset() const noexcept { return (header >> kOffsetShift) & 0x3FF; }
  [[nodiscard]] unsigned count() const noexcept {
    return static_cast<unsigned>(std::popcount(header & kBitmapMask));
  }
  [[nodiscard]] bool has(unsigned symbol) const noexcept {
    return ((header >> (symbol + 1)) & 1) != 0;
  }
  /// Number of children before `symbol`.
  [[nodiscard]] unsigned index_of(unsigned symbol) const noexcept {
    const std::uint64_t below = ((std::uint64_t{2} << symbol) - 1) & kBitmapMask;
    return static_cast<unsigned>(std::popcount(header & below));
  }
  [[nodiscard]] const std::uint32_t* children() const noexcept {
    return reinterpret_cast<const std::uint32_t*>(this + 1);
  }
  [[nodiscard]] std::uint32_t* children() noexcept {
    return reinterpret_cast<std::uint32_t*>(this + 1);
  }
  [[nodiscard]] static constexpr std::size_t octets(unsigned count) noexcept {
    return sizeof(std::uint64_t) + count * sizeof(std::uint32_t);
  }
};
static_assert(sizeof(Branch) == 8 && std::is_trivially_copyable_v<Branch>,
              "children start behind the header");
static_assert(kMaxKeySymbols <= 0x400, "a key offset must fit ten bits");

/// Name record: one contiguous block.
///
///   0       1        2        3
///   | flags | length | RRsets | owner labels … | RRset | RRset | …
///
/// RRset, unaligned:
///   | form | type 1-2 | [RDATAs u16] | [RRSIGs u16] | TTL 1-4 | [size varint] | data |
/// - `form`: see RRsetForm, which gives the lengths of the other fields.
/// - `data`: RDATAs, then RRSIGs. RDATAs of a fixed-length type are bare; all others have a varint
///   length before them. RRSIGs leave out "type covered".
/// - A server's name (NS) is stored without its end if that is the owner, octet by octet, and the
///   apex in lower case. Such a relative name is empty or ends with an octet other than 0
///   (zone/read/relative_name.h). In shared pages names are whole.
/// - size 0: the data is too large for this block and stands in a block of its own. The field is
///   then `reference u32, size u32`. With kSharedBit in that size the data stands in one of the
///   zone's shared pages (zone/record/shared_sets.h), with sets of other names.
struct RecordHeader {
  std::uint8_t flags;
  std::uint8_t name_octets;
  std::uint8_t rrset_count;

  static constexpr std::uint8_t kBranchBit = 1;  // never set here
  static constexpr std::uint8_t kHasNs = 2;
  static constexpr std::uint8_t kHasCname = 4;
  static constexpr std::uint8_t kHasDname = 8;
  static constexpr std::uint8_t kHasNsec = 16;
};
static_assert(sizeof(RecordHeader) == 3, "owner labels start at octet 3");

/// Bounds a reader's work when a count is damaged: a power of two less one.
inline constexpr std::uint16_t kMaxRdataCount = (1U << 13) - 1;

/// First octet of an RRset:
///
///   bits 0-2  RDATAs; 7 = their number stands after the type
///   bits 3-4  RRSIGs; 3 = their number stands after the number of RDATAs
///   bits 5-6  octets of the TTL less one
///   bit 7     the type has two octets, else one
///
/// Nearly all sets have few records, a type below 256 and a TTL of two or three octets.
struct RRsetForm {
  std::uint8_t octet;

  static constexpr unsigned kManyRdatas = 7;
  static constexpr unsigned kManySignatures = 3;

  [[nodiscard]] static constexpr RRsetForm make(std::uint16_t type, std::size_t rdatas,
                                                std::size_t signatures, std::uint32_t ttl) {
    const unsigned ttl_octets = ttl == 0 ? 1 : (static_cast<unsigned>(std::bit_width(ttl)) + 7) / 8;
    return {static_cast<std::uint8_t>((rdatas < kManyRdatas ? rdatas : kManyRdatas) |
                                      (signatures < kManySignatures ? signatures : kManySignatures)
                                          << 3 |
                                      (ttl_octets - 1) << 5 | (type > 0xFF ? 0x80U : 0U))};
  }
  [[nodiscard]] unsigned rdatas() const noexcept { return octet & 7U; }
  [[nodiscard]] unsigned signatures() const noexcept { return octet >> 3 & 3U; }
  [[nodiscard]] unsigned ttl_octets() const noexcept { return (octet >> 5 & 3U) + 1; }
  [[nodiscard]] unsigned type_octets() const noexcept { return (octet >> 7) + 1U; }
  /// True when the TTL follows a type of one octet directly.
  [[nodiscard]] bool is_short() const noexcept {
    return octet < 0x80 && rdatas() != kManyRdatas && signatures() != kManySignatures;
  }
  /// Octets before the size, this octet included.
  [[nodiscard]] std::size_t octets() const noexcept {
    return std::size_t{1} + type_octets() + (rdatas() == kManyRdatas ? 2 : 0) +
           (signatures() == kManySignatures ? 2 : 0) + ttl_octets();
  }
  /// True when no size is stored: a few RDATAs of this fixed length are the whole data.
  [[nodiscard]] bool implies_size(std::size_t fixed_bytes) const noexcept {
    return fixed_bytes != 0 && signatures() == 0 && rdatas() != 0 && rdatas() != kManyRdatas;
  }
};
static_assert(sizeof(RRsetForm) == 1, "the type starts at octet 1");

/// Data of an RRset above this many bytes gets a block of its own. So replacing one small set (a
/// SOA) never copies a big one (a DNSKEY set with its signatures).
inline constexpr std::size_t kInlineDataBytes = 768;
inline constexpr std::size_t kExternalBytes = 8;
inline constexpr std::uint32_t kSharedBit = std::uint32_t{1} << 31;

/// Leaf of the zones trie; the apex's labels and the root octet follow.
///
///   0 flags | 1 apex octets | 2 – | 4 side table index | 8 apex record | 12 names | 16 nsec3 |
///   20 serial | 24 settings hash | 32 records | 40 names | 48 source mtime | 56 source bytes |
///   64 data version | 72 shared pages | 76 history | 80 oldest serial in it | 84 its records |
///   88 its bytes | 96 snapshots | 100 source stamp | 104 source hash | 112 data units |
///   116 changed at | 120 primary's serial | 124 – | 128 apex labels …
///
/// Archived data (zone/history/zone_snapshot.h) has a ZoneEntry, too, to which SnapshotList refers.
/// That block has no settings and no snapshots, but the history that led to the data.
struct ZoneEntry {
  std::uint8_t flags;
  std::uint8_t name_octets;
  std::uint16_t unused;
  std::uint32_t side_index;
  std::uint32_t apex;
  std::uint32_t names;
  std::uint32_t nsec3;
  std::uint32_t serial;
  std::uint64_t settings_hash;  // finds the settings in RootData's trie of settings
  std::uint64_t record_count;
  std::uint64_t name_count;
  std::int64_t source_mtime_ns;
  std::uint64_t source_bytes;
  std::uint64_t data_version;     // the version that last changed the data
  std::uint32_t shared;           // newest SharedPage, 0 = none
  std::uint32_t history;          // trie of changesets, 0 = none
  std::uint32_t history_first;    // serial from which the oldest changeset starts
  std::uint32_t history_records;  // records ever written to the history, modulo 2^32
  std::uint64_t history_bytes;    // in blocks of changesets, without the trie's branches
  std::uint32_t snapshots;        // SnapshotList, 0 = none
  std::uint32_t source_stamp;
  std::uint64_t source_hash;
  std::uint32_t data_units;  // blocks of names, tries and shared pages, in units of a reference
  std::uint32_t changed_at;  // time of data_version, in seconds since 1970; 0 = unknown
  std::uint32_t primary_serial;  // with kPrimarySerial: primary_serial(); else 0
  std::uint32_t reserved;

  static constexpr std::uint8_t kLoaded = 2;
  static constexpr std::uint8_t kNsec = 4;
  static constexpr std::uint8_t kNsec3 = 8;
  static constexpr std::uint8_t kPrimarySerial = 16;

  [[nodiscard]] std::size_t octets() const noexcept { return sizeof(ZoneEntry) + name_octets + 1U; }
};
static_assert(sizeof(ZoneEntry) == 128 && std::is_trivially_copyable_v<ZoneEntry>,
              "apex labels start at octet 128");

/// One snapshot of a zone (zone/history/zone_snapshot.h).
///
///   0 archive | 4 serial | 8 taken | 16 records | 24 state | 25 octets of the label | 26 label …
struct SnapshotEntry {
  static constexpr std::size_t kLabelOctets = 46;

  // ZoneEntry of the snapshot's archived data, 0 = the zone's own data
  std::uint32_t archive;
  std::uint32_t serial;
  std::uint64_t taken;  // seconds since 1970
  std::uint64_t records;
  std::uint8_t state;  // ZoneSnapshot::State
  std::uint8_t label_octets;
  char label[kLabelOctets];
};
static_assert(sizeof(SnapshotEntry) == 72 && std::is_trivially_copyable_v<SnapshotEntry>,
              "entries are an array behind a count");

/// A zone's snapshots in the order in which they were taken: count, then entries.
struct SnapshotList {
  std::uint32_t count;
  std::uint32_t unused;

  [[nodiscard]] static std::size_t octets(std::size_t count) noexcept {
    return sizeof(SnapshotList) + count * sizeof(SnapshotEntry);
  }
  [[nodiscard]] const SnapshotEntry* entries() const noexcept {
    return reinterpret_cast<const SnapshotEntry*>(this + 1);
  }
  [[nodiscard]] SnapshotEntry* entries() noexcept {
    return reinterpret_cast<SnapshotEntry*>(this + 1);
  }
};
static_assert(sizeof(SnapshotList) == 8, "entries start 8-aligned");

/// A page of RRsets that records of one zone share: packed RDATAs from here on, each set 8-aligned.
struct SharedPage {
  std::uint32_t older;  // the page before, 0 = none
  std::uint32_t unused;
};
static_assert(sizeof(SharedPage) == 8, "sets start 8-aligned");

/// The root of a version's zone data.
struct RootData {
  std::uint32_t zones;  // trie of ZoneEntry
  std::uint32_t server_settings;
  std::uint32_t server_settings_bytes;
  std::uint32_t discarded;  // DiscardedStack, 0 = nothing to dismantle
  std::uint64_t server_settings_hash;
  std::uint64_t zone_count;
  std::uint32_t settings;         // trie of SettingsEntry
  std::uint32_t snapshot_losses;  // snapshots that were ever lost, modulo 2^32
  std::uint64_t history_bytes;    // of all zones, without archived data
  std::uint64_t archives;         // number of archived data that snapshots keep, of all zones
};
static_assert(sizeof(RootData) == 56 && std::is_trivially_copyable_v<RootData>,
              "all processes agree on the root");

/// One set of settings, for all zones that have it (zone/trie/stored_settings.h). The first octets
/// are those of a name record, so that the trie finds the key.
///
///   0 flags | 1 octets of the key | 2 – | 3 key | 20 zones | 24 block | 28 its octets
struct SettingsEntry {
  std::uint8_t flags;  // 0: no branch
  std::uint8_t key_octets;
  std::uint8_t unused;
  std::uint8_t key[17];  // SettingsKey
  std::uint32_t zones;   // number of zone entries that refer to the settings
  std::uint32_t block;   // the flat form
  std::uint32_t octets;
};
static_assert(sizeof(SettingsEntry) == 32 && offsetof(SettingsEntry, key) == sizeof(RecordHeader),
              "the trie reads the key where a name record has its owner");

/// Subtrees of replaced zones that are still to be released: count, then references. Lists form a
/// chain, so that one more removed zone costs the same beside many.
struct DiscardedStack {
  std::uint32_t count;
  std::uint32_t older;  // the next list, 0 = none
  [[nodiscard]] static std::size_t octets(std::size_t count) noexcept {
    return sizeof(DiscardedStack) + count * sizeof(std::uint32_t);
  }
  [[nodiscard]] const std::uint32_t* refs() const noexcept {
    return reinterpret_cast<const std::uint32_t*>(this + 1);
  }
  [[nodiscard]] std::uint32_t* refs() noexcept {
    return reinterpret_cast<std::uint32_t*>(this + 1);
  }
};

/// Lengths as 1 to 3 octets of 7 bits, low bits first: up to 2^21-1, which no RRset exceeds.
[[nodiscard]] inline std::size_t varint_bytes(std::uint32_t value) noexcept {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : 3;
}
inline std::uint8_t* put_varint(std::uint8_t* out, std::uint32_t value) noexcept {
  while (value >= 0x80) {
    *out++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}
/// get_varint() of more than one octet.
[[nodiscard]] inline const std::uint8_t* get_long_varint(const std::uint8_t* p,
                                                         const std::uint8_t* end,
                                                         std::uint32_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 21 && p < end; shift += 7) {
    const std::uint8_t octet = *p++;
    value |= static_cast<std::uint32_t>(octet & 0x7F) << shift;
    if (octet < 0x80) return p;
  }
  return nullptr;
}
/// Reads a varint in [p, end); nullptr when the varint is cut off or longer than three octets.
/// Inline, so that `value` stays in a register.
[[nodiscard]] [[gnu::always_inline]] inline const std::uint8_t* get_varint(
    const std::uint8_t* p, const std::uint8_t* end, std::uint32_t& value) noexcept {
  if (p < end && *p < 0x80) [[likely]] {
    value = *p;
    return p + 1;
  }
  std::uint32_t longer;
  p = get_long_varint(p, end, longer);
  value = longer;
  return p;
}

template <class T>
[[nodiscard]] inline T load_unaligned(const std::uint8_t* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
inline std::uint8_t* store_unaligned(std::uint8_t* p, T value) noexcept {
  std::memcpy(p, &value, sizeof value);
  return p + sizeof value;
}

}  // namespace pando::zone
