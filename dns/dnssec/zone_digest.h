#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"

struct evp_md_ctx_st;  // OpenSSL's digest, used in zone_digest.cpp only

namespace pando::dns {

/// The fields of ZONEMD RDATA (RFC 8976 §2.2); views into it.
struct ZonemdFields {
  std::uint32_t serial = 0;
  std::uint8_t scheme = 0;
  std::uint8_t hash = 0;
  ByteView digest;
};

/// Nullopt for RDATA cut short, also for a digest below 12 octets (§2.2.4).
[[nodiscard]] std::optional<ZonemdFields> parse_zonemd(ByteView rdata) noexcept;

inline constexpr std::uint8_t kZonemdSimple = 1;  ///< the only scheme of RFC 8976 (§5.2)

/// A digest over a zone's records (RFC 8976 §3.3).
class ZoneDigest {
 public:
  /// Nullopt for a hash algorithm other than SHA-384 (1) and SHA-512 (2) (§5.3).
  [[nodiscard]] static std::optional<ZoneDigest> make(std::uint8_t hash);

  void update(ByteView octets);
  [[nodiscard]] Bytes finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  explicit ZoneDigest(evp_md_ctx_st* context) noexcept : context_(context) {}
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace pando::dns
