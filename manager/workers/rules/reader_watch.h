#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "manager/workers/rules/pin_watch.h"
#include "shm/slots.h"

namespace pando::manager {

/// Finds the workers that must be ended because of what the pages of their slots show: a cut-off
/// page, a version held for too long, or memory that others need. A worker may forge its page, so
/// the times are this process's own.
class ReaderWatch {
 public:
  using Clock = PinWatch::Clock;
  enum class Verdict : std::uint8_t { kHealthy, kDamaged, kStuck };

  /// `slots` must outlive this object.
  explicit ReaderWatch(shm::SlotTable& slots) noexcept : slots_(slots) {}

  /// Looks at the slot of a live process; call it about once a second. `current` is the version
  /// that is not superseded; 0: the versions of its store do not compare with ours.
  Verdict check(std::uint32_t slot, Clock::time_point now, std::chrono::milliseconds pin_time,
                std::uint64_t current);

  struct Holders {
    std::uint64_t version = 0;
    std::vector<std::uint32_t> overdue{};  ///< slots whose workers have had their grace
  };
  /// Asks back the leases on the oldest version below `before` that one of `readers` holds. A later
  /// call names those that hold it still after OldestHold's grace.
  Holders release_oldest(std::span<const std::uint32_t> readers, std::uint64_t before,
                         Clock::time_point now, bool urgent);

  /// The slot's process has ended.
  void forget(std::uint32_t slot) { pins_.erase(slot); }

 private:
  shm::SlotTable& slots_;
  std::map<std::uint32_t, PinWatch> pins_;
  OldestHold oldest_;
};

}  // namespace pando::manager
