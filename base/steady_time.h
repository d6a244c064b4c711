#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace pando {

/// Milliseconds of a clock that is never put back; its beginning has no meaning.
inline std::uint64_t steady_milliseconds() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

/// Milliseconds that have passed, for the log.
inline std::uint64_t milliseconds_since(std::chrono::steady_clock::time_point start) noexcept {
  const auto spent = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(spent).count());
}

/// Processor time of this thread.
inline std::chrono::nanoseconds thread_time() noexcept {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

/// Seconds of that clock as of the kernel's last tick: a read of memory.
inline std::uint64_t coarse_seconds() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec);
}

}  // namespace pando
