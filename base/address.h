#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pando {

// Scopes of link-local addresses (RFC 4007 §6): numbers of interfaces, and names of interfaces that
// need not exist yet. An interface that is made anew has another number and the same name, hence a
// configured name is looked up whenever its address is used.

/// No interface has this number.
inline constexpr std::uint32_t kNoInterface = 0x7FFF'FFFF;

/// The scope for "eth0" or "2". The same name always has the same scope within this process.
/// kInvalid for texts that name no interface, and for a name too many.
Result<std::uint32_t> scope_from_text(std::string_view text);
/// Without a system call: a number stays a number, as workers may ask the kernel nothing.
[[nodiscard]] std::string scope_to_text(std::uint32_t scope);
/// True for a scope that is a name, not a number. Such a scope means nothing in other processes.
[[nodiscard]] constexpr bool is_interface_name(std::uint32_t scope) noexcept {
  return scope > kNoInterface;
}
/// The number that the interface has now; kNoInterface: it does not exist.
[[nodiscard]] std::uint32_t interface_number(std::uint32_t scope) noexcept;

/// An IPv4 or IPv6 address. IPv4 stands in the last four octets as an IPv4-mapped address, so one
/// comparison serves both families. A link-local address has its scope (RFC 4007 §6) in octets 4 to
/// 7, which are zero on the wire (RFC 4291 §2.5.6):
///
///     0    1    2    4       8                    16
///     | FE | 80 | 00 | scope | interface identifier |
///
/// So a scope costs no room in shared memory, and the same comparison covers it.
struct IpAddress {
  std::array<std::uint8_t, 16> octets{};

  [[nodiscard]] bool is_v4() const noexcept;
  /// fe80::/10.
  [[nodiscard]] bool is_link_local() const noexcept {
    return octets[0] == 0xFE && (octets[1] & 0xC0U) == 0x80;
  }
  /// Number or name of the interface; 0: any, or not link-local.
  [[nodiscard]] std::uint32_t scope() const noexcept;
  /// For link-local addresses alone.
  void set_scope(std::uint32_t scope) noexcept;
  /// As on the wire, without scope.
  [[nodiscard]] IpAddress without_scope() const noexcept;
  /// With the number that the named interface has now, as addresses of sockets have it.
  [[nodiscard]] IpAddress resolved() const noexcept;
  static IpAddress from_sockaddr(const sockaddr* address) noexcept {
    IpAddress result;
    result.take(address);
    return result;
  }
  /// Becomes that address; all zeros for other families.
  void take(const sockaddr* address) noexcept;
  /// An address in the usual form; a link-local one may have its interface: "fe80::1%eth0".
  static Result<IpAddress> from_text(std::string_view text);
  auto operator<=>(const IpAddress&) const noexcept = default;
};
std::string to_text(const IpAddress& address);

/// ADDRESS or ADDRESS/LENGTH. `length` counts in the mapped form: an IPv4 /24 has 96 + 24. A
/// link-local prefix without an interface has the addresses of all interfaces.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 128;

  static Result<IpPrefix> from_text(std::string_view text);  ///< host bits set = error
  [[nodiscard]] bool contains(const IpAddress& candidate) const noexcept;
  [[nodiscard]] IpPrefix resolved() const noexcept { return {address.resolved(), length}; }
  bool operator==(const IpPrefix&) const noexcept = default;

 private:
  [[nodiscard]] bool has_prefix_of(const IpAddress& candidate) const noexcept;
};
std::string to_text(const IpPrefix& prefix);

/// ADDRESS@PORT, the form of the configuration.
struct Endpoint {
  IpAddress address;
  std::uint16_t port = 53;

  static Result<Endpoint> from_text(std::string_view text);  ///< port 53 when left out
  [[nodiscard]] Endpoint resolved() const noexcept { return {address.resolved(), port}; }
  /// Fills a sockaddr; returns its length. The kernel refuses the address of an interface that does
  /// not exist.
  socklen_t to_sockaddr(sockaddr_storage& out) const noexcept;
  static Endpoint from_sockaddr(const sockaddr* address) noexcept {
    Endpoint result;
    result.take(address);
    return result;
  }
  /// from_sockaddr() in place: a copy right after small writes waits for them.
  void take(const sockaddr* from) noexcept;
  auto operator<=>(const Endpoint&) const noexcept = default;
};
std::string to_text(const Endpoint& endpoint);

}  // namespace pando
