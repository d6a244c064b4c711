#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "shm/store.h"
#include "zone/build/draft.h"
#include "zone/history/zone_snapshot.h"
#include "zone/record/changeset.h"

/// The bytes of a dump: a version of the store as a stream that says nothing of the store's layout,
/// so that a build of another layout can go on from it. docs/store-format.md has the pictures.
namespace pando::zone {

inline constexpr std::uint32_t kDumpVersion = 2;
inline constexpr std::size_t kDumpHeaderBytes = 80;
inline constexpr std::size_t kDumpFrameBytes = 32;
/// Enough of a file's first octets to tell a dump from anything else.
inline constexpr std::size_t kDumpMagicBytes = 8;
/// Where a server that is to start on a dump looks for it: in the journal's folder.
inline constexpr const char* kPlacedDumpName = "store.dump";
/// Zones and differences are cut into parts of about so many octets.
inline constexpr std::size_t kDumpPartBytes = std::size_t{1} << 20;
/// One record's body. What is above is a broken length rather than data; only the overlay of a zone
/// with very many updates comes anywhere near.
inline constexpr std::uint32_t kMaxDumpBody = 1U << 30;

/// What stands before the records.
struct DumpHeader {
  shm::StoreOwner owner{};     ///< the journal that goes with it
  std::uint64_t written = 0;   ///< when, in seconds since 1970
  std::uint64_t version = 0;   ///< the store's
  std::uint64_t position = 0;  ///< of the journal: the version contains everything up to it
  std::uint64_t nonce = 0;     ///< random; seeds the records' checksums
  std::uint64_t line = 0;      ///< of the store (shm::Store::line()); 0: not known
  bool operator==(const DumpHeader&) const = default;
};

/// A zone begins.
struct DumpZone {
  dns::Name name;
  bool loaded = false;
  bool is_secondary = false;
  dns::Serial serial;
  std::uint64_t records = 0;
  ZoneFileInfo source;  ///< the noted file
  // Of the side table: shm::Store::SideEntry.
  std::uint64_t expires_at = 0;
  std::uint64_t next_refresh = 0;
  std::uint64_t last_ok = 0;
};
/// Some of its records, all of them additions; or of data that were set aside.
struct DumpPart {
  Changeset records;
};
/// Some of what led from one serial to a later one, oldest difference first.
struct DumpDifference {
  dns::Serial from;
  dns::Serial to;
  bool last = false;  ///< part of this difference
  Changeset records;
};
/// What the journal knows of the zone's file: a journal record (manager/journal/journal_format.h),
/// of which nothing is looked at here.
struct DumpNote {
  std::uint8_t kind = 0;
  dns::Serial from;
  dns::Serial to;
  Bytes payload;
};
/// A version of the zone that was given a label: of what the differences before have come to, or
/// why it was lost. ZoneSnapshot::aside is not used.
struct DumpSaved {
  ZoneSnapshot version;
};
/// What came since the zone began, or since the last one of these, are data that were set aside for
/// the saved versions in it; what was put in their place follows.
struct DumpAside {
  dns::Serial serial;
  std::uint64_t records = 0;
};
/// The zone is whole.
struct DumpZoneEnd {};
/// The dump is whole.
struct DumpCounts {
  std::uint64_t zones = 0;
  std::uint64_t records = 0;      ///< without data that were set aside
  std::uint64_t differences = 0;  ///< with theirs
  std::uint64_t saved = 0;
  bool operator==(const DumpCounts&) const = default;
};
using DumpItem = std::variant<DumpZone, DumpPart, DumpDifference, DumpNote, DumpZoneEnd, DumpCounts,
                              DumpSaved, DumpAside>;

[[nodiscard]] bool looks_like_dump(ByteView head) noexcept;

/// kDumpHeaderBytes octets.
Bytes encode(const DumpHeader& header);
/// kCorrupt: no dump, or damaged; kLayout: of a later version.
Result<DumpHeader> decode_dump_header(ByteView bytes);

/// Appends a whole record: frame and body. `number` counts from 1.
void append_dump_record(Bytes& out, const DumpItem& item, std::uint64_t number,
                        std::uint64_t nonce);

/// What the first kDumpFrameBytes of a record say.
struct DumpFrame {
  std::uint32_t body_bytes = 0;
  std::uint64_t number = 0;
  std::uint8_t kind = 0;
};
/// Nullopt when they cannot be a frame.
std::optional<DumpFrame> decode_dump_frame(ByteView bytes) noexcept;
/// Checks and takes apart the record of `frame` and `body`. Names and RDATA are valid then, and
/// records lie in their zone. `zone`: the one that is open; parts of another are refused.
Result<DumpItem> decode_dump_record(ByteView frame, ByteView body, std::uint64_t nonce,
                                    const dns::Name& zone);

}  // namespace pando::zone
