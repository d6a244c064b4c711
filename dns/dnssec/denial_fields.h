#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "dns/dnssec/nsec3_hash.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// The fields of NSEC RDATA (RFC 4034 §4.1); views into it.
struct NsecFields {
  NameView next;
  ByteView types;  ///< type bitmap
};

/// The fields of NSEC3 RDATA (RFC 5155 §3.2), and of NSEC3PARAM's (§4.2), which ends before `next`.
struct Nsec3Fields {
  std::uint8_t hash = 0;
  std::uint8_t flags = 0;
  std::uint16_t iterations = 0;
  ByteView salt;
  ByteView next;   ///< hash, as octets
  ByteView types;  ///< type bitmap

  [[nodiscard]] bool is_opt_out() const noexcept { return (flags & 1U) != 0; }
  /// RFC 5155 §7.2: NSEC3 records with the same hash, iterations and salt form one chain.
  [[nodiscard]] bool same_chain(const Nsec3Fields& other) const noexcept;
  /// False for a next hash that no hash function gives: the record is part of no chain.
  [[nodiscard]] bool has_next() const noexcept { return next.size() == kNsec3HashOctets; }
};

/// Nullopt for RDATA cut short.
[[nodiscard]] std::optional<NsecFields> parse_nsec(ByteView rdata) noexcept;
[[nodiscard]] std::optional<Nsec3Fields> parse_nsec3(ByteView rdata) noexcept;
[[nodiscard]] std::optional<Nsec3Fields> parse_nsec3param(ByteView rdata) noexcept;

/// Appends the bitmap of these types (RFC 4034 §4.1.2), which must ascend.
void append_type_bitmap(std::span<const RRType> types, Bytes& out);

/// The types in a bitmap (RFC 4034 §4.1.2), ascending for a well-formed bitmap. A window cut short
/// is left out.
[[nodiscard]] std::vector<RRType> types_in_bitmap(ByteView bitmap);

}  // namespace pando::dns
