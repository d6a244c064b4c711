#pragma once

#include <cstring>

#include "base/address.h"
#include "ipc/counters.h"

/// Secondaries query a zone's SOA record or request a transfer. A worker records the address of
/// each such query in one of its counters, so that the manager notices when a secondary is back.
/// When all counters are in use, a new address replaces another. The record is a hint, and its cost
/// is bounded whatever strangers send.
namespace pando::ipc {

/// 48 bits tell addresses apart; the counter's other 16 bits count the queries.
inline constexpr unsigned kSeenCountBits = 16;

[[nodiscard]] inline std::uint64_t seen_hash(const IpAddress& address) noexcept {
  std::uint64_t halves[2];
  static_assert(sizeof halves == sizeof address.octets);
  std::memcpy(halves, address.octets.data(), sizeof halves);
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  const std::uint64_t mixed = ((halves[0] * kOdd) ^ halves[1]) * kOdd;
  return mixed ^ mixed >> 32;
}
[[nodiscard]] inline std::uint64_t seen_value(std::uint64_t hash, std::uint64_t count) noexcept {
  constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kSeenCountBits) - 1;
  return hash << kSeenCountBits | (count & kCountMask);
}
/// True if the counter's last client has this hash.
[[nodiscard]] inline bool is_seen(std::uint64_t value, std::uint64_t hash) noexcept {
  return value != 0 && (value ^ seen_value(hash, 0)) >> kSeenCountBits == 0;
}

/// Index of the counter with this client's note, else of one without a note; 0: all have notes of
/// others. Any counter may have any client's note: places by hash would make secondaries that
/// collide push each other out, while other places stay empty.
template <class Counters>
[[nodiscard]] std::size_t find_seen(const Counters& counters, std::uint64_t hash) noexcept {
  std::size_t unused = 0;
  for (std::size_t index = kSeenBase; index < kSeenBase + kSeenClients; ++index) {
    const std::uint64_t value = counters[index].load(std::memory_order_relaxed);
    if (is_seen(value, hash)) return index;
    if (value == 0 && unused == 0) unused = index;
  }
  return unused;
}

}  // namespace pando::ipc
