#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace pando::http {

/// A token bucket: so many requests per second, and a burst.
class RequestRate {
 public:
  using Clock = std::chrono::steady_clock;
  RequestRate(std::uint32_t per_second, std::uint32_t burst) noexcept
      : per_second_(per_second), burst_(burst), tokens_(burst) {}

  /// Whether one more request may be handled at `now`.
  [[nodiscard]] bool take(Clock::time_point now) noexcept {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    tokens_ = std::min(burst_, tokens_ + std::max(seconds, 0.0) * per_second_);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double per_second_;
  double burst_;
  double tokens_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace pando::http
