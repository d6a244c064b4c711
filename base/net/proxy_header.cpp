#include "base/net/proxy_header.h"

#include <algorithm>
#include <array>

namespace pando {

namespace {

using Kind = ProxyHeader::Kind;

// signature (12) | version and command | family and protocol | length of the rest (16 bits)
constexpr std::array<std::uint8_t, 12> kSignature{0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D,
                                                  0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A};
constexpr std::size_t kFixedOctets = 16;
constexpr std::uint8_t kVersion = 2;
constexpr std::uint8_t kCommandLocal = 0;
constexpr std::uint8_t kCommandProxy = 1;
constexpr std::uint8_t kFamilyUnspecified = 0;
constexpr std::uint8_t kFamilyV4 = 1;
constexpr std::uint8_t kFamilyV6 = 2;

bool begins_like_signature(ByteView octets) noexcept {
  const std::size_t length = std::min(octets.size(), kSignature.size());
  return std::equal(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(length),
                    kSignature.begin());
}

/// An address of 4 or 16 octets in the common form of both families (IPv4-mapped).
IpAddress address_at(const std::uint8_t* at, std::size_t octets) noexcept {
  IpAddress address;
  const std::size_t before = address.octets.size() - octets;
  if (before > 0) address.octets[10] = address.octets[11] = 0xFF;  // RFC 4291 §2.5.5.2
  std::copy(at, at + octets, address.octets.begin() + static_cast<std::ptrdiff_t>(before));
  if (address.is_link_local()) address.set_scope(0);  // the interface is the balancer's
  return address;
}

/// Reads source address, destination address, source port and destination port.
Kind take_addresses(ByteView block, std::size_t octets, ProxyHeader& header) noexcept {
  if (block.size() < 2 * octets + 4) return Kind::kMalformed;
  const std::uint8_t* ports = block.data() + 2 * octets;
  header.source = {address_at(block.data(), octets), load_be16(ports)};
  header.destination = {address_at(block.data() + octets, octets), load_be16(ports + 2)};
  return Kind::kProxied;
}

Kind take_block(ByteView block, std::uint8_t command, std::uint8_t family,
                ProxyHeader& header) noexcept {
  if (command == kCommandLocal) return Kind::kLocal;
  if (command != kCommandProxy) return Kind::kMalformed;
  switch (family) {
    case kFamilyUnspecified:  // the balancer does not know the client: the same as no header
      return Kind::kLocal;
    case kFamilyV4:
      return take_addresses(block, 4, header);
    case kFamilyV6:
      return take_addresses(block, 16, header);
    default:
      return Kind::kMalformed;
  }
}

}  // namespace

ProxyHeader read_proxy_header(ByteView octets) noexcept {
  ProxyHeader header;
  if (!begins_like_signature(octets)) return header;
  header.kind = Kind::kIncomplete;
  if (octets.size() < kFixedOctets) return header;
  header.kind = Kind::kMalformed;
  if (octets[12] >> 4 != kVersion) return header;
  const std::size_t size = kFixedOctets + load_be16(&octets[14]);
  header.kind = Kind::kIncomplete;
  if (octets.size() < size) return header;
  header.size = size;
  header.kind = take_block(octets.subspan(kFixedOctets, size - kFixedOctets), octets[12] & 0x0FU,
                           octets[13] >> 4, header);
  return header;
}

}  // namespace pando
