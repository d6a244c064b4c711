#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "shm/slots.h"

/// Reads the workers' pages from a process that is neither manager nor worker, for monitoring.
namespace pando::shm {

/// A copy of what one slot's page showed. Counters are read one by one while the worker counts.
struct SlotCopy {
  std::uint32_t number = 0;
  bool alive = false;  ///< a worker holds the slot
  std::uint32_t pid = 0;
  std::uint64_t started = 0;       ///< seconds since 1970
  std::uint64_t pinned = 0;        ///< version of the current batch; 0 = idle
  std::uint64_t leases = 0;        ///< transfers that hold a version
  std::uint64_t oldest_lease = 0;  ///< version; 0 = none
  std::uint64_t lease_since = 0;   ///< seconds on the coarse monotonic clock; 0 = no lease
  std::array<std::uint64_t, kCountersPerSlot> counters{};
  /// Transfers of single zones, by ipc::ZoneTransfer.
  struct Transfers {
    std::uint64_t key = 0;  ///< the zone (ipc/zone_counters.h)
    std::array<std::uint64_t, std::tuple_size_v<decltype(TransferRow::counters)>> counters{};
  };
  std::vector<Transfers> transfers{};
};

/// All slots in the directory, by number. `store` is a descriptor of the store, on whose locks the
/// slots live. Pages of other layouts, and files that a worker has cut off, are left out. kDenied:
/// the directory is closed to this user. Call install_slot_guard() before.
Result<std::vector<SlotCopy>> copy_slots(const std::string& directory, int store,
                                         std::uint64_t layout);

}  // namespace pando::shm
