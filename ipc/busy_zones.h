#pragma once

#include <cstdint>

#include "ipc/counters.h"

/// The zones with the most queries at a worker. The worker samples its queries and counts their
/// zones in a fixed number of counters. When all counters are in use, a new zone replaces the zone
/// with the lowest count and continues from that count ("space saving", Metwally et al., 2005). So
/// a zone with more than one query in kBusyZones always stays, at a bounded cost for any number of
/// zones.
namespace pando::ipc {

/// Questions for each that is noted, on average.
inline constexpr std::uint64_t kQuestionsPerNote = 16;

/// One counter: the zone's entry in the side table (ZoneView::side_index()), and the notes.
struct BusyZone {
  std::uint32_t zone = 0;
  std::uint32_t notes = 0;  ///< 0: the counter has no zone

  [[nodiscard]] static BusyZone of(std::uint64_t value) noexcept {
    return {static_cast<std::uint32_t>(value >> 32), static_cast<std::uint32_t>(value)};
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return std::uint64_t{zone} << 32 | notes; }
};

/// Index of the zone's counter, or of the one whose place the zone takes.
template <class Counters>
[[nodiscard]] std::size_t find_busy(const Counters& counters, std::uint32_t zone) noexcept {
  std::size_t least = kBusyBase;
  std::uint32_t fewest = UINT32_MAX;
  for (std::size_t index = kBusyBase; index < kBusyBase + kBusyZones; ++index) {
    const auto one = BusyZone::of(counters[index].load(std::memory_order_relaxed));
    if (one.notes != 0 && one.zone == zone) return index;
    if (one.notes >= fewest) continue;
    fewest = one.notes;
    least = index;
  }
  return least;
}

}  // namespace pando::ipc
