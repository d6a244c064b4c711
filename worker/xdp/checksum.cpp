#include "worker/xdp/checksum.h"

#include <cstring>

namespace pando::worker {

namespace {

/// A 64-bit sum whose carries come round.
std::uint64_t add_with_carry(std::uint64_t sum, std::uint64_t value) noexcept {
  sum += value;
  return sum + (sum < value ? 1 : 0);
}

/// 16 bits of a sum of words in this host's order.
std::uint16_t fold_words(std::uint64_t sum) noexcept {
  sum = (sum & 0xFFFFFFFFU) + (sum >> 32);
  sum = (sum & 0xFFFFFFFFU) + (sum >> 32);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

/// RFC 1071 §2: the sum may be taken in any order of octets and in wider words. So eight octets are
/// added at a time, and the octets of the sum are swapped at the end.
std::uint64_t add_to_sum(std::uint64_t sum, ByteView octets) noexcept {
  std::uint64_t words = 0;
  const std::uint8_t* at = octets.data();
  std::size_t left = octets.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t next = 0;
    std::memcpy(&next, at, 8);
    words = add_with_carry(words, next);
  }
  if (left > 0) {
    std::uint64_t last = 0;  // the octets after the end count as zeros
    std::memcpy(&last, at, left);
    words = add_with_carry(words, last);
  }
  return sum + __builtin_bswap16(fold_words(words));
}

std::uint16_t fold_sum(std::uint64_t sum) noexcept { return fold_words(sum); }

}  // namespace pando::worker
