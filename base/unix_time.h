#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace pando {

/// Seconds since 1970 by the host's clock, which may be put back.
inline std::uint64_t unix_seconds() noexcept {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

inline std::uint64_t unix_milliseconds() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace pando
