#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Decisions about the slots of workers, from facts alone: no process, socket or timer is touched.
namespace pando::manager {

enum class SlotState : std::uint8_t { kStarting, kServing, kDraining, kDead };

/// The part of a slot's state that decisions are made from.
struct SlotFacts {
  std::uint32_t number = 0;
  SlotState state = SlotState::kDead;
  bool has_process = false;  ///< a process is known to be in the slot
  bool connected = false;    ///< the process has said Hello, and its connection stands
  bool awaited = false;      ///< a worker of the last manager that has not said Hello yet
  /// A process that cannot be found or ended holds the slot; another slot has its work.
  bool lost = false;
  /// A worker of another layout serves the slot's sockets until a worker of ours does.
  bool previous_layout = false;
  bool previous_layout_awaited = false;  ///< that worker has not said Hello yet
  bool closes = false;                   ///< the slot's queue is read for the last time
  /// When the slot's next step by time is due: restart, or the end of a deadline.
  std::chrono::steady_clock::time_point next_step{};

  [[nodiscard]] bool draining() const noexcept { return state == SlotState::kDraining; }
};

/// The need of a slot without a process: none, a new worker, or the end of the slot.
enum class SlotNeed : std::uint8_t { kNothing, kWorker, kEnd };

/// The rule that no order of events may break: a wanted slot without a process gets one, a leaving
/// slot without a process ends. Nothing is needed where something is under way that brings a worker
/// or ends the slot. `external`: others start workers.
[[nodiscard]] SlotNeed need_of(const SlotFacts& slot, std::chrono::steady_clock::time_point now,
                               bool external) noexcept;

/// The next step for a slot whose process has ended. `has_remains`: it has sockets, or its worker
/// is missed.
enum class AfterEnd : std::uint8_t {
  kRetire,  ///< the slot leaves once its queue is empty
  kForget,  ///< the slot leaves immediately: an external worker went, without sockets and as it was
            ///< told
  kRestart,  ///< another process is started, after a pause
  kAwait,    ///< the same, by somebody else
};
[[nodiscard]] AfterEnd after_end(const SlotFacts& slot, bool has_remains, bool external) noexcept;

/// No worker of an earlier manager is waited for: the order of the SO_REUSEPORT groups is known.
[[nodiscard]] bool none_awaited(std::span<const SlotFacts> slots) noexcept;

/// The slots to drain until `count` are left; the highest numbers leave. `slots` ascend.
[[nodiscard]] std::vector<std::uint32_t> surplus_slots(std::span<const SlotFacts> slots,
                                                       std::uint32_t count);

/// The slot whose back-off is to be shortened: nobody serves, and nobody comes before `soon`. A
/// back-off was chosen while others served.
[[nodiscard]] std::optional<std::uint32_t> slot_to_hasten(
    std::span<const SlotFacts> slots, std::chrono::steady_clock::time_point soon) noexcept;

}  // namespace pando::manager
