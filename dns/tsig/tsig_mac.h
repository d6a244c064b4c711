#pragma once

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/tsig/tsig.h"

/// HMAC by OpenSSL, for TSIG and for keyed digests of hostile data.
namespace pando::dns {

inline constexpr std::size_t kMaxMacOctets = 64;  // HMAC-SHA-512

/// A MAC as octets, no heap.
struct TsigMac {
  std::array<std::uint8_t, kMaxMacOctets> octets;
  std::size_t size = 0;
  [[nodiscard]] ByteView view() const noexcept { return {octets.data(), size}; }
};

/// A running HMAC. A copy is cheaper than keying anew (0.45 against 0.77 µs for a short message).
class HmacContext {
 public:
  HmacContext() noexcept = default;
  /// Keys the context; operator bool is false when OpenSSL lacks `digest`.
  HmacContext(const char* digest, ByteView secret);
  /// A context that continues from the data digested so far.
  [[nodiscard]] HmacContext duplicate() const;

  [[nodiscard]] explicit operator bool() const noexcept { return context_ != nullptr; }
  void update(ByteView octets);
  /// Ends the digest and keeps its first `octets`.
  [[nodiscard]] TsigMac finish(std::size_t octets);

 private:
  struct Free {
    void operator()(EVP_MAC_CTX* context) const noexcept;
  };
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

/// RFC 8945 §6 table, one row per algorithm.
struct TsigAlgorithmRow {
  TsigAlgorithm algorithm;
  const char* text;       ///< the word in configurations
  const char* wire_text;  ///< the domain name on the wire
  const char* digest;     ///< OpenSSL's name
  std::size_t hash_octets;
  std::size_t mac_octets;  ///< fewer: the MAC is cut, and `text` is the registered name of that
};
[[nodiscard]] const TsigAlgorithmRow& tsig_algorithm_row(TsigAlgorithm algorithm) noexcept;

struct TsigKeyring::PreparedKey {
  /// The name that a MAC under `received` has digested; null: another algorithm.
  [[nodiscard]] const Name* algorithm_named(NameView received) const noexcept;
  /// Most octets of a MAC under that name.
  [[nodiscard]] std::size_t longest_mac(const Name& algorithm_name) const noexcept;

  Name name;                      // all in lower case: RFC 8945 §4.3.3 digests canonical names
  Name algorithm;                 // in requests of this server
  std::optional<Name> cut_alias;  // RFC 8945 §6: name of the algorithm whose whole MAC is cut
  std::size_t hash_octets;
  std::size_t mac_octets;        // size that this server sends
  std::size_t shortest_mac;      // RFC 8945 §5.2.2.1: below is FORMERR
  std::size_t least_mac_octets;  // RFC 8945 §5.2.4: below is BADTRUNC
  HmacContext keyed;
};

}  // namespace pando::dns
