#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "dns/name.h"

/// Compaction: live blocks are copied out of victim chunks (shm::Store::choose_victims()), in
/// steps, so that the chunks become free.
namespace pando::zone {

class Draft;

/// The place that a walk through the store has reached.
struct CompactCursor {
  dns::Name zone;
  dns::Name name;
  std::uint8_t phase = 0;
  std::uint32_t part = 0;      ///< 0 = the zone's own data, n = the n-th archived data
  std::uint64_t settings = 0;  ///< tag of the last settings moved; they come before all zones
  bool settings_done = false;
};

/// Bounds a step by what it writes: a walk comes from names that stay to thousands that move.
inline constexpr std::uint64_t kMaxCompacted = std::uint64_t{128} << 10;

/// True for a zone that compaction must not move.
using LeaveAlone = std::function<bool(dns::NameView apex)>;

/// Copies blocks in victim chunks, starting after `cursor`, at most `names` names and some
/// kMaxCompacted bytes. Returns true when the walk reached the end (cursor is then reset). Zones
/// for which `leave_alone` (may be empty) is true are skipped. `is_over` (may be empty) is asked
/// every few names; true ends the step. kFull, kCorrupt.
Result<bool> compact(Draft& draft, CompactCursor& cursor, std::size_t names,
                     const LeaveAlone& leave_alone = {}, const std::function<bool()>& is_over = {});

}  // namespace pando::zone
