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

/// An IPv4 or IPv6 address. IPv4 stands in the last four octets as an IPv4-mapped address, so one
/// comparison serves both families.
struct IpAddress {
  std::array<std::uint8_t, 16> octets{};

  [[nodiscard]] bool is_v4() const noexcept;
  static IpAddress from_sockaddr(const sockaddr* address) noexcept {
    IpAddress result;
    result.take(address);
    return result;
  }
  /// Becomes that address; all zeros for other families.
  void take(const sockaddr* address) noexcept;
  static Result<IpAddress> from_text(std::string_view text);
  auto operator<=>(const IpAddress&) const noexcept = default;
};
std::string to_text(const IpAddress& address);

/// ADDRESS or ADDRESS/LENGTH. `length` counts in the mapped form: an IPv4 /24 has 96 + 24.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 128;

  static Result<IpPrefix> from_text(std::string_view text);  ///< host bits set = error
  [[nodiscard]] bool contains(const IpAddress& candidate) const noexcept;
  bool operator==(const IpPrefix&) const noexcept = default;
};
std::string to_text(const IpPrefix& prefix);

/// ADDRESS@PORT, the form of the configuration.
struct Endpoint {
  IpAddress address;
  std::uint16_t port = 53;

  static Result<Endpoint> from_text(std::string_view text);  ///< port 53 when left out
  /// Fills a sockaddr; returns its length.
  socklen_t to_sockaddr(sockaddr_storage& out) const noexcept;
  static Endpoint from_sockaddr(const sockaddr* address) noexcept {
    Endpoint result;
    result.take(address);
    return result;
  }
  /// from_sockaddr() in place: a copy right behind small writes waits for them.
  void take(const sockaddr* from) noexcept;
  auto operator<=>(const Endpoint&) const noexcept = default;
};
std::string to_text(const Endpoint& endpoint);

}  // namespace pando
