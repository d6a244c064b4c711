#pragma once

#include <atomic>
#include <cstdint>

#include "shm/store.h"

namespace pando::shm {

/// An entry of the side table, without giving it memory: nullptr when neither the entry nor its
/// neighbours were ever set. Zones without timers, which are the majority, cost no memory there.
/// Any thread.
[[nodiscard]] const Store::SideEntry* known_side(const Window& window,
                                                 std::uint32_t index) noexcept;

/// The end of the zone's first signature (RRSIG), in seconds since 1970; 0 = unknown. Written by
/// the manager only; relaxed, as the entry's other words. The layout reserves a word of that size
/// for it.
[[nodiscard]] inline std::atomic<std::uint64_t>& signatures_end(Store::SideEntry& entry) noexcept {
  return entry.reserved;
}
[[nodiscard]] inline std::uint64_t signatures_end(const Store::SideEntry& entry) noexcept {
  return entry.reserved.load(std::memory_order_relaxed);
}
/// Writes it. A zone without an entry gets none for a 0.
void set_signatures_end(Store& store, std::uint32_t index, std::uint64_t end);

}  // namespace pando::shm
