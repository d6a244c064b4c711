#pragma once

#include <chrono>
#include <cstdint>

#include "shm/slots.h"

namespace pando::manager {

/// Judges one worker by its slot page: a reader that holds a version for too long keeps memory from
/// being reused. Leases are asked back first; what does not let go is to be ended by force.
class PinWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long a revoked lease may still stand: a worker looks at each message border.
  static constexpr std::chrono::seconds kRevokeGrace{10};

  /// Looks at the page at `now` (call it about once a second). True: the worker must be killed.
  bool overdue(shm::SlotPage& page, Clock::time_point now, std::chrono::milliseconds pin_time);

  /// Asks back every lease on a version at or below `epoch`.
  static void revoke_up_to(shm::SlotPage& page, std::uint64_t epoch) noexcept;
  /// Oldest epoch that pin or leases of the page hold; UINT64_MAX: none.
  static std::uint64_t oldest(const shm::SlotPage& page) noexcept;

 private:
  bool pin_overdue(const shm::SlotPage& page, Clock::time_point now,
                   std::chrono::milliseconds pin_time);

  std::uint64_t epoch_ = 0;     // of the pin as last seen
  std::uint64_t progress_ = 0;  // batches then
  Clock::time_point since_{};
};

/// How long whoever holds the oldest version has been asked for it, while too much memory waits.
class OldestHold {
 public:
  using Clock = PinWatch::Clock;

  /// Who is asked to let go of a version looks at each message's border; so long it may take, and
  /// so long when memory runs away meanwhile.
  static constexpr std::chrono::seconds kGrace{10};
  static constexpr std::chrono::milliseconds kUrgentGrace{100};

  /// True: who holds `epoch`, the oldest one that is held at `now`, must be killed. That has its
  /// time again from then on, as a process takes some to end.
  bool overdue(std::uint64_t epoch, Clock::time_point now, bool urgent);

 private:
  std::uint64_t epoch_ = 0;
  Clock::time_point since_{};
};

}  // namespace pando::manager
