#pragma once

#include <cstdint>

#include "ipc/counters.h"

/// The zones that a worker is asked for most. The worker notes the zone of some of its questions in
/// counters that have a zone each. When all have one, a new zone takes the place of the one with the
/// fewest notes, and goes on from their number ("space saving", Metwally et al., 2005): whatever is
/// asked for more often than one question in kBusyZones stays, and the cost is bounded however many
/// zones there are.
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
