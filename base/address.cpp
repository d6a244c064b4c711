#include "base/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/whole_number.h"

namespace pando {

namespace {

constexpr std::uint32_t kFirstName = kNoInterface + 1;
/// More interfaces than a host has. Texts of strangers cannot fill memory with names.
constexpr std::size_t kMaxNames = 4096;

/// Names in the order in which they were read; only grows.
struct Names {
  std::mutex mutex;
  std::deque<std::string> list;
};

Names& names() {
  static Names all;
  return all;
}

/// As the kernel has it (dev_valid_name() in net/core/dev.c).
bool is_valid_name(std::string_view text) noexcept {
  return !text.empty() && text.size() < IFNAMSIZ && text != "." && text != ".." &&
         std::none_of(
             text.begin(), text.end(),
             [](char c) {
               return c == '/' || c == ':' || static_cast<unsigned char>(c) <= ' ' || c == 0x7F;
             });
}

}  // namespace

Result<std::uint32_t> scope_from_text(std::string_view text) {
  const auto number = whole_number<std::uint32_t>(text);
  if (number && *number > 0 && *number < kNoInterface) return *number;
  if (number || !is_valid_name(text)) return fail(Errc::kInvalid, "'{}' is no interface", text);
  const std::lock_guard lock(names().mutex);
  auto& list = names().list;
  const auto found = std::find(list.begin(), list.end(), text);
  const auto index = static_cast<std::uint32_t>(found - list.begin());
  if (found != list.end()) return kFirstName + index;
  if (list.size() >= kMaxNames)
    return fail(Errc::kInvalid, "'{}' is one name of an interface too many", text);
  list.emplace_back(text);
  return kFirstName + index;
}

std::string scope_to_text(std::uint32_t scope) {
  if (!is_interface_name(scope)) return fmt::format("{}", scope);
  const std::lock_guard lock(names().mutex);
  const std::size_t index = scope - kFirstName;
  return index < names().list.size() ? names().list[index] : "?";
}

std::uint32_t interface_number(std::uint32_t scope) noexcept {
  if (!is_interface_name(scope)) return scope;
  const unsigned number = ::if_nametoindex(scope_to_text(scope).c_str());
  return number == 0 ? kNoInterface : number;
}

namespace {

constexpr std::size_t kScopeAt = 4;
constexpr std::size_t kScopeOctets = sizeof(std::uint32_t);

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

std::uint32_t IpAddress::scope() const noexcept {
  std::uint32_t scope = 0;
  if (is_link_local()) std::memcpy(&scope, octets.data() + kScopeAt, kScopeOctets);
  return scope;
}

void IpAddress::set_scope(std::uint32_t scope) noexcept {
  std::memcpy(octets.data() + kScopeAt, &scope, kScopeOctets);
}

IpAddress IpAddress::without_scope() const noexcept {
  IpAddress bare = *this;
  if (is_link_local()) bare.set_scope(0);
  return bare;
}

IpAddress IpAddress::resolved() const noexcept {
  IpAddress now = *this;
  if (is_interface_name(scope())) now.set_scope(interface_number(scope()));
  return now;
}

void IpAddress::take(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    std::memcpy(octets.data(), &v6->sin6_addr, 16);
    if (is_link_local()) [[unlikely]]
      set_scope(v6->sin6_scope_id);
  } else if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    std::memcpy(octets.data(), kMappedPrefix.data(), kMappedPrefix.size());
    std::memcpy(octets.data() + 12, &v4->sin_addr, 4);
  } else {
    octets = {};
  }
}

namespace {

Result<IpAddress> without_interface(std::string_view text) {
  const std::string terminated(text);
  if (terminated.find('\0') != std::string::npos)  // inet_pton would not see what follows
    return fail(Errc::kInvalid, "'{}' is not an IP address", terminated.c_str());
  IpAddress result;
  if (::inet_pton(AF_INET, terminated.c_str(), result.octets.data() + 12) == 1) {
    std::memcpy(result.octets.data(), kMappedPrefix.data(), kMappedPrefix.size());
    return result;
  }
  if (::inet_pton(AF_INET6, terminated.c_str(), result.octets.data()) != 1)
    return fail(Errc::kInvalid, "'{}' is not an IP address", text);
  if (result.scope() != 0)  // RFC 4291 §2.5.6: zeros; a scope would take their place
    return fail(Errc::kInvalid,
                "'{}' is not a link-local address: it has bits behind fe80::", text);
  return result;
}

}  // namespace

Result<IpAddress> IpAddress::from_text(std::string_view text) {
  const auto mark = text.find('%');
  auto address = without_interface(text.substr(0, mark));
  if (!address || mark == std::string_view::npos) return address;
  if (!address->is_link_local())
    return fail(Errc::kInvalid, "'{}': only a link-local address (fe80::/10) has an interface",
                text);
  const auto scope = scope_from_text(text.substr(mark + 1));
  if (!scope) return fail(Errc::kInvalid, "'{}': {}", text, scope.error().text);
  address->set_scope(*scope);
  return address;
}

std::string to_text(const IpAddress& address) {
  char buffer[INET6_ADDRSTRLEN];
  if (address.is_v4()) return ::inet_ntop(AF_INET, &address.octets[12], buffer, sizeof buffer);
  const IpAddress bare = address.without_scope();
  std::string text = ::inet_ntop(AF_INET6, bare.octets.data(), buffer, sizeof buffer);
  if (address.scope() != 0) text += "%" + scope_to_text(address.scope());
  return text;
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
  if (address->scope() != 0 && prefix.length < 8 * (kScopeAt + kScopeOctets))
    return fail(Errc::kInvalid, "'{}' is wider than one interface", text);
  for (std::size_t bit = prefix.length; bit < 128; ++bit)
    if ((prefix.address.octets[bit / 8] & (0x80U >> (bit % 8))) != 0)
      return fail(Errc::kInvalid, "'{}' has bits set behind its prefix length", text);
  return prefix;
}

bool IpPrefix::contains(const IpAddress& candidate) const noexcept {
  if (!address.is_link_local()) [[likely]]
    return has_prefix_of(candidate);
  if (is_interface_name(address.scope())) return resolved().has_prefix_of(candidate);
  return has_prefix_of(address.scope() == 0 ? candidate.without_scope() : candidate);
}

bool IpPrefix::has_prefix_of(const IpAddress& candidate) const noexcept {
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
  const IpAddress bare = address.without_scope();
  std::memcpy(&v6->sin6_addr, bare.octets.data(), 16);
  v6->sin6_scope_id = interface_number(address.scope());
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
