#include "dns/ip_text.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "dns/encoding.h"

namespace pando::dns {

namespace {

/// Moves the octets behind the "::" to the end and fills the gap with zeros (RFC 4291 §2.2).
void open_gap(std::uint8_t* octets, std::size_t gap, std::size_t used) noexcept {
  std::memmove(octets + 16 - (used - gap), octets + gap, used - gap);
  std::memset(octets + gap, 0, 16 - used);
}

}  // namespace

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
  constexpr std::size_t kNoGap = 17;
  const bool leading = text.starts_with("::");
  std::size_t gap = leading ? 0 : kNoGap;
  std::size_t used = 0;
  for (std::size_t at = leading ? 2 : 0; at < text.size() || used == 0;) {
    if (at == text.size()) {
      if (!leading) return false;
      break;  // "::" alone
    }
    const std::size_t start = at;
    const int group = take_ipv6_group(text, at);
    if (group < 0 || used > 14) return false;
    if (at < text.size() && text[at] == '.') {  // RFC 4291 §2.2 (3): the last 32 bits as IPv4
      if (used > 12 || !parse_ipv4(text.substr(start), out + used)) return false;
      used += 4;
      break;
    }
    store_be16(out + used, static_cast<std::uint16_t>(group));
    used += 2;
    if (at == text.size()) break;
    if (text[at++] != ':' || at == text.size()) return false;
    if (text[at] != ':') continue;
    if (gap != kNoGap) return false;
    gap = used;
    ++at;
  }
  if (gap == kNoGap) return used == 16;
  if (used > 14) return false;  // "::" replaces one group at least
  open_gap(out, gap, used);
  return true;
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
