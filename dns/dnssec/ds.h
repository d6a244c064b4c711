#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "dns/name.h"

namespace pando::dns {

/// The fields of DS RDATA (RFC 4034 §5.1); `digest` is a view into it.
struct DsFields {
  std::uint16_t key_tag = 0;
  std::uint8_t algorithm = 0;
  std::uint8_t digest_type = 0;
  ByteView digest;
};

/// Nullopt for RDATA cut short.
[[nodiscard]] std::optional<DsFields> parse_ds(ByteView rdata) noexcept;

/// True for the digests of matches(): SHA-1, SHA-256 and SHA-384 (RFC 8624 §3.3).
[[nodiscard]] bool is_supported_digest(std::uint8_t digest_type) noexcept;

/// Whether the DS is one of this DNSKEY (RFC 4034 §5.1.4, RFC 4035 §5.2): a zone key that is not
/// revoked, of the zone `owner`. False for unsupported digests.
[[nodiscard]] bool matches(const DsFields& ds, NameView owner, ByteView dnskey_rdata);

}  // namespace pando::dns
