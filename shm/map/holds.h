#pragma once

#include <cstdint>
#include <vector>

namespace pando::shm {

/// The versions that readers hold at one moment.
struct Holds {
  /// Smallest pin of a batch: chunks that were freed later than this version must stay. UINT64_MAX
  /// = no pin.
  std::uint64_t oldest_batch = UINT64_MAX;
  /// Versions held by leases and by the manager's own pins; the collector sorts them.
  std::vector<std::uint64_t> exact;

  void clear() noexcept {
    oldest_batch = UINT64_MAX;
    exact.clear();
  }
};

}  // namespace pando::shm
