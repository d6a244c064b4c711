#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control_results.h"
#include "ipc/zone_counters.h"
#include "shm/inspect/slot_pages.h"

/// The result of one observation of the server. Times are seconds since 1970; 0 = never.
namespace pando::http {

struct StoreFacts {
  std::uint64_t version = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t history_bytes = 0;
  std::uint64_t zones = 0;
};

struct ZoneFacts {
  std::string name;
  bool loaded = false;
  std::uint32_t serial = 0;
  std::uint64_t records = 0;
  std::uint64_t names = 0;
  std::uint64_t history_bytes = 0;
  std::uint64_t data_version = 0;  ///< of the store, that last changed the zone's data
  std::uint64_t refresh_at = 0;
  std::uint64_t last_ok = 0;
  std::uint64_t expires_at = 0;
  std::uint64_t signatures_end = 0;
  bool secondary = false;
  bool has_denial = false;       ///< NSEC or NSEC3: the zone is signed
  std::uint64_t data_bytes = 0;  ///< of the store, without history and snapshots
  std::uint64_t changed_at = 0;  ///< when data_version was made
  std::uint64_t count_key = 0;  ///< of the zone's counters (ipc/zone_counters.h)
  /// Of updates and transfers in, by ipc::ZoneCounter.
  std::array<std::uint64_t, static_cast<std::size_t>(ipc::ZoneCounter::kEnd)> counted{};
  /// By all workers, by ipc::ZoneTransfer.
  std::array<std::uint64_t, static_cast<std::size_t>(ipc::ZoneTransfer::kEnd)> transfers_out{};
};

/// The kernel's view of the sockets at one of the server's addresses.
struct UdpFacts {
  std::string address;
  std::uint64_t drops = 0;
  std::uint64_t queued_bytes = 0;
};

struct ProcessFacts {
  std::string name;  ///< "manager", "worker-0", "http"
  std::uint64_t resident_bytes = 0;
  std::uint64_t private_bytes = 0;  ///< of these: memory that no other process shares
  double cpu_seconds = 0;
};

struct Observed {
  std::vector<shm::SlotCopy> slots{};
  std::uint64_t monotonic = 0;        ///< seconds on the clock of SlotCopy::lease_since
  std::uint64_t milliseconds = 0;     ///< time of the observation, on the monotonic clock
  std::optional<StoreFacts> store{};  ///< none: no store, or one that is still being copied
  std::vector<ZoneFacts> zones{};
  /// Counts of updates and transfers in for which the manager had no room; none: it counts nothing
  /// by zone.
  std::optional<std::uint64_t> uncounted{};
  std::optional<ipc::StatusResult> manager{};  ///< none: the manager did not answer
  std::vector<UdpFacts> udp{};
  std::vector<ProcessFacts> processes{};
  std::vector<std::string> problems{};  ///< reasons why something above is missing
};

/// Number of versions published since the oldest version that the slot holds; `version` is the
/// present one.
[[nodiscard]] inline std::uint64_t version_lag(const shm::SlotCopy& slot,
                                               std::uint64_t version) noexcept {
  std::uint64_t oldest = version;
  for (const std::uint64_t held : {slot.pinned, slot.oldest_lease})
    if (held != 0) oldest = std::min(oldest, held);
  return slot.alive ? version - oldest : 0;
}

}  // namespace pando::http
