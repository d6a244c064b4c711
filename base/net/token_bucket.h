#pragma once

#include <algorithm>
#include <cstdint>

namespace pando {

/// Limits events to a rate per second, with a burst after a pause. Times are milliseconds of any
/// clock that does not go back.
class TokenBucket {
 public:
  TokenBucket(std::uint32_t per_second, std::uint32_t burst)
      : interval_us_(1'000'000 / per_second), slack_us_(interval_us_ * (burst - 1)) {}

  /// Whether an event may happen now; if so, the event is counted.
  bool take(std::uint64_t now_ms) noexcept {
    if (next_ms() > now_ms) return false;
    next_us_ = std::max(next_us_, now_ms * 1000) + interval_us_;
    return true;
  }
  /// The time when take() succeeds again.
  [[nodiscard]] std::uint64_t next_ms() const noexcept {
    return next_us_ > slack_us_ ? (next_us_ - slack_us_ + 999) / 1000 : 0;
  }

 private:
  std::uint64_t interval_us_;
  std::uint64_t slack_us_;
  std::uint64_t next_us_ = 0;  // when the next event would be due if they came evenly
};

}  // namespace pando
