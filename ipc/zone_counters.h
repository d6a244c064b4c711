#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dns/name.h"

/// Counters of single zones: those of the manager (shm/counts/zone_counts.h) and those of a worker
/// (shm::SlotPage::transfers), and the key under which both count a zone.
namespace pando::ipc {

/// The manager's.
enum class ZoneCounter : std::uint8_t {
  kUpdatesAccepted,      ///< answered NOERROR
  kUpdatesPrerequisite,  ///< a prerequisite was not met
  kUpdatesRefused,       ///< refused for another reason
  kUpdatesFailed,        ///< SERVFAIL
  kUpdatesForwarded,     ///< a primary answered
  kTransfersInAxfr,
  kTransfersInIxfr,
  kRefreshesFailed,  ///< of a primary: no answer, a bad one, or a failed transfer
  kEnd
};

/// A worker's.
enum class ZoneTransfer : std::uint8_t {
  kAxfr,     ///< sent to the end
  kIxfr,     ///< sent to the end
  kCurrent,  ///< the client's version is up to date, or its answer did not fit a datagram
  kFailed,   ///< begun and not finished
  kEnd
};

/// A zone's key, the same for all spellings of its name; never 0. A key stays the zone's over all
/// restarts, and when the zone leaves and comes back.
[[nodiscard]] inline std::uint64_t zone_count_key(dns::NameView zone) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const std::uint8_t octet : zone.bytes()) {
    const bool upper = octet >= 'A' && octet <= 'Z';
    hash = (hash ^ (upper ? octet + std::uint64_t{32} : octet)) * 0x100000001B3;
  }
  // The low bits choose the row: mixed by the finish of MurmurHash3.
  hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCD;
  hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53;
  hash ^= hash >> 33;
  return hash == 0 ? 1 : hash;
}

}  // namespace pando::ipc
