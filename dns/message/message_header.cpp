#include "dns/message/message_header.h"

namespace pando::dns {

Result<Header> read_header(ByteView message) {
  if (message.size() < kHeaderOctets)
    return fail(Errc::kTruncated, "message of {} octets has no header", message.size());
  const std::uint8_t* p = message.data();
  Header header;
  header.id = load_be16(p);
  header.qr = (p[2] & 0x80) != 0;
  header.opcode = static_cast<Opcode>((p[2] >> 3) & 0x0F);
  header.aa = (p[2] & 0x04) != 0;
  header.tc = (p[2] & 0x02) != 0;
  header.rd = (p[2] & 0x01) != 0;
  header.ra = (p[3] & 0x80) != 0;
  header.ad = (p[3] & 0x20) != 0;
  header.cd = (p[3] & 0x10) != 0;
  header.rcode = p[3] & 0x0F;
  header.qdcount = load_be16(p + 4);
  header.ancount = load_be16(p + 6);
  header.nscount = load_be16(p + 8);
  header.arcount = load_be16(p + 10);
  return header;
}

void write_header(const Header& header, std::uint8_t* out) noexcept {
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

}  // namespace pando::dns
