#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "dns/tsig/tsig.h"

/// The TSIG record's wire form (RFC 8945 §4.2), for tsig_*.cpp only.
namespace pando::dns {

/// Octets of a TSIG record without its names, MAC and Other Data: TYPE to RDLENGTH and the RDATA's
/// fixed fields.
inline constexpr std::size_t kTsigFixedOctets = 10 + 16;

/// Writes the record at `out`, which has room for it; names are not compressed.
void put_tsig(const TsigRecord& record, std::uint8_t* out) noexcept;

/// 48-bit time (RFC 8945 §4.2).
void store_be48(std::uint8_t* out, std::uint64_t value) noexcept;

}  // namespace pando::dns
