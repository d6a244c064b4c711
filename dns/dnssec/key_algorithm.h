#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace pando::dns {

enum class KeyFamily : std::uint8_t { kRsa, kEcdsa, kEddsa };

/// A DNSSEC algorithm (IANA registry "DNS Security Algorithm Numbers") in OpenSSL's words.
struct KeyAlgorithm {
  std::uint8_t number;
  KeyFamily family;
  const char* name;    ///< group of the curve, or the type of an EdDSA key
  const char* digest;  ///< null: the algorithm has its own
  std::size_t octets;  ///< of a coordinate (ECDSA) or of a key (EdDSA)
  bool may_sign;       ///< RFC 8624 §3.1: SHA-1 is verified, and signs nothing new
};

inline constexpr std::array<KeyAlgorithm, 8> kKeyAlgorithms = {{
    {5, KeyFamily::kRsa, nullptr, "SHA1", 0, false},
    {7, KeyFamily::kRsa, nullptr, "SHA1", 0, false},
    {8, KeyFamily::kRsa, nullptr, "SHA256", 0, true},
    {10, KeyFamily::kRsa, nullptr, "SHA512", 0, true},
    {13, KeyFamily::kEcdsa, "P-256", "SHA256", 32, true},
    {14, KeyFamily::kEcdsa, "P-384", "SHA384", 48, true},
    {15, KeyFamily::kEddsa, "ED25519", nullptr, 32, true},
    {16, KeyFamily::kEddsa, "ED448", nullptr, 57, true},
}};

/// Null: an algorithm that cannot be verified here.
[[nodiscard]] inline const KeyAlgorithm* find_key_algorithm(std::uint8_t number) noexcept {
  const auto found = std::find_if(kKeyAlgorithms.begin(), kKeyAlgorithms.end(),
                                  [&](const KeyAlgorithm& row) { return row.number == number; });
  return found == kKeyAlgorithms.end() ? nullptr : &*found;
}

}  // namespace pando::dns
