#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace pando::manager {

/// Limits the bytes per second of a thread that writes a large file. Unlimited writes
/// monopolize the disk, and each sync of the journal waits for them. Time lost to a slow disk is
/// made up for only up to kSlack, since more would be the very burst.
class WriteRateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  /// The rate of checkpoints, copies and dumps.
  static constexpr std::uint64_t kBytesPerSecond = std::uint64_t{256} << 20;
  /// Sleeps end late; with this slack writers reach their rate nevertheless.
  static constexpr std::chrono::milliseconds kSlack{16};

  explicit WriteRateLimiter(std::uint64_t bytes_per_second,
                            Clock::time_point now = Clock::now()) noexcept
      : bytes_per_second_(bytes_per_second), due_(now) {}

  /// Counts `bytes` written by `now`; returns the time when the next write may begin.
  Clock::time_point take(std::uint64_t bytes, Clock::time_point now) noexcept {
    constexpr std::uint64_t kSecond = 1'000'000;
    const std::chrono::microseconds spent(bytes * kSecond / bytes_per_second_);
    due_ = std::max(due_, now - kSlack) + spent;
    return due_;
  }

  /// To be called after each write, in the writing thread: sleeps until the next write may begin.
  /// `urgent`, which other threads may make true, ends the sleep within kNap.
  template <class Urgent>
  void keep(std::uint64_t bytes, const Urgent& urgent) {
    const Clock::time_point due = take(bytes, Clock::now());
    for (auto now = Clock::now(); now < due && !urgent(); now = Clock::now())
      std::this_thread::sleep_for(std::min<Clock::duration>(kNap, due - now));
  }

 private:
  static constexpr std::chrono::milliseconds kNap{20};

  std::uint64_t bytes_per_second_;
  Clock::time_point due_;
};

}  // namespace pando::manager
