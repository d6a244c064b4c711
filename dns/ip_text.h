#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pando::dns {

/// Dotted quad to octets; false when `text` is none. Octets with a leading zero are refused, since
/// they mean octal to others.
[[nodiscard]] bool parse_ipv4(std::string_view text, std::uint8_t out[4]) noexcept;
/// RFC 4291 §2.2 text to octets; false when `text` is none, `out` is then undefined.
[[nodiscard]] bool parse_ipv6(std::string_view text, std::uint8_t out[16]) noexcept;
/// Up to four hex digits from `at` on, which is moved behind them; -1 when there is none.
[[nodiscard]] int take_ipv6_group(std::string_view text, std::size_t& at) noexcept;

void print_ipv4(const std::uint8_t* octets, std::string& text);
void print_ipv6(const std::uint8_t* octets, std::string& text);

}  // namespace pando::dns
