#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pando::dns {

/// Converts a dotted quad to octets; false for other texts. Octets with a leading zero are refused,
/// since other programs read them as octal.
[[nodiscard]] bool parse_ipv4(std::string_view text, std::uint8_t out[4]) noexcept;
/// Converts RFC 4291 §2.2 text to octets; false for other texts, `out` is then undefined.
[[nodiscard]] bool parse_ipv6(std::string_view text, std::uint8_t out[16]) noexcept;
/// Reads up to four hex digits from `at` on and moves `at` past them; -1 without a digit.
[[nodiscard]] int take_ipv6_group(std::string_view text, std::size_t& at) noexcept;

void print_ipv4(const std::uint8_t* octets, std::string& text);
void print_ipv6(const std::uint8_t* octets, std::string& text);

}  // namespace pando::dns
