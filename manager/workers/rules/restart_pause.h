#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace pando::manager {

/// How long a slot waits for its next process. A worker that dies at its first query must not keep
/// a processor busy with starting, but somebody has to answer.
class RestartPause {
 public:
  using Clock = std::chrono::steady_clock;
  using Pause = std::chrono::milliseconds;

  static constexpr Pause kFirst{100};
  static constexpr Pause kLongest{5000};
  /// A worker that served this long was healthy.
  static constexpr std::chrono::seconds kHealthyAfter{10};

  /// This manager starts a process in the slot.
  void process_started(Clock::time_point now) noexcept { started_ = now; }

  /// The slot's process has ended at `now`; `greeted`: it had said Hello. While no worker serves,
  /// the back-off does not apply. A program that does not come as far as its Hello answers nobody,
  /// and pauses a little.
  Pause process_ended(bool greeted, Clock::time_point now, bool others_serve) noexcept {
    const bool healthy = greeted && (count_ == 0 || now - started_ >= kHealthyAfter);
    backoff_ = healthy ? Pause(0) : std::clamp(backoff_ * 2, kFirst, kLongest);
    ++count_;
    if (others_serve) return backoff_;
    return greeted ? Pause(0) : std::min(backoff_, kFirst);
  }

  /// Somebody else has started the slot's next process, and chose the pause.
  void process_replaced() noexcept { ++count_; }

  /// How often the slot has lost its process.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// None after a healthy life, else twice the one before.
  [[nodiscard]] Pause backoff() const noexcept { return backoff_; }

 private:
  std::uint32_t count_ = 0;
  Pause backoff_{0};
  Clock::time_point started_{};
};

}  // namespace pando::manager
