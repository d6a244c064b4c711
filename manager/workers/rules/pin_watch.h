#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "shm/slots.h"

namespace pando::manager {

/// Since when a reader has held superseded versions, by the checks of this process alone. A version
/// that is superseded cannot be pinned anew, so what is held never gets older. Hence a hold of
/// version v counts from the first check that found v or a newer superseded version as the oldest
/// one held. A reader cannot begin its time again by showing other versions, or none, in between.
class HoldHistory {
 public:
  using Clock = std::chrono::steady_clock;

  /// Notes that `version` is the oldest one held; returns for how long the hold counts. Times may
  /// be too long by a 1,024th of `limit`, and need not be right beyond it.
  Clock::duration note(std::uint64_t version, Clock::time_point now,
                       std::chrono::milliseconds limit);
  void clear() noexcept { seen_.clear(); }

 private:
  struct Seen {
    std::uint64_t version;
    Clock::time_point since;
  };
  std::vector<Seen> seen_;  // versions and times ascend
};

/// Rates one worker by its slot page: a reader that holds a version for too long keeps memory from
/// being reused. Leases are asked back first; what does not let go is to be ended by force.
class PinWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Grace for a revoked lease: a worker checks at each message border.
  static constexpr std::chrono::seconds kRevokeGrace{10};

  /// Looks at the page at `now` (call it about once a second). True: the worker must be killed.
  /// `current` is the version that is not superseded. A worker can forge its page, so only our own
  /// times of superseded versions count.
  bool overdue(shm::SlotPage& page, Clock::time_point now, std::chrono::milliseconds pin_time,
               std::uint64_t current);

  /// Asks back every lease on a version at or below `epoch`.
  static void revoke_up_to(shm::SlotPage& page, std::uint64_t epoch) noexcept;
  /// Oldest epoch that pin or leases of the page hold; UINT64_MAX: none.
  static std::uint64_t oldest(const shm::SlotPage& page) noexcept;

 private:
  bool pin_overdue(const shm::SlotPage& page, Clock::time_point now,
                   std::chrono::milliseconds pin_time);

  bool memory_overdue(shm::SlotPage& page, Clock::time_point now,
                      std::chrono::milliseconds pin_time, std::uint64_t current);

  HoldHistory holds_;
  std::uint64_t epoch_ = 0;     // of the pin as last seen
  std::uint64_t progress_ = 0;  // batches then
  Clock::time_point since_{};
};

/// Time since the holder of the oldest version was asked to release it, while too much memory
/// waits.
class OldestHold {
 public:
  using Clock = PinWatch::Clock;

  /// Grace for a worker to release a version, and the grace when memory runs out meanwhile.
  static constexpr std::chrono::seconds kGrace{10};
  static constexpr std::chrono::milliseconds kUrgentGrace{100};

  /// True: kill the holder of `epoch`, the oldest one that is held at `now`. The grace starts again
  /// then, as a process takes some time to end.
  bool overdue(std::uint64_t epoch, Clock::time_point now, bool urgent);

 private:
  HoldHistory asked_;
};

}  // namespace pando::manager
