#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

inline constexpr std::size_t kHeaderOctets = 12;         // RFC 1035 §4.1.1
inline constexpr std::size_t kMaxMessageOctets = 65535;  // RFC 1035 §4.2.2

/// The fixed header (RFC 1035 §4.1.1, AD and CD from RFC 4035 §3.1.6). The Z bit is absent: reading
/// ignores it, and writing sets it to 0.
struct Header {
  std::uint16_t id = 0;
  bool qr = false;
  Opcode opcode = Opcode::kQuery;
  bool aa = false, tc = false, rd = false, ra = false, ad = false, cd = false;
  std::uint8_t rcode = 0;  ///< the low four bits; EDNS has the rest
  std::uint16_t qdcount = 0, ancount = 0, nscount = 0, arcount = 0;
};

/// Decodes the twelve octets at `octets`.
[[nodiscard]] inline Header decode_header(const std::uint8_t* octets) noexcept {
  Header header;
  header.id = load_be16(octets);
  header.qr = (octets[2] & 0x80) != 0;
  header.opcode = static_cast<Opcode>((octets[2] >> 3) & 0x0F);
  header.aa = (octets[2] & 0x04) != 0;
  header.tc = (octets[2] & 0x02) != 0;
  header.rd = (octets[2] & 0x01) != 0;
  header.ra = (octets[3] & 0x80) != 0;
  header.ad = (octets[3] & 0x20) != 0;
  header.cd = (octets[3] & 0x10) != 0;
  header.rcode = octets[3] & 0x0F;
  header.qdcount = load_be16(octets + 4);
  header.ancount = load_be16(octets + 6);
  header.nscount = load_be16(octets + 8);
  header.arcount = load_be16(octets + 10);
  return header;
}

/// Decodes the header at the start of `message`; kTruncated for a message shorter than 12 octets.
Result<Header> read_header(ByteView message);

/// Encodes `header` to the first twelve octets at `out`, counts included.
void write_header(const Header& header, std::uint8_t* out) noexcept;

struct Question {
  Name name;
  RRType type{};
  RRClass rr_class{};
};

}  // namespace pando::dns
