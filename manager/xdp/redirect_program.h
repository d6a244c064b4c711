#pragma once

#include <linux/bpf.h>

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace pando::manager {

using MacAddress = std::array<std::uint8_t, 6>;

/// Key of the map of addresses: a destination that frames of this VLAN may have.
///
///   0                16     18     20
///   | address (IPv6) | port | vlan |
struct XdpAddressKey {
  std::array<std::uint8_t, 16> address;  ///< IPv4 as an IPv4-mapped address
  std::array<std::uint8_t, 2> port;      ///< in the network's order
  std::uint16_t vlan;                    ///< 0 = untagged
  auto operator<=>(const XdpAddressKey&) const = default;
};
static_assert(sizeof(XdpAddressKey) == 20, "the program lays the key out by these offsets");

/// Longer frames are the sockets' work: no query is that long.
inline constexpr std::int32_t kMaxXdpFrame = 1500;

/// Maps and interface of a program.
struct RedirectParts {
  int sockets = -1;    ///< BPF_MAP_TYPE_XSKMAP, by receive queue
  int addresses = -1;  ///< BPF_MAP_TYPE_HASH of XdpAddressKey
  MacAddress mac{};    ///< of the interface
};

/// The XDP program redirects a frame to the AF_XDP socket of its receive queue if the frame is
/// certainly a DNS query to one of the addresses. All other frames pass to the kernel, and so do
/// those of a queue without a socket.
///
/// A query is a UDP datagram in one IPv4 packet without options, or one IPv6 packet without
/// extension headers. The frame has the interface's own MAC address and at most one VLAN tag; QR is
/// 0 and OPCODE is QUERY. A load balancer's PROXY header has other bits there. Workers check
/// lengths and checksums.
[[nodiscard]] std::vector<bpf_insn> redirect_program(const RedirectParts& parts);

}  // namespace pando::manager
