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

/// Decodes the twelve octets at `octets`. In place: a copy right after small writes waits for
/// them.
inline void decode_header(const std::uint8_t* octets, Header& header) noexcept {
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
}

/// Decodes the header at the start of `message`; kTruncated for a message shorter than 12 octets.
Result<Header> read_header(ByteView message);

/// Encodes `header` to the first twelve octets at `out`, counts included. Inline: most fields of a
/// response are the same in all.
inline void write_header(const Header& header, std::uint8_t* out) noexcept {
  store_be16(out, header.id);
  out[2] = static_cast<std::uint8_t>((header.qr << 7) |
                                     ((static_cast<unsigned>(header.opcode) & 0x0F) << 3) |
                                     (header.aa << 2) | (header.tc << 1) | (header.rd << 0));
  out[3] = static_cast<std::uint8_t>((header.ra << 7) | (header.ad << 5) | (header.cd << 4) |
                                     (header.rcode & 0x0F));
  store_be16(out + 4, header.qdcount);
  store_be16(out + 6, header.ancount);
  store_be16(out + 8, header.nscount);
  store_be16(out + 10, header.arcount);
}

struct Question {
  Name name;
  RRType type{};
  RRClass rr_class{};
};

}  // namespace pando::dns
