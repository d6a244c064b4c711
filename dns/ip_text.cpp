#include "dns/ip_text.h"

#include <arpa/inet.h>

#include <array>

#include "dns/encoding.h"

namespace pando::dns {

int take_ipv6_group(std::string_view text, std::size_t& at) noexcept {
  const std::size_t start = at;
  int value = 0;
  for (; at < text.size() && at < start + 4; ++at) {
    const int digit = hex_value(text[at]);
    if (digit < 0) break;
    value = value << 4 | digit;
  }
  return at == start ? -1 : value;
}

bool parse_ipv4(std::string_view text, std::uint8_t out[4]) noexcept {
  std::size_t at = 0;
  for (std::size_t octet = 0; octet < 4; ++octet) {
    unsigned value = 0;
    const std::size_t start = at;
    for (; at < text.size() && at < start + 3 && text[at] >= '0' && text[at] <= '9'; ++at)
      value = value * 10 + static_cast<unsigned>(text[at] - '0');
    // A leading zero could mean octal to other programs.
    if (at == start || value > 255 || (text[start] == '0' && at != start + 1)) return false;
    out[octet] = static_cast<std::uint8_t>(value);
    if (octet < 3 && (at >= text.size() || text[at++] != '.')) return false;
  }
  return at == text.size();
}

bool parse_ipv6(std::string_view text, std::uint8_t out[16]) noexcept {
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || text.find('\0') != text.npos) return false;
  text.copy(terminated.data(), text.size());
  return ::inet_pton(AF_INET6, terminated.data(), out) == 1;
}

/// A is the commonest RDATA: a library's formatting took half of the time of writing a zone's text.
void print_ipv4(const std::uint8_t* octets, std::string& text) {
  std::array<char, 16> buffer;  // 255.255.255.255.
  std::size_t used = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned octet = octets[i];
    if (octet >= 100) buffer[used++] = static_cast<char>('0' + octet / 100);
    if (octet >= 10) buffer[used++] = static_cast<char>('0' + octet / 10 % 10);
    buffer[used++] = static_cast<char>('0' + octet % 10);
    buffer[used++] = '.';
  }
  text.append(buffer.data(), used - 1);
}

void print_ipv6(const std::uint8_t* octets, std::string& text) {
  char buffer[INET6_ADDRSTRLEN];
  text += ::inet_ntop(AF_INET6, octets, buffer, sizeof buffer);
}

}  // namespace pando::dns
