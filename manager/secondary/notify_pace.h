#pragma once

#include <algorithm>
#include <cstdint>

namespace pando::manager {

/// Spreads refreshes that unsigned NOTIFYs ask for. Anybody can send such NOTIFYs in the name of a
/// primary, and each costs the primary a query or a connection.
class NotifyPace {
 public:
  static constexpr std::uint64_t kPerSecond = 200;
  static constexpr std::uint64_t kBurst = 1000;

  /// The second in which another refresh could begin. `now` is in seconds of a clock that does not
  /// go back.
  [[nodiscard]] std::uint64_t next(std::uint64_t now) const noexcept {
    constexpr std::uint64_t kBurstTime = kBurst * 1000 / kPerSecond;
    const std::uint64_t at = counted(now);
    return std::max(now * 1000, at > kBurstTime ? at - kBurstTime : 0) / 1000;
  }
  /// The same, of a refresh that will begin then.
  std::uint64_t take(std::uint64_t now) noexcept {
    const std::uint64_t second = next(now);
    at_ms_ = counted(now);
    return second;
  }

 private:
  [[nodiscard]] std::uint64_t counted(std::uint64_t now) const noexcept {
    return std::max(at_ms_, now * 1000) + 1000 / kPerSecond;
  }

  std::uint64_t at_ms_ = 0;  // when the last one would be due if there were no bursts
};

}  // namespace pando::manager
