#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

/// The values of the parameters of SVCB and HTTPS (RFC 9460), one form for each key.
namespace pando::dns {

/// Keys that rules on the whole parameter list name (IANA "SvcParamKeys" has all keys).
inline constexpr std::uint16_t kSvcMandatory = 0, kSvcAlpn = 1, kSvcNoDefaultAlpn = 2,
                               kSvcDohPath = 7;

/// The operations on a key's value.
struct SvcCodec {
  /// Appends the wire form of the value's text; the text has no "key=" and no escapes of the zone
  /// file.
  Status (*read)(std::string_view value, Bytes& out);
  Status (*check)(ByteView value);
  /// Appends the presentation form of a checked value that is not empty.
  void (*print)(ByteView value, std::string& text);
};

/// The form of a key's value; kSvcOctets for keys unknown here.
[[nodiscard]] const SvcCodec& svc_codec(std::uint16_t key) noexcept;
/// Octets with escapes: keyNNNNN (RFC 9460 §2.1), also when the key has a name.
extern const SvcCodec kSvcOctets;

/// The number of a mnemonic or keyNNNNN.
[[nodiscard]] std::optional<std::uint16_t> parse_svc_key(std::string_view text) noexcept;
/// The number of keyNNNNN alone, without leading zeros.
[[nodiscard]] std::optional<std::uint16_t> parse_numbered_svc_key(std::string_view text) noexcept;
[[nodiscard]] std::string svc_key_name(std::uint16_t key);

}  // namespace pando::dns
