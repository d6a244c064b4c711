#pragma once

#include <cstdint>
#include <string>

#include "base/address.h"
#include "base/bytes.h"

/// Frames for tests, written octet by octet as RFCs 768, 791 and 8200 show them.
namespace pando::worker::frame_support {

/// RFC 1071 §1, word by word; an odd last octet is the upper half of a word.
inline std::uint16_t naive_checksum(const Bytes& octets) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < octets.size(); i += 2)
    sum += (std::uint64_t{octets[i]} << 8) + (i + 1 < octets.size() ? octets[i + 1] : 0);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

struct FrameParts {
  Endpoint source;
  Endpoint destination;
  Bytes message;
  std::uint16_t vlan = 0;  ///< 0: no tag
  bool no_sum = false;     ///< IPv4 only
  bool partial_sum = false;
};

inline void append_address(Bytes& out, const IpAddress& address) {
  append(out, ByteView(address.octets).subspan(address.is_v4() ? 12 : 0));
}

inline Bytes udp_datagram(const FrameParts& parts) {
  const auto octets = static_cast<std::uint16_t>(8 + parts.message.size());
  Bytes pseudo;
  append_address(pseudo, parts.source.address);
  append_address(pseudo, parts.destination.address);
  append_be16(pseudo, 17);
  append_be16(pseudo, octets);
  Bytes udp;
  append_be16(udp, parts.source.port);
  append_be16(udp, parts.destination.port);
  append_be16(udp, octets);
  append_be16(udp, 0);
  append(udp, parts.message);
  Bytes all = pseudo;
  append(all, udp);
  std::uint16_t sum = naive_checksum(all);
  if (sum == 0) sum = 0xFFFF;
  if (parts.partial_sum) sum = static_cast<std::uint16_t>(~naive_checksum(pseudo));
  store_be16(udp.data() + 6, parts.no_sum ? 0 : sum);
  return udp;
}

inline Bytes make_frame(const FrameParts& parts) {
  Bytes frame{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
  if (parts.vlan != 0) {
    append_be16(frame, 0x8100);
    append_be16(frame, parts.vlan);
  }
  const Bytes udp = udp_datagram(parts);
  Bytes ip;
  if (parts.source.address.is_v4()) {
    append_be16(frame, 0x0800);
    append_be16(ip, 0x4500);
    append_be16(ip, static_cast<std::uint16_t>(20 + udp.size()));
    append_be32(ip, 0x12344000);  // identification, "don't fragment"
    append_be16(ip, 64 << 8 | 17);
    append_be16(ip, 0);
    append_address(ip, parts.source.address);
    append_address(ip, parts.destination.address);
    store_be16(ip.data() + 10, naive_checksum(ip));
  } else {
    append_be16(frame, 0x86DD);
    append_be32(ip, 0x60012345);
    append_be16(ip, static_cast<std::uint16_t>(udp.size()));
    append_be16(ip, 17 << 8 | 64);
    append_address(ip, parts.source.address);
    append_address(ip, parts.destination.address);
  }
  append(frame, ip);
  append(frame, udp);
  return frame;
}

inline FrameParts v4_parts(Bytes message = Bytes(30, 7)) {
  return {Endpoint::from_text("192.0.2.2@4242").value(), Endpoint::from_text("192.0.2.1").value(),
          std::move(message)};
}
inline FrameParts v6_parts(Bytes message = Bytes(30, 7)) {
  return {Endpoint::from_text("2001:db8::2@4242").value(),
          Endpoint::from_text("2001:db8::1").value(), std::move(message)};
}

}  // namespace pando::worker::frame_support
