#include "dns/message/message_header.h"

namespace pando::dns {

Result<Header> read_header(ByteView message) {
  if (message.size() < kHeaderOctets)
    return fail(Errc::kTruncated, "message of {} octets has no header", message.size());
  return decode_header(message.data());
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
