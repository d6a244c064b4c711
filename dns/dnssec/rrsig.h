#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// The fields of RRSIG RDATA (RFC 4034 §3.1); views into it.
struct RrsigFields {
  RRType covered{};
  std::uint8_t algorithm = 0;
  std::uint8_t labels = 0;
  std::uint32_t original_ttl = 0;
  std::uint32_t expiration = 0;  ///< seconds since 1970 modulo 2^32 (§3.1.5)
  std::uint32_t inception = 0;
  std::uint16_t key_tag = 0;
  NameView signer;
  ByteView signature;
  ByteView before_signer;  ///< the fixed fields in wire form

  /// RFC 4034 §3.1.5: both ends belong to the period; times compare as serial numbers.
  [[nodiscard]] bool is_valid_at(std::uint64_t seconds) const noexcept;
};

/// Seconds since 1970 of a signature's time, which has 32 bits: the one nearest to `now` (RFC 4034
/// §3.1.5).
[[nodiscard]] constexpr std::uint64_t whole_time(std::uint32_t time, std::uint64_t now) noexcept {
  const auto distance = static_cast<std::int32_t>(time - static_cast<std::uint32_t>(now));
  return now + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

/// Nullopt for RDATA cut short or a signer that is not an uncompressed name.
[[nodiscard]] std::optional<RrsigFields> parse_rrsig(ByteView rdata) noexcept;

/// RFC 4034 §3.1.3: label count of an owner in an RRSIG, without root and leading asterisk.
[[nodiscard]] std::uint8_t rrsig_labels(NameView owner) noexcept;

/// The data under a signature (RFC 4034 §3.1.8.1): the RRSIG's RDATA without the signature, then
/// the set's records in canonical form and order. `rdatas` must be in canonical order and all
/// different. `owner` is the set's own owner, not a name expanded from a wildcard.
[[nodiscard]] Bytes signed_octets(const RrsigFields& rrsig, NameView owner,
                                  std::span<const Bytes> rdatas);
/// The same at the end of `out`.
void append_signed_octets(const RrsigFields& rrsig, NameView owner, std::span<const Bytes> rdatas,
                          Bytes& out);

}  // namespace pando::dns
