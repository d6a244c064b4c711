#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The alphabets of RFC 4648, for decoders.
namespace pando::dns {

inline constexpr std::string_view kBase64Symbols =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
inline constexpr std::string_view kBase32HexSymbols = "0123456789ABCDEFGHIJKLMNOPQRSTUV";
inline constexpr std::string_view kHexSymbols = "0123456789ABCDEF";

inline constexpr std::uint8_t kNoSymbol = 0xFF;  // no symbol's value has the top bit

constexpr std::array<std::uint8_t, 256> symbol_values(std::string_view alphabet, bool fold) {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoSymbol);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    const auto c = static_cast<std::uint8_t>(alphabet[i]);
    values[c] = static_cast<std::uint8_t>(i);
    if (fold && c >= 'A') values[c + ('a' - 'A')] = static_cast<std::uint8_t>(i);
  }
  return values;
}

inline constexpr auto kBase64Values = symbol_values(kBase64Symbols, false);
inline constexpr auto kBase32HexValues = symbol_values(kBase32HexSymbols, true);
inline constexpr auto kHexValues = symbol_values(kHexSymbols, true);

/// A symbol's six bits at each of the four places of a group, so that decoding needs only loads and
/// ORs.
inline constexpr std::uint32_t kNoGroup = 0xFF000000U;  // bits that no symbol sets
inline constexpr auto kBase64Places = [] {
  std::array<std::array<std::uint32_t, 256>, 4> places{};
  for (std::size_t place = 0; place < 4; ++place)
    for (std::size_t c = 0; c < 256; ++c)
      places[place][c] = kBase64Values[c] == kNoSymbol
                             ? kNoGroup
                             : std::uint32_t{kBase64Values[c]} << (18 - 6 * place);
  return places;
}();

}  // namespace pando::dns
