#include "worker/xdp/frame.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "worker/xdp/checksum.h"

namespace pando::worker {

namespace {

constexpr std::size_t kMacOctets = 6;
constexpr std::uint16_t kTypeVlan = 0x8100;  // IEEE 802.1Q
constexpr std::uint16_t kTypeIpv4 = 0x0800;
constexpr std::uint16_t kTypeIpv6 = 0x86DD;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kHopLimit = 64;

/// An address that only its own host may send from, or that is not one host's.
bool is_answerable(const IpAddress& address, bool v4) noexcept {
  const auto& octets = address.octets;
  // 0.0.0.0/8, 127.0.0.0/8, and 224.0.0.0 to the end: multicast, class E, broadcast.
  if (v4) return octets[12] != 0 && octets[12] != 127 && octets[12] < 224;
  static constexpr std::array<std::uint8_t, 15> kZeros{};
  const bool is_any_or_loopback =
      std::memcmp(octets.data(), kZeros.data(), kZeros.size()) == 0 && octets[15] <= 1;
  return octets[0] != 0xFF && !is_any_or_loopback && !address.is_v4();
}

IpAddress frame_address(const std::uint8_t* at, bool v4) noexcept {
  IpAddress address;
  if (v4) {
    address.octets[10] = address.octets[11] = 0xFF;
    std::memcpy(address.octets.data() + 12, at, 4);
  } else {
    std::memcpy(address.octets.data(), at, 16);
    if (address.is_link_local()) [[unlikely]]
      address.set_scope(0);  // what stands there is the sender's choice
  }
  return address;
}

/// Sum of the pseudo-header (RFC 768, RFC 8200 §8.1). The addresses stand together in both
/// versions.
std::uint64_t pseudo_header_sum(const std::uint8_t* addresses, bool v4,
                                std::size_t udp_octets) noexcept {
  return add_to_sum(kProtocolUdp + udp_octets, ByteView(addresses, v4 ? 8 : 32));
}

bool is_udp_sum_valid(const std::uint8_t* udp, std::size_t octets, const std::uint8_t* addresses,
                      bool v4) noexcept {
  const std::uint16_t sum = load_be16(udp + 6);
  if (sum == 0) return v4;  // RFC 768: no checksum; RFC 8200 §8.1: IPv6 must have one
  const std::uint64_t pseudo = pseudo_header_sum(addresses, v4, octets);
  return fold_sum(add_to_sum(pseudo, ByteView(udp, octets))) == 0xFFFF || sum == fold_sum(pseudo);
}

/// The IPv4 datagram at the front of `packet`; empty if it is none of ours.
ByteView ipv4_contents(ByteView packet) noexcept {
  if (packet.size() < kIpv4Octets) return {};
  const std::uint8_t* ip = packet.data();
  const std::size_t total = load_be16(ip + 2);
  const bool has_options = ip[0] != 0x45;
  const bool is_fragment = (load_be16(ip + 6) & 0x3FFF) != 0;
  if (has_options || is_fragment || ip[9] != kProtocolUdp || total > packet.size() ||
      total < kIpv4Octets || fold_sum(add_to_sum(0, packet.first(kIpv4Octets))) != 0xFFFF)
    return {};
  return packet.subspan(kIpv4Octets, total - kIpv4Octets);
}

ByteView ipv6_contents(ByteView packet) noexcept {
  if (packet.size() < kIpv6Octets) return {};
  const std::uint8_t* ip = packet.data();
  const std::size_t payload = load_be16(ip + 4);
  if (ip[0] >> 4 != 6 || ip[6] != kProtocolUdp || payload > packet.size() - kIpv6Octets) return {};
  return packet.subspan(kIpv6Octets, payload);
}

}  // namespace

std::optional<RequestFrame> read_frame(ByteView octets) noexcept {
  if (octets.size() < kEthernetOctets + kVlanOctets) return std::nullopt;
  RequestFrame frame;
  frame.octets = octets;
  std::uint16_t type = load_be16(octets.data() + 2 * kMacOctets);
  frame.has_vlan = type == kTypeVlan;
  if (frame.has_vlan) type = load_be16(octets.data() + 2 * kMacOctets + kVlanOctets);
  if (type != kTypeIpv4 && type != kTypeIpv6) return std::nullopt;
  frame.is_v4 = type == kTypeIpv4;
  const ByteView packet = octets.subspan(kEthernetOctets + (frame.has_vlan ? kVlanOctets : 0));
  const ByteView contents = frame.is_v4 ? ipv4_contents(packet) : ipv6_contents(packet);
  if (contents.size() < kUdpOctets) return std::nullopt;
  const std::uint8_t* udp = contents.data();
  const std::size_t length = load_be16(udp + 4);
  if (length < kUdpOctets || length > contents.size()) return std::nullopt;
  const std::uint8_t* addresses = packet.data() + (frame.is_v4 ? 12 : 8);
  if (!is_udp_sum_valid(udp, length, addresses, frame.is_v4)) return std::nullopt;
  frame.source = {frame_address(addresses, frame.is_v4), load_be16(udp)};
  frame.destination = {frame_address(addresses + (frame.is_v4 ? 4 : 16), frame.is_v4),
                       load_be16(udp + 2)};
  const bool own = frame.source.address == frame.destination.address;
  if (own || frame.source.port == 0 || !is_answerable(frame.source.address, frame.is_v4))
    return std::nullopt;
  frame.message = contents.subspan(kUdpOctets, length - kUdpOctets);
  return frame;
}

std::size_t message_room(const RequestFrame& request, std::size_t mtu) noexcept {
  const std::size_t headers = request.ip_octets() + kUdpOctets;
  return mtu > headers ? mtu - headers : 0;
}

namespace {

void write_ipv4(const std::uint8_t* request, std::uint8_t* ip, std::size_t udp_octets,
                std::uint16_t identification) noexcept {
  ip[0] = 0x45;
  ip[1] = 0;
  store_be16(ip + 2, static_cast<std::uint16_t>(kIpv4Octets + udp_octets));
  store_be16(ip + 4, identification);
  store_be16(ip + 6, 0);  // routers may fragment it, as responses of sockets
  ip[8] = kHopLimit;
  ip[9] = kProtocolUdp;
  store_be16(ip + 10, 0);
  std::memcpy(ip + 12, request + 16, 4);
  std::memcpy(ip + 16, request + 12, 4);
  store_be16(ip + 10, static_cast<std::uint16_t>(~fold_sum(add_to_sum(0, {ip, kIpv4Octets}))));
}

void write_ipv6(const std::uint8_t* request, std::uint8_t* ip, std::size_t udp_octets) noexcept {
  store_be32(ip, 0x60000000);
  store_be16(ip + 4, static_cast<std::uint16_t>(udp_octets));
  ip[6] = kProtocolUdp;
  ip[7] = kHopLimit;
  std::memcpy(ip + 8, request + 24, 16);
  std::memcpy(ip + 24, request + 8, 16);
}

}  // namespace

std::size_t write_headers(const RequestFrame& request, std::uint8_t* response,
                          std::size_t message_octets, std::uint16_t identification) noexcept {
  const std::uint8_t* asked = request.octets.data();
  std::memcpy(response, asked + kMacOctets, kMacOctets);
  std::memcpy(response + kMacOctets, asked, kMacOctets);
  const std::size_t link = kEthernetOctets + (request.has_vlan ? kVlanOctets : 0);
  std::memcpy(response + 2 * kMacOctets, asked + 2 * kMacOctets, link - 2 * kMacOctets);
  std::uint8_t* const ip = response + link;
  const std::size_t udp_octets = kUdpOctets + message_octets;
  if (request.is_v4)
    write_ipv4(asked + link, ip, udp_octets, identification);
  else
    write_ipv6(asked + link, ip, udp_octets);
  std::uint8_t* const udp = ip + request.ip_octets();
  store_be16(udp, request.destination.port);
  store_be16(udp + 2, request.source.port);
  store_be16(udp + 4, static_cast<std::uint16_t>(udp_octets));
  store_be16(udp + 6, 0);
  const std::uint64_t pseudo =
      pseudo_header_sum(ip + (request.is_v4 ? 12 : 8), request.is_v4, udp_octets);
  const std::uint64_t sum = add_to_sum(pseudo, {udp, udp_octets});
  const auto checksum = static_cast<std::uint16_t>(~fold_sum(sum));
  // RFC 768: 0 would say that there is no checksum.
  store_be16(udp + 6, checksum == 0 ? 0xFFFF : checksum);
  return link + request.ip_octets() + udp_octets;
}

}  // namespace pando::worker
