#include "dns/message/message_header.h"

namespace pando::dns {

Result<Header> read_header(ByteView message) {
  if (message.size() < kHeaderOctets)
    return fail(Errc::kTruncated, "message of {} octets has no header", message.size());
  Header header;
  decode_header(message.data(), header);
  return header;
}

}  // namespace pando::dns
