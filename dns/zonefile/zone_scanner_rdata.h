#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dns/rdata/rdata.h"
#include "dns/zonefile/zone_scanner_fields.h"

namespace pando::dns {

/// Space for the output of read_plain_rdata, which writes in blocks.
inline constexpr std::size_t kPlainRdataOctets = 4096;
using PlainRdata = std::array<std::uint8_t, kPlainRdataOctets>;

/// Reads the RDATA of the types that fill large zones (addresses, names, DS, RRSIG, NSEC, NSEC3) in
/// their usual form. The octets are the same as those of rdata_from_text(). Returns their number,
/// and 0 for any other text, right or wrong: rdata_from_text() then decides. Tokens must be
/// readable for kLexerPadding octets after their end.
std::size_t read_plain_rdata(RRType type, std::span<const Token> tokens, const PaddedName& origin,
                             std::uint8_t* out) noexcept;

}  // namespace pando::dns
