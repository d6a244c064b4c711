#pragma once

#include <span>
#include <vector>

#include "dns/heap_name.h"
#include "zone/dump/dump_format.h"

/// The index after a dump that is read zone by zone: the journal's snapshot. Damage then costs the
/// zone in which it lies, and the index tells which zone that is. docs/formats/dump.md has the
/// pictures.
namespace pando::zone {

/// A zone's place in the file.
struct DumpPlace {
  dns::HeapName name;
  bool has_data = false;
  /// The highest serial of the zone's data and notes (RFC 1982), so that a damaged zone's serial is
  /// still known.
  dns::Serial serial;
  // Offset and number of two records: the zone's first record, and the first record after its data.
  std::uint64_t offset = 0;
  std::uint64_t number = 0;
  std::uint64_t notes_offset = 0;
  std::uint64_t notes_number = 0;
  bool operator==(const DumpPlace&) const = default;
};

/// The place's serial becomes that of the note after the zone's data, if the note's is later.
void raise_serial(DumpPlace& place, const DumpNote& note) noexcept;

/// Bytes of the trailer, which ends the file.
inline constexpr std::size_t kDumpTrailerBytes = 24 + kDumpHeaderBytes;

/// The index and the trailer. `offset`: where they begin. The trailer repeats the header.
Bytes encode_dump_index(const DumpHeader& header, std::span<const DumpPlace> places,
                        std::uint64_t offset);

/// Where the trailer says that the index is.
struct DumpIndexPlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
/// The header as the trailer repeats it; errors as decode_dump_header().
Result<DumpHeader> decode_dump_trailer_header(ByteView trailer);
/// kCorrupt: damaged.
Result<DumpIndexPlace> decode_dump_trailer(ByteView trailer, std::uint64_t nonce);
/// kCorrupt: damaged.
Result<std::vector<DumpPlace>> decode_dump_index(ByteView index, std::uint64_t nonce);

}  // namespace pando::zone
