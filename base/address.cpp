#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/whole_number.h"

namespace pando {

namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

Result<std::uint32_t> parse_number(std::string_view text, std::uint32_t max) {
  const auto value = whole_number<std::uint32_t>(text);
  if (!value || *value > max)
    return fail(Errc::kInvalid, "'{}' is not a number from 0 to {}", text, max);
  return *value;
}

}  // namespace

bool IpAddress::is_v4() const noexcept {
  return std::memcmp(octets.data(), kMappedPrefix.data(), kMappedPrefix.size()) == 0;
}

void IpAddress::take(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    std::memcpy(octets.data(), &v6->sin6_addr, 16);
  } else if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    std::memcpy(octets.data(), kMappedPrefix.data(), kMappedPrefix.size());
    std::memcpy(octets.data() + 12, &v4->sin_addr, 4);
  } else {
    octets = {};
  }
}

Result<IpAddress> IpAddress::from_text(std::string_view text) {
  const std::string terminated(text);
  if (terminated.find('\0') != std::string::npos)  // inet_pton would not see what follows
    return fail(Errc::kInvalid, "'{}' is not an IP address", terminated.c_str());
  IpAddress result;
  if (::inet_pton(AF_INET, terminated.c_str(), result.octets.data() + 12) == 1) {
    std::memcpy(result.octets.data(), kMappedPrefix.data(), kMappedPrefix.size());
    return result;
  }
  if (::inet_pton(AF_INET6, terminated.c_str(), result.octets.data()) == 1) return result;
  return fail(Errc::kInvalid, "'{}' is not an IP address", text);
}

std::string to_text(const IpAddress& address) {
  char buffer[INET6_ADDRSTRLEN];
  if (address.is_v4())
    ::inet_ntop(AF_INET, address.octets.data() + 12, buffer, sizeof buffer);
  else
    ::inet_ntop(AF_INET6, address.octets.data(), buffer, sizeof buffer);
  return buffer;
}

Result<IpPrefix> IpPrefix::from_text(std::string_view text) {
  const auto slash = text.find('/');
  auto address = IpAddress::from_text(text.substr(0, slash));
  if (!address) return pass(address);
  IpPrefix prefix{*address, 128};
  if (slash != std::string_view::npos) {
    auto length = parse_number(text.substr(slash + 1), address->is_v4() ? 32 : 128);
    if (!length) return fail(Errc::kInvalid, "bad prefix length in '{}'", text);
    prefix.length = static_cast<std::uint8_t>(*length + (address->is_v4() ? 96 : 0));
  }
  for (std::size_t bit = prefix.length; bit < 128; ++bit)
    if ((prefix.address.octets[bit / 8] & (0x80U >> (bit % 8))) != 0)
      return fail(Errc::kInvalid, "'{}' has bits set behind its prefix length", text);
  return prefix;
}

bool IpPrefix::contains(const IpAddress& candidate) const noexcept {
  const std::size_t whole = length / 8;
  if (std::memcmp(address.octets.data(), candidate.octets.data(), whole) != 0) return false;
  if (length % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xFFU << (8 - length % 8));
  return (address.octets[whole] & mask) == (candidate.octets[whole] & mask);
}

std::string to_text(const IpPrefix& prefix) {
  const int shown = prefix.address.is_v4() ? prefix.length - 96 : prefix.length;
  return fmt::format("{}/{}", to_text(prefix.address), shown);
}

namespace {

/// "192.0.2.1@53" for "192.0.2.1:53", "192.0.2.1#53" or "[2001:db8::1]:53", as other programs write
/// it; empty: the text is none of these.
std::string with_our_port(std::string_view text) {
  const auto mark = text.find_last_of(":#");
  if (mark == std::string_view::npos) return {};
  std::string_view address = text.substr(0, mark);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  const std::string_view port = text.substr(mark + 1);
  if (!IpAddress::from_text(address) || !parse_number(port, 65535)) return {};
  return fmt::format("{}@{}", address, port);
}

}  // namespace

Result<Endpoint> Endpoint::from_text(std::string_view text) {
  const auto at = text.rfind('@');
  auto address = IpAddress::from_text(text.substr(0, at));
  if (!address) {
    const std::string meant = with_our_port(text);
    if (meant.empty()) return pass(address);
    return fail(Errc::kInvalid, "{}; a port is written '{}'", address.error().text, meant);
  }
  Endpoint endpoint{*address, 53};
  if (at != std::string_view::npos) {
    auto port = parse_number(text.substr(at + 1), 65535);
    if (!port || *port == 0) return fail(Errc::kInvalid, "bad port in '{}'", text);
    endpoint.port = static_cast<std::uint16_t>(*port);
  }
  return endpoint;
}

socklen_t Endpoint::to_sockaddr(sockaddr_storage& out) const noexcept {
  out = {};
  if (address.is_v4()) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    std::memcpy(&v4->sin_addr, address.octets.data() + 12, 4);
    return sizeof(sockaddr_in);
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  std::memcpy(&v6->sin6_addr, address.octets.data(), 16);
  return sizeof(sockaddr_in6);
}

void Endpoint::take(const sockaddr* from) noexcept {
  address.take(from);
  // sin_port and sin6_port stand at the same place.
  port = ntohs(reinterpret_cast<const sockaddr_in*>(from)->sin_port);
}

std::string to_text(const Endpoint& endpoint) {
  return fmt::format("{}@{}", to_text(endpoint.address), endpoint.port);
}

}  // namespace pando
