#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "manager/xdp/redirect_program.h"

namespace pando::manager {

/// An address of the interface itself, or of a VLAN that the kernel has on it.
struct InterfaceAddress {
  IpAddress address;
  std::uint16_t vlan = 0;  ///< 0 = untagged
  auto operator<=>(const InterfaceAddress& other) const {
    return std::pair(address.octets, vlan) <=> std::pair(other.address.octets, other.vlan);
  }
  bool operator==(const InterfaceAddress&) const = default;
};

/// Properties of an interface on which its XDP program and AF_XDP sockets depend.
struct InterfaceFacts {
  int index = 0;
  MacAddress mac{};
  std::uint32_t mtu = 0;
  std::uint32_t queues = 0;  ///< receive queues
  bool has_vlans = false;    ///< the kernel has VLANs on it
  std::vector<InterfaceAddress> addresses;  ///< without link-local ones, sorted
};

/// Looks at the interface; kNotFound if there is none of that name.
Result<InterfaceFacts> look_at_interface(const std::string& name);

/// The destinations that the program redirects: the addresses of `listen` that frames of this
/// interface may have. A wildcard address stands for the interface's own. An address of another
/// host or interface, such as anycast on loopback, counts as untagged, and only if the interface
/// has no VLANs. A network card may have taken the tag off, and an untagged answer would then go
/// astray.
[[nodiscard]] std::vector<XdpAddressKey> redirected_addresses(const std::vector<Endpoint>& listen,
                                                              const InterfaceFacts& facts);

}  // namespace pando::manager
