#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace pando::dns {

/// Base 64 (RFC 4648 §4) that may come in several words, as in zone files. Padding may stand only
/// at the very end. Unused bits of the last group must be zero, so that each octet string has one
/// text.
class Base64Decoder {
 public:
  /// Appends the octets of `text` to `out`. False when `text` is not base 64; `out` may have grown.
  [[nodiscard]] bool feed(std::string_view text, Bytes& out);
  /// True when the input ends on a whole group.
  [[nodiscard]] bool finish() const noexcept { return pending_ == 0; }

 private:
  bool feed_one(std::uint8_t c, Bytes& out);

  std::uint32_t bits_ = 0;
  std::uint8_t pending_ = 0;  // symbols and padding in the open group
  std::uint8_t padding_ = 0;
};

/// Hexadecimal digits (RFC 4648 §8, any case) in several words, split anywhere.
class HexDecoder {
 public:
  [[nodiscard]] bool feed(std::string_view text, Bytes& out);
  [[nodiscard]] bool finish() const noexcept { return !half_; }

 private:
  std::uint8_t high_ = 0;
  bool half_ = false;
};

/// Value of a hexadecimal digit, -1 for another character.
[[nodiscard]] int hex_value(char c) noexcept;

/// Decode whole texts; errors name the fault, not its position.
Result<Bytes> base64_decode(std::string_view text);
Result<Bytes> hex_decode(std::string_view text);
/// Appends base 32 with the extended hex alphabet, no padding (RFC 4648 §7, RFC 5155 §3.3), any
/// case. False when `text` is not in that form.
[[nodiscard]] bool append_base32hex_decoded(std::string_view text, Bytes& out);

/// Encoders: base 64 with padding, hex and base32hex in upper case, as BIND prints them.
void append_base64(std::string& text, ByteView octets);
void append_hex(std::string& text, ByteView octets);
void append_base32hex(std::string& text, ByteView octets);
[[nodiscard]] std::string base64_encode(ByteView octets);
[[nodiscard]] std::string hex_encode(ByteView octets);

}  // namespace pando::dns
