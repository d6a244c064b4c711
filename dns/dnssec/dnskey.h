#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "dns/name.h"

// OpenSSL's types, used in dnskey.cpp only.
struct evp_md_ctx_st;
struct evp_md_st;
struct evp_pkey_ctx_st;
struct evp_pkey_st;

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
  /// RFC 5011 §2.1: a revoked key signs only the DNSKEY RRset, to announce the revocation.
  [[nodiscard]] bool is_revoked() const noexcept { return (flags & 0x0080U) != 0; }
};

/// Nullopt for RDATA cut short.
[[nodiscard]] std::optional<DnskeyFields> parse_dnskey(ByteView rdata) noexcept;

/// The key tag (RFC 4034 appendix B) of DNSKEY RDATA. Not for algorithm 1, whose tag differs.
[[nodiscard]] std::uint16_t key_tag(ByteView dnskey_rdata) noexcept;

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

/// RDATA of the DS record of a DNSKEY of the zone `owner` (RFC 4034 §5.1.4). Nullopt: the digest is
/// not supported.
[[nodiscard]] std::optional<Bytes> make_ds(NameView owner, ByteView dnskey_rdata,
                                           std::uint8_t digest_type);

/// Whether the DS is one of this DNSKEY (RFC 4034 §5.1.4, RFC 4035 §5.2): a zone key that is not
/// revoked, of the zone `owner`. False for unsupported digests.
[[nodiscard]] bool matches(const DsFields& ds, NameView owner, ByteView dnskey_rdata);

/// True for the algorithms of SignatureVerifier: RSASHA1 (5, and 7 as RFC 5155 names it), RSASHA256
/// and RSASHA512 (8, 10; RFC 5702), ECDSA (13, 14; RFC 6605), Ed25519 and Ed448 (15, 16; RFC 8080).
[[nodiscard]] bool is_supported_algorithm(std::uint8_t algorithm) noexcept;

/// A public key that verifies signatures. It reuses OpenSSL's contexts, because their setup takes a
/// tenth of the time of a verification. Therefore not thread-safe.
class SignatureVerifier {
 public:
  /// Nullopt for an unsupported algorithm or an invalid key. RSA: moduli of 512 to 4096 bits (RFC
  /// 3110 §2) and exponents of at most 64 bits, so that nobody can make a verification slow.
  [[nodiscard]] static std::optional<SignatureVerifier> make(const DnskeyFields& key);

  /// True when `signature`, in an RRSIG's form, is this key's signature over `data`.
  [[nodiscard]] bool verify(ByteView data, ByteView signature);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
    void operator()(evp_md_st* digest) const noexcept;
    void operator()(evp_pkey_ctx_st* context) const noexcept;
    void operator()(evp_pkey_st* key) const noexcept;
  };
  using Key = std::unique_ptr<evp_pkey_st, Free>;

  SignatureVerifier() = default;
  [[nodiscard]] static Key make_rsa(ByteView octets);
  [[nodiscard]] static Key make_ecdsa(const char* group, std::size_t field_octets, ByteView octets);
  [[nodiscard]] bool prepare(const char* digest, const Key& key);
  [[nodiscard]] bool verify_digest(ByteView data, ByteView signature);

  std::size_t ecdsa_octets_ = 0;  ///< of each number of a signature; 0: another algorithm
  std::unique_ptr<evp_md_ctx_st, Free> hashing_;
  // Both null for EdDSA, which hashes by itself.
  std::unique_ptr<evp_md_st, Free> digest_;
  std::unique_ptr<evp_pkey_ctx_st, Free> verifying_;
};

}  // namespace pando::dns
