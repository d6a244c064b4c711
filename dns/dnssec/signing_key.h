#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/dnssec/dnskey.h"

namespace pando::dns {

/// Limits of a key that signs (RFC 8624 says no number): shorter ones are broken, and validators
/// refuse longer ones.
inline constexpr unsigned kMinRsaBits = 1024, kMaxRsaBits = 4096;
inline constexpr unsigned kUsualRsaBits = 2048;

/// Flags of a DNSKEY (RFC 4034 §2.1.1, RFC 5011 §3).
inline constexpr std::uint16_t kZoneKeyFlag = 0x0100, kSepFlag = 0x0001, kRevokeFlag = 0x0080;

/// The numbers of a private key, big-endian. Memory with them is freed under a WipeFreed only.
struct PrivateNumbers {
  std::uint8_t algorithm = 0;
  /// RSA: modulus, exponents, primes, exponents of both, and coefficient (RFC 8017 §3.2).
  Bytes modulus, public_exponent, private_exponent;
  Bytes prime1, prime2, exponent1, exponent2, coefficient;
  Bytes secret;  ///< ECDSA, EdDSA
};

/// A zone's private key and its DNSKEY record. Copies share the key, which OpenSSL overwrites with
/// the last copy's end. Any number of threads may read it, and sign with a SignatureMaker each.
class SigningKey {
 public:
  /// A new key. kUnsupported: the algorithm; kInvalid: `rsa_bits`, which counts for RSA alone.
  static Result<SigningKey> generate(std::uint8_t algorithm, std::uint16_t flags,
                                     unsigned rsa_bits = kUsualRsaBits);
  /// A key from a file. It signs a text, and its own DNSKEY verifies that before it is returned:
  /// a key whose signatures nobody could verify is kInvalid. No error text has a part of the key.
  static Result<SigningKey> make(const PrivateNumbers& numbers, std::uint16_t flags);

  /// RDATA of its DNSKEY record.
  [[nodiscard]] const Bytes& dnskey() const noexcept { return dnskey_; }
  [[nodiscard]] std::uint8_t algorithm() const noexcept { return dnskey_[3]; }
  [[nodiscard]] std::uint16_t flags() const noexcept { return load_be16(dnskey_.data()); }
  /// RFC 4034 §2.1.1: the flag that says "key-signing key".
  [[nodiscard]] bool is_sep() const noexcept { return (flags() & kSepFlag) != 0; }
  [[nodiscard]] std::uint16_t tag() const noexcept { return key_tag(dnskey_); }
  /// The tag that the key would have with the REVOKE flag (RFC 5011 §3).
  [[nodiscard]] std::uint16_t revoked_tag() const;
  [[nodiscard]] unsigned bits() const noexcept;
  /// The same key with other flags, hence with another tag.
  [[nodiscard]] SigningKey with_flags(std::uint16_t flags) const;
  /// The private key as PKCS #8 in PEM (RFC 5958, RFC 7468 §10). The caller holds a WipeFreed.
  [[nodiscard]] Result<std::string> pkcs8_pem() const;

 private:
  friend class SignatureMaker;
  using Key = std::shared_ptr<evp_pkey_st>;
  SigningKey(Key key, Bytes dnskey) : key_(std::move(key)), dnskey_(std::move(dnskey)) {}
  static Result<SigningKey> finish(Key key, std::uint8_t algorithm, std::uint16_t flags);

  Key key_;
  Bytes dnskey_;
};

/// Signs with one key. It keeps OpenSSL's contexts and a digest that was looked up once: a P-256
/// signature takes 40 µs instead of the 52 µs of EVP_DigestSign(). So it is of one thread.
class SignatureMaker {
 public:
  /// kUnsupported: OpenSSL does not offer the algorithm.
  static Result<SignatureMaker> make(const SigningKey& key);

  /// Appends the signature over `data` in an RRSIG's form; false when OpenSSL fails.
  [[nodiscard]] bool sign(ByteView data, Bytes& out);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
    void operator()(evp_md_st* digest) const noexcept;
    void operator()(evp_pkey_ctx_st* context) const noexcept;
  };
  SignatureMaker() = default;
  [[nodiscard]] bool prepare(const char* digest, evp_pkey_st* key);
  [[nodiscard]] bool sign_digest(ByteView data, Bytes& out);
  [[nodiscard]] bool sign_whole(ByteView data, Bytes& out);

  std::size_t ecdsa_octets_ = 0;   ///< of each number of a signature; 0: another algorithm
  std::size_t max_signature_ = 0;  ///< octets, in OpenSSL's form
  std::unique_ptr<evp_md_ctx_st, Free> hashing_;
  // Both null for EdDSA, which hashes by itself.
  std::unique_ptr<evp_md_st, Free> digest_;
  std::unique_ptr<evp_pkey_ctx_st, Free> signing_;
};

}  // namespace pando::dns
