#pragma once

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "dns/name.h"

namespace pando::dns {

inline constexpr std::size_t kNsec3HashOctets = 20;  // SHA-1, the only hash there is (RFC 5155 §11)
using Nsec3Hash = std::array<std::uint8_t, kNsec3HashOctets>;

/// Most iterations that are computed. RFC 5155 §10.3 allows up to 2500; RFC 9276 §3.1 wants 0, and
/// validators ignore proofs above 100 or 150. A zone signed with more is still served, because a
/// validator needs the NSEC3 records themselves to treat the zone as insecure (RFC 9276 §3.2). What
/// no signer may make (above 2500) is not hashed: it would only burn time.
inline constexpr std::uint16_t kMaxNsec3Iterations = 2500;

/// Longest salt, from its length octet (RFC 5155 §3.2).
inline constexpr std::size_t kMaxSaltOctets = 255;

/// Hashes owner names for NSEC3 (RFC 5155 §5). Owns one digest context, so that a query costs no
/// allocation; one per worker, not thread-safe.
class Nsec3Hasher {
 public:
  Nsec3Hasher() noexcept;
  ~Nsec3Hasher();
  Nsec3Hasher(Nsec3Hasher&&) noexcept;
  Nsec3Hasher& operator=(Nsec3Hasher&&) noexcept;

  /// IH(salt, name in lower case, iterations). False when `iterations` or the salt is above its
  /// limit, or the library has no SHA-1.
  [[nodiscard]] bool hash(NameView name, std::uint16_t iterations, ByteView salt,
                          Nsec3Hash& out) noexcept;

 private:
  struct FreeDigest {
    void operator()(EVP_MD* digest) const noexcept;
  };
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const noexcept;
  };
  bool digest_once(ByteView data, ByteView salt, Nsec3Hash& out) noexcept;

  std::unique_ptr<EVP_MD, FreeDigest> sha1_;
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace pando::dns
