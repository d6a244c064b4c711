#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "shm/store.h"

/// Data of replaced zones, in lists of their roots (zone/trie/zone_layout.h, DiscardedStack). A
/// zone of any size is so replaced in constant time, and its blocks are released in steps.
namespace pando::zone {

class Draft;

/// Writes a list of discarded blocks in front of the list at `older`; 0 = none. kFull.
Result<std::uint32_t> write_discarded(shm::Transaction& transaction,
                                      const std::vector<std::uint32_t>& refs, std::uint32_t older);

/// Releases up to `blocks` discarded blocks; true when none are left. kFull, kCorrupt.
Result<bool> dismantle_discarded(Draft& draft, std::size_t blocks);

}  // namespace pando::zone
