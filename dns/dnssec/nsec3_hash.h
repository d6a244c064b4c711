#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "dns/name.h"

namespace pando::dns {

inline constexpr std::size_t kNsec3HashOctets = 20;  // SHA-1, the only hash defined (RFC 5155 §11)
using Nsec3Hash = std::array<std::uint8_t, kNsec3HashOctets>;

/// Most iterations that are computed. RFC 5155 §10.3 allows up to 2500; RFC 9276 §3.1 wants 0, and
/// validators ignore proofs above 100 or 150. A zone signed with more is still served: a validator
/// needs its NSEC3 records to treat the zone as insecure (RFC 9276 §3.2). Above 2500 no signer may
/// go, and hashing would only waste time.
inline constexpr std::uint16_t kMaxNsec3Iterations = 2500;

/// Text of a warning about the iterations of a zone's chain (RFC 9276 §3.1); empty for none.
[[nodiscard]] std::string doubt_about_iterations(std::uint16_t iterations);

/// Most octets of a salt; the length field is one octet (RFC 5155 §3.2).
inline constexpr std::size_t kMaxSaltOctets = 255;

/// Hashes owner names for NSEC3 (RFC 5155 §5) and remembers some hashes: negative answers hash the
/// same few enclosers and wildcards repeatedly. A hash depends on the arguments alone, so memos
/// never get stale. One per worker, not thread-safe; no heap.
class Nsec3Hasher {
 public:
  /// IH(salt, name in lower case, iterations). False when `iterations` or the salt is above its
  /// limit.
  [[nodiscard]] bool hash(NameView name, std::uint16_t iterations, ByteView salt,
                          Nsec3Hash& out) noexcept;
  /// hash() for a name that will probably come again: an existing name, not one invented by a
  /// client.
  [[nodiscard]] bool hash_and_remember(NameView name, std::uint16_t iterations, ByteView salt,
                                       Nsec3Hash& out) noexcept;

 private:
  static constexpr std::size_t kMemos = 64;  // a power of 2; 20 KiB
  static constexpr std::size_t kMemoSalt = 16;

  struct Memo {
    Name name;  // lower case
    Nsec3Hash hash{};
    std::array<std::uint8_t, kMemoSalt> salt{};
    std::uint16_t iterations = 0;
    std::uint8_t salt_octets = 0;
    bool filled = false;

    [[nodiscard]] bool is_for(const Name& folded, std::uint16_t count,
                              ByteView its_salt) const noexcept;
  };
  std::array<Memo, kMemos> memos_;
};

}  // namespace pando::dns
