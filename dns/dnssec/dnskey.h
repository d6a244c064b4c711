#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"

struct evp_pkey_st;  // OpenSSL's key, which stays in dnskey.cpp

namespace pando::dns {

/// The fields of DNSKEY RDATA (RFC 4034 §2.1); views into it.
struct DnskeyFields {
  std::uint16_t flags = 0;
  std::uint8_t protocol = 0;
  std::uint8_t algorithm = 0;
  ByteView key;

  /// RFC 4034 §2.1.1: only zone keys may verify signatures over a zone's data.
  [[nodiscard]] bool is_zone_key() const noexcept {
    return (flags & 0x0100U) != 0 && protocol == 3;
  }
  /// RFC 5011 §2.1: it signs the DNSKEY set only, to say so.
  [[nodiscard]] bool is_revoked() const noexcept { return (flags & 0x0080U) != 0; }
};

/// None when the RDATA is cut short.
[[nodiscard]] std::optional<DnskeyFields> parse_dnskey(ByteView rdata) noexcept;

/// The key tag (RFC 4034 appendix B) of DNSKEY RDATA. Not for algorithm 1, which has another.
[[nodiscard]] std::uint16_t key_tag(ByteView dnskey_rdata) noexcept;

/// True for the algorithms that SignatureVerifier can do: RSASHA1 (5, and 7 as RFC 5155 names it),
/// RSASHA256 and RSASHA512 (8, 10; RFC 5702), ECDSA (13, 14; RFC 6605), Ed25519 and Ed448 (15, 16;
/// RFC 8080).
[[nodiscard]] bool is_supported_algorithm(std::uint8_t algorithm) noexcept;

/// A public key that signatures are verified with.
class SignatureVerifier {
 public:
  /// None when the algorithm is not supported or the octets are no key of it. RSA: moduli of 512 to
  /// 4096 bits (RFC 3110 §2), exponents of at most 64, so that nobody makes a verification slow.
  [[nodiscard]] static std::optional<SignatureVerifier> make(const DnskeyFields& key);

  /// True when `signature`, in the form an RRSIG has it, is this key's over `data`.
  [[nodiscard]] bool verify(ByteView data, ByteView signature) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const noexcept;
  };
  using Key = std::unique_ptr<evp_pkey_st, Free>;

  SignatureVerifier(std::uint8_t algorithm, Key key) noexcept
      : algorithm_(algorithm), key_(std::move(key)) {}
  [[nodiscard]] static Key make_rsa(ByteView octets);
  [[nodiscard]] static Key make_ecdsa(const char* group, std::size_t field_octets, ByteView octets);

  std::uint8_t algorithm_;
  Key key_;
};

}  // namespace pando::dns
