#include "dns/wire_name.h"

#include <cstring>

namespace pando::dns {

namespace {

constexpr std::uint8_t kPointerBits = 0xC0;  // RFC 1035 §4.1.4

/// Skips plain labels from `at` on. The returned offset is that of a root label, a pointer or a
/// reserved label type, or lies past the message.
std::size_t skip_plain_labels(ByteView message, std::size_t at) noexcept {
  const std::size_t bound = at + kMaxNameOctets;  // a name cannot be longer
  while (at < message.size() && at < bound && message[at] != 0 && message[at] <= kMaxLabelOctets)
    at += message[at] + 1U;
  return at;
}

}  // namespace

Result<std::size_t> expand_name(ByteView message, std::size_t at, std::uint8_t out[kMaxNameOctets],
                                std::size_t& out_size) {
  std::size_t size = 0;
  std::size_t behind = 0;  // set at the first pointer
  for (std::size_t pointers = 0; pointers <= kMaxNamePointers; ++pointers) {
    const std::size_t end = skip_plain_labels(message, at);
    if (end >= message.size()) return fail(Errc::kTruncated, "name cut short");
    const bool last = message[end] == 0;
    const std::size_t stretch = end - at + (last ? 1 : 0);
    if (size + stretch + (last ? 0 : 1) > kMaxNameOctets)
      return fail(Errc::kInvalid, "name above 255 octets");
    std::memcpy(out + size, message.data() + at, stretch);
    size += stretch;
    if (last) {
      out_size = size;
      return behind != 0 ? behind : end + 1;
    }
    if ((message[end] & kPointerBits) != kPointerBits)
      return fail(Errc::kInvalid, "bad label type");
    if (end + 1 >= message.size()) return fail(Errc::kTruncated, "name cut short");
    if (behind == 0) behind = end + 2;
    const std::size_t target = load_be16(message.data() + end) & 0x3FFFU;
    if (target >= at) return fail(Errc::kInvalid, "name pointer not backwards");
    at = target;
  }
  return fail(Errc::kInvalid, "too many name pointers");
}

}  // namespace pando::dns
