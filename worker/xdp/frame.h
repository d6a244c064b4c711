#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/address.h"
#include "base/bytes.h"

/// Ethernet frames with a UDP datagram: reading a request's, and writing the headers of its
/// response. Pure functions over octets.
namespace pando::worker {

inline constexpr std::size_t kEthernetOctets = 14;
inline constexpr std::size_t kVlanOctets = 4;
inline constexpr std::size_t kIpv4Octets = 20;
inline constexpr std::size_t kIpv6Octets = 40;
inline constexpr std::size_t kUdpOctets = 8;

/// The frame of a request. Views point into it.
struct RequestFrame {
  ByteView octets;    ///< the whole frame
  Endpoint source;
  Endpoint destination;
  ByteView message;   ///< the datagram's contents
  bool has_vlan = false;
  bool is_v4 = false;

  /// Octets in front of the message, in the response as well.
  [[nodiscard]] std::size_t header_octets() const noexcept {
    return kEthernetOctets + (has_vlan ? kVlanOctets : 0) + ip_octets() + kUdpOctets;
  }
  /// Octets of the IP header.
  [[nodiscard]] std::size_t ip_octets() const noexcept { return is_v4 ? kIpv4Octets : kIpv6Octets; }
};

/// Reads a frame with one UDP datagram: IPv4 without options and fragments, or IPv6 without
/// extension headers, with or without one VLAN tag. None for any other frame, for one that is cut
/// short, and for one whose sender must get no answer (RFC 1122 §3.2.1.3, RFC 4291 §2.7).
///
/// Checksums are verified. A datagram of the same host, as over veth and virtio, has only the sum
/// of its pseudo-header: a network card was to do the rest (CHECKSUM_PARTIAL). It is valid, too.
[[nodiscard]] std::optional<RequestFrame> read_frame(ByteView octets) noexcept;

/// Writes the headers of the response to `request` in front of the message of `message_octets`
/// that stands at `response` + request.header_octets() already. Returns the frame's length. The
/// message and the headers are at most 65,535 octets.
std::size_t write_headers(const RequestFrame& request, std::uint8_t* response,
                          std::size_t message_octets, std::uint16_t identification) noexcept;

/// The most octets of a message that a frame of `mtu` octets after the Ethernet header can have.
[[nodiscard]] std::size_t message_room(const RequestFrame& request, std::size_t mtu) noexcept;

}  // namespace pando::worker
