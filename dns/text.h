#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace pando::dns {

/// Upper case of a-z, independent of the locale.
[[nodiscard]] constexpr char ascii_upper(char c) noexcept {
  return static_cast<char>(c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c);
}

/// True when `text` in upper case is `upper_case`.
[[nodiscard]] constexpr bool equal_ignoring_case(std::string_view text,
                                                 std::string_view upper_case) noexcept {
  if (text.size() != upper_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (ascii_upper(text[i]) != upper_case[i]) return false;
  return true;
}

/// A decimal number from 0 to `max`: digits only, no sign.
[[nodiscard]] constexpr std::optional<std::uint64_t> parse_decimal(std::string_view text,
                                                                   std::uint64_t max) noexcept {
  constexpr std::size_t kSafeDigits = 19;  // 10^19 - 1 is below 2^64
  if (text.empty() || text.size() > kSafeDigits + 1) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text.substr(0, kSafeDigits)) {
    const auto digit = static_cast<std::uint8_t>(c - '0');
    if (digit > 9) return std::nullopt;
    value = value * 10 + digit;
  }
  if (text.size() > kSafeDigits) {
    const auto digit = static_cast<std::uint8_t>(text[kSafeDigits] - '0');
    if (digit > 9 || value > (~std::uint64_t{0} - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  if (value > max) return std::nullopt;
  return value;
}

/// A piece of hostile text for an error message: at most 40 octets, printable ASCII, in quotes.
[[nodiscard]] std::string quote_for_message(std::string_view text);

/// Appends the presentation format of a name's labels to `out`, with a final dot only for a name
/// that ends in the root. Labels cut off a longer name have none. Escapes as in to_text(NameView).
void append_labels_text(std::string& out, ByteView labels);

/// Reads one octet of presentation format and resolves the escapes \X and \DDD (RFC 1035 §5.1).
/// Moves `at` past the octet; -1 for a bad escape. `at` must be inside `text`.
[[nodiscard]] constexpr int take_octet(std::string_view text, std::size_t& at) noexcept {
  const auto c = static_cast<std::uint8_t>(text[at++]);
  if (c != '\\') return c;
  if (at >= text.size()) return -1;
  const auto digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9' ? text[i] - '0' : -1;
  };
  if (digit(at) < 0) return static_cast<std::uint8_t>(text[at++]);
  if (digit(at + 1) < 0 || digit(at + 2) < 0) return -1;
  const int value = digit(at) * 100 + digit(at + 1) * 10 + digit(at + 2);
  at += 3;
  return value <= 255 ? value : -1;
}

}  // namespace pando::dns
