#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "shm/store.h"
#include "zone/draft/draft.h"
#include "zone/history/zone_snapshot.h"
#include "zone/record/changeset.h"

/// The bytes of a dump: a version of the store as a stream that does not depend on the store's
/// layout. So a build of another layout can continue from a dump. docs/formats/dump.md has the
/// pictures.
namespace pando::zone {

inline constexpr std::uint32_t kDumpVersion = 1;
inline constexpr std::size_t kDumpHeaderBytes = 80;
inline constexpr std::size_t kDumpFrameBytes = 32;
/// Number of first bytes that distinguish a dump from other files.
inline constexpr std::size_t kDumpMagicBytes = 8;
/// Name of a dump in the journal's folder from which the next start makes the store.
inline constexpr const char* kPlacedDumpName = "store.dump";
/// Zones and changesets are cut into parts of about this many bytes.
inline constexpr std::size_t kDumpPartBytes = std::size_t{1} << 20;
/// Upper bound of one record's body: a greater length is damage rather than data. Only the dynamic
/// changes of a zone with very many updates come near it.
inline constexpr std::uint32_t kMaxDumpBody = 1U << 30;

/// The head of a dump, before the records.
struct DumpHeader {
  shm::StoreOwner owner{};    ///< identity of the journal in which `position` counts
  std::uint64_t written = 0;  ///< time of writing, in seconds since 1970
  std::uint64_t version = 0;  ///< the store's version
  /// position in the journal: the version contains all records up to it
  std::uint64_t position = 0;
  std::uint64_t nonce = 0;    ///< random; seeds the records' checksums
  std::uint64_t lineage = 0;  ///< of the store (shm::Store::lineage())
  bool operator==(const DumpHeader&) const = default;
};

/// Begins a zone.
struct DumpZone {
  dns::Name name;
  bool loaded = false;
  bool is_secondary = false;
  dns::Serial serial;
  std::uint64_t records = 0;
  ZoneFileInfo source;  ///< the merge base
  std::optional<dns::Serial> primary_serial;  ///< primary_serial()
  // From the side table: shm::Store::SideEntry.
  std::uint64_t expires_at = 0;
  std::uint64_t next_refresh = 0;
  std::uint64_t last_ok = 0;
};
/// Some records of the zone, or of archived data; all of them additions.
struct DumpPart {
  Changeset records;
};
/// Part of a changeset from one serial to a later one. Changesets come oldest first.
struct DumpChangeset {
  dns::Serial from;
  dns::Serial to;
  bool last = false;  ///< whether this is the changeset's last part
  Changeset records;
};
/// The journal's knowledge of the zone's file: a journal record
/// (manager/journal/record/journal_format.h), which the dump's code does not interpret.
struct DumpNote {
  std::uint8_t kind = 0;
  dns::Serial from;
  dns::Serial to;
  Bytes payload;
};
/// A snapshot of the zone: the version that the changesets before have led to, or the reason why
/// the snapshot was lost. ZoneSnapshot::archive is not used.
struct DumpSnapshot {
  ZoneSnapshot version;
};
/// Marks the records before it, up to the zone's beginning or the last DumpArchive, as archived
/// data that the snapshots among them need. The data that replaced these records follow.
struct DumpArchive {
  dns::Serial serial;
  std::uint64_t records = 0;
};
/// Ends a zone, which is then whole.
struct DumpZoneEnd {};
/// Ends the dump, which is then whole.
struct DumpCounts {
  std::uint64_t zones = 0;
  std::uint64_t records = 0;     ///< without archived data
  std::uint64_t changesets = 0;  ///< changesets, also those of archived data
  std::uint64_t snapshots = 0;
  bool operator==(const DumpCounts&) const = default;
};
using DumpItem = std::variant<DumpZone, DumpPart, DumpChangeset, DumpNote, DumpZoneEnd, DumpCounts,
                              DumpSnapshot, DumpArchive>;

[[nodiscard]] bool looks_like_dump(ByteView head) noexcept;

/// Encodes the header as kDumpHeaderBytes bytes.
Bytes encode(const DumpHeader& header);
/// kCorrupt: no dump, or damaged; kLayout: of another version of the format.
Result<DumpHeader> decode_dump_header(ByteView bytes);

/// Appends a whole record: frame and body. `number` counts from 1.
void append_dump_record(Bytes& out, const DumpItem& item, std::uint64_t number,
                        std::uint64_t nonce);

/// The fields in the first kDumpFrameBytes of a record.
struct DumpFrame {
  std::uint32_t body_bytes = 0;
  std::uint64_t number = 0;
  std::uint8_t kind = 0;
};
/// Nullopt when `bytes` cannot be a frame.
std::optional<DumpFrame> decode_dump_frame(ByteView bytes) noexcept;
/// Checks and decodes the record of `frame` and `body`. The result has valid names and RDATA, and
/// its records lie in their zone. `zone`: the zone that is open; parts of another zone are refused.
Result<DumpItem> decode_dump_record(ByteView frame, ByteView body, std::uint64_t nonce,
                                    const dns::Name& zone);

}  // namespace pando::zone
