#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// One field of an RDATA layout, in wire order. The whole codec (wire check, text both ways,
/// decompression, compression, canonical form) is driven by one descriptor row per type.
/// (The list of kinds is completed in rdata.cpp's table; add a kind rather than a special case.)
struct RdataDescriptor;

/// Longest RDATA on the wire (RFC 1035 §3.2.1: RDLENGTH is 16 bits).
inline constexpr std::size_t kMaxRdataOctets = 65535;

/// RDATA length in octets when every RDATA of the type has the same (A 4, AAAA 16, EUI48 6 ...),
/// else 0. The store leaves out lengths for these types.
[[nodiscard]] std::size_t fixed_rdata_length(RRType type) noexcept;

/// Checks *uncompressed* wire RDATA of `type` completely: field sizes, names, bitmaps, SVCB
/// key order and so on. Unknown types accept everything (RFC 3597). Error text without the type.
Status check_rdata(RRType type, ByteView rdata);

/// Reads RDATA at [offset, offset+length) of a message, where names of the RFC 1035 types (and those
/// RFC 3597 §4 lists) may be compressed, and appends its checked, uncompressed form to `out`.
Status decompress_rdata(RRType type, ByteView message, std::size_t offset, std::size_t length,
                        Bytes& out);

/// One word of a zone file or of an nsupdate-like text: escapes are still in it.
struct Token {
  std::string_view text;  ///< without the quotes
  bool quoted = false;
};

/// Reads RDATA in presentation format, or in RFC 3597 form (`\# LENGTH HEX...`) for any type, and
/// appends uncompressed wire RDATA to `out` (unchanged on error). Relative names get `origin`.
Status rdata_from_text(RRType type, std::span<const Token> tokens, NameView origin, Bytes& out);

/// Splits one line of RDATA text into tokens and reads it; for tests and tools.
Status rdata_from_text(RRType type, std::string_view text, NameView origin, Bytes& out);

/// Presentation format of checked, uncompressed wire RDATA (names absolute). Unknown types come out
/// in RFC 3597 form; so does RDATA that does not fit its type.
[[nodiscard]] std::string rdata_to_text(RRType type, ByteView rdata);

/// Where the compressible domain names are (RFC 3597 §4: only the types of RFC 1035).
/// Calls `field(octets, is_name)` for each stretch in wire order; used by MessageWriter.
/// Trusts that the RDATA passed check_rdata.
template <class Field>
void for_each_compressible_field(RRType type, ByteView rdata, Field&& field);

/// Canonical RDATA order (RFC 4034 §6.3) after canonical form (§6.2: names of the listed types in
/// lower case). Duplicate records are those that compare equal.
[[nodiscard]] int compare_rdata_canonical(RRType type, ByteView a, ByteView b) noexcept;

/// The name whose addresses belong in the additional section (RFC 1035 §3.3.9, §3.3.11, RFC 2782,
/// RFC 9460 §4.1): NS, MX, SRV, ... targets. False when the type has none.
[[nodiscard]] bool additional_name(RRType type, ByteView rdata, NameView& name) noexcept;

/// TYPE the RRSIG covers (RFC 4034 §3.1.1); the RDATA has passed check_rdata.
[[nodiscard]] inline RRType rrsig_covered(ByteView rdata) noexcept {
  return static_cast<RRType>(load_be16(rdata.data()));
}

}  // namespace pando::dns
