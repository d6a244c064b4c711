#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace pando::manager {

/// So many bytes a second for a thread that writes a large file: what is written as fast as it
/// goes leaves the disk to nobody else, and each sync of the journal waits behind it. Time that the
/// disk took is not made up for, but for kSlack: that would be the very burst.
class WriteRateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  /// Of checkpoints, copies and dumps.
  static constexpr std::uint64_t kBytesPerSecond = std::uint64_t{256} << 20;
  /// Writers, whose sleeps end late, reach their pace with it.
  static constexpr std::chrono::milliseconds kSlack{16};

  explicit WriteRateLimiter(std::uint64_t bytes_per_second,
                            Clock::time_point now = Clock::now()) noexcept
      : bytes_per_second_(bytes_per_second), due_(now) {}

  /// `bytes` are written by `now`; returns when the next may be.
  Clock::time_point take(std::uint64_t bytes, Clock::time_point now) noexcept {
    constexpr std::uint64_t kSecond = 1'000'000;
    const std::chrono::microseconds spent(bytes * kSecond / bytes_per_second_);
    due_ = std::max(due_, now - kSlack) + spent;
    return due_;
  }

  /// After each write, in the writing thread: sleeps as long as it is ahead. `urgent`, which other
  /// threads may make true, ends that within kNap.
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
