#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// Longest RDATA on the wire (RFC 1035 §3.2.1: RDLENGTH is 16 bits).
inline constexpr std::size_t kMaxRdataOctets = 65535;

/// Octets that a message may need beside one record: header 12, question 259, TSIG 377 (RFC 8945
/// §4.2), and the rest for an OPT record with its options.
inline constexpr std::size_t kBesideRecordOctets = 1024;
/// Most octets of a record's owner, fixed fields and RDATA. A message holds any such record,
/// whether signed or not: in an answer as well as in a transfer.
inline constexpr std::size_t kMaxRecordOctets = 65535 - kBesideRecordOctets;

/// kInvalid for a record that no zone can have, because some message could not hold the record.
Status check_record_size(NameView owner, RRType type, ByteView rdata);

namespace detail {

/// fixed_rdata_length() of the types that are not seen every day.
constexpr std::size_t rare_rdata_length(RRType type) noexcept {
  switch (type) {
    case RRType::kNID:
      return 10;  // RFC 6742 §2.1
    case RRType::kL32:
      return 6;  // RFC 6742 §2.2
    case RRType::kL64:
      return 10;  // RFC 6742 §2.3
    case RRType::kEUI48:
      return 6;  // RFC 7043 §3.1
    case RRType::kEUI64:
      return 8;  // RFC 7043 §4.1
    case RRType::kIPN:
      return 8;
    default:
      return 0;
  }
}

}  // namespace detail

/// RDATA length in octets for types whose RDATA always has one length (A 4, AAAA 16, EUI48 6 ...),
/// else 0. The store leaves out lengths for these types. Inline, because walks and answers ask for
/// each RRset.
[[nodiscard]] [[gnu::always_inline]] constexpr std::size_t fixed_rdata_length(
    RRType type) noexcept {
  if (type == RRType::kA) return 4;      // RFC 1035 §3.4.1
  if (type == RRType::kAAAA) return 16;  // RFC 3596 §2.2
  return type < RRType::kNID ? 0 : detail::rare_rdata_length(type);
}

/// Checks *uncompressed* wire RDATA of `type` completely: field sizes, names, bitmaps, SVCB
/// key order and so on. Unknown types accept everything (RFC 3597). Error text without the type.
Status check_rdata(RRType type, ByteView rdata);

/// check_rdata() of records that a zone has already, from an image, a dump or an earlier version of
/// this program. Rules that only keep new records out do not apply: digests of another length than
/// their type's, and the like. They hurt nobody but the partners that refuse them, whereas a zone
/// that is not served hurts everybody.
Status check_stored_rdata(RRType type, ByteView rdata);

/// Reads RDATA at [offset, offset+length) of a message and appends its checked, uncompressed form
/// to `out`. Names of the RFC 1035 types, and of those that RFC 3597 §4 lists, may be compressed.
Status decompress_rdata(RRType type, ByteView message, std::size_t offset, std::size_t length,
                        Bytes& out);

/// One word of a zone file or of an nsupdate-like text, with its escapes. An unescaped quote ends a
/// word and begins a quoted one, as in BIND: `a="b c"d` is `a=`, quoted `b c`, `d`.
/// The views point into one text, so that SVCB can distinguish `alpn="h2"` (RFC 9460 §2.1) from
/// `alpn= "h2"`. In the first the quoted word starts one octet past the end of the other.
struct Token {
  std::string_view text;  ///< without the quotes
  bool quoted = false;
};

/// Reads RDATA in presentation format, or in RFC 3597 form (`\# LENGTH HEX...`) for any type.
/// Appends uncompressed wire RDATA to `out` (unchanged on error). Relative names get `origin`.
Status rdata_from_text(RRType type, std::span<const Token> tokens, NameView origin, Bytes& out);

/// Splits one line of RDATA text into tokens and reads it; for tests and tools.
Status rdata_from_text(RRType type, std::string_view text, NameView origin, Bytes& out);

/// Presentation format of checked, uncompressed wire RDATA (names absolute). Unknown types, and
/// RDATA that check_stored_rdata() refuses, are printed in RFC 3597 form.
[[nodiscard]] std::string rdata_to_text(RRType type, ByteView rdata);

namespace detail {

/// `names` compressible names after `prefix` octets; the rest has no names.
struct CompressibleNames {
  std::uint8_t prefix;
  std::uint8_t names;
};

/// RFC 3597 §4: only names of the types of RFC 1035 may be sent compressed. Indexed by type.
inline constexpr std::array<CompressibleNames, 16> kCompressibleNames = {{
    {0, 0},
    {0, 0},  // 0, A
    {0, 1},
    {0, 1},
    {0, 1},
    {0, 1},  // NS MD MF CNAME
    {0, 2},  // SOA
    {0, 1},
    {0, 1},
    {0, 1},  // MB MG MR
    {0, 0},
    {0, 0},  // NULL WKS
    {0, 1},  // PTR
    {0, 0},  // HINFO
    {0, 2},  // MINFO
    {2, 1},  // MX
}};

constexpr CompressibleNames compressible_names(RRType type) noexcept {
  const auto value = static_cast<std::uint16_t>(type);
  return value < kCompressibleNames.size() ? kCompressibleNames[value] : CompressibleNames{0, 0};
}

/// Offset of the name for additional_name(); kNoTarget for types without such a name.
inline constexpr std::uint8_t kNoTarget = 255;
constexpr std::uint8_t target_offset(RRType type) noexcept {
  switch (type) {
    case RRType::kNS:
      return 0;  // RFC 1035 §3.3.11
    case RRType::kMD:
      return 0;  // RFC 1035 §3.3.4
    case RRType::kMF:
      return 0;  // RFC 1035 §3.3.5
    case RRType::kMB:
      return 0;  // RFC 1035 §3.3.3
    case RRType::kMX:
      return 2;  // RFC 1035 §3.3.9
    case RRType::kAFSDB:
      return 2;  // RFC 1183 §1
    case RRType::kRT:
      return 2;  // RFC 1183 §3.3
    case RRType::kKX:
      return 2;  // RFC 2230 §3
    case RRType::kSRV:
      return 6;  // RFC 2782
    case RRType::kSVCB:
      return 2;  // RFC 9460 §4.1
    case RRType::kHTTPS:
      return 2;
    default:
      return kNoTarget;
  }
}

}  // namespace detail

/// Visits the compressible domain names (RFC 3597 §4: only the types of RFC 1035). Calls
/// `field(octets, is_name)` for each stretch in wire order, none of them empty; used by
/// MessageWriter. The RDATA must have passed check_rdata, but no read ever goes outside of it: an
/// invalid name is passed as plain octets.
template <class Field>
void for_each_compressible_field(detail::CompressibleNames places, ByteView rdata, Field&& field) {
  if (places.prefix >= rdata.size()) places.names = 0;
  if (places.prefix != 0 && places.names != 0) {
    field(rdata.first(places.prefix), false);
    rdata = rdata.subspan(places.prefix);
  }
  for (std::uint8_t i = 0; i < places.names; ++i) {
    const std::size_t length = wire_name_length(rdata);
    if (length == 0) break;
    field(rdata.first(length), true);
    rdata = rdata.subspan(length);
  }
  if (!rdata.empty()) field(rdata, false);
}

template <class Field>
void for_each_compressible_field(RRType type, ByteView rdata, Field&& field) {
  for_each_compressible_field(detail::compressible_names(type), rdata, std::forward<Field>(field));
}

/// Canonical RDATA order (RFC 4034 §6.3) after canonical form (§6.2: names of the listed types in
/// lower case). Equal RDATA means duplicate records.
[[nodiscard]] int compare_rdata_canonical(RRType type, ByteView a, ByteView b) noexcept;

/// Appends RDATA in canonical form (RFC 4034 §6.2 with RFC 6840 §5.1): names of the listed types in
/// lower case, all other octets unchanged.
void append_rdata_canonical(RRType type, ByteView rdata, Bytes& out);

/// The name whose addresses belong in the additional section (RFC 1035 §3.3.9, §3.3.11, RFC 2782,
/// RFC 9460 §4.1): NS, MX, SRV, ... targets. False for types without such a name, and for the root.
/// The root means "no service" (RFC 7505 §3, RFC 2782) or the owner itself (RFC 9460 §2.5).
[[nodiscard]] inline bool additional_name(RRType type, ByteView rdata, NameView& name) noexcept {
  const std::size_t offset = detail::target_offset(type);
  if (offset == detail::kNoTarget || rdata.size() <= offset) return false;
  const std::size_t length = wire_name_length(rdata.subspan(offset));
  if (length <= 1) return false;
  name = NameView(rdata.data() + offset, length);
  return true;
}

/// TYPE the RRSIG covers (RFC 4034 §3.1.1); the RDATA has passed check_rdata.
[[nodiscard]] inline RRType rrsig_covered(ByteView rdata) noexcept {
  return static_cast<RRType>(load_be16(rdata.data()));
}

}  // namespace pando::dns
