#include "worker/net/message_length.h"

#include <cstdint>

#include "base/net/proxy_header.h"

namespace pando::worker {

namespace {

constexpr std::size_t kHeaderOctets = 12;
constexpr std::size_t kQuestionOctets = 4;     // type and class
constexpr std::size_t kRecordHeadOctets = 10;  // type, class, TTL, length of the data

std::size_t number_at(ByteView octets, std::size_t at) noexcept {
  return static_cast<std::size_t>(octets[at] << 8 | octets[at + 1]);
}

/// The position after the name at `at`; after the end of `octets` when the name is not whole.
std::size_t skip_name(ByteView octets, std::size_t at) noexcept {
  while (at < octets.size() && octets[at] != 0) {
    if (octets[at] >= 0xC0) return at + 2;  // RFC 1035 §4.1.4: a pointer ends the name
    at += std::size_t{1} + octets[at];
  }
  return at + 1;
}

}  // namespace

std::size_t message_length(ByteView octets) noexcept {
  const ProxyHeader proxy = read_proxy_header(octets);
  const std::size_t begin = proxy.size;
  const ByteView message = octets.subspan(begin);
  if (message.size() < kHeaderOctets) return 0;
  std::size_t at = kHeaderOctets;
  // Each step moves on by more than one octet, so the walk is bounded by the octets.
  for (std::size_t left = number_at(message, 4); left > 0; --left) {
    if (at >= message.size()) return 0;
    at = skip_name(message, at) + kQuestionOctets;
  }
  const std::size_t records =
      number_at(message, 6) + number_at(message, 8) + number_at(message, 10);
  for (std::size_t left = records; left > 0; --left) {
    at = skip_name(message, at) + kRecordHeadOctets;
    if (at > message.size()) return 0;
    at += number_at(message, at - 2);
  }
  return at <= message.size() ? begin + at : 0;
}

}  // namespace pando::worker
