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

  /// The second in which the refresh may begin; `now` is in seconds.
  std::uint64_t due(std::uint64_t now) noexcept {
    const std::uint64_t now_ms = now * 1000;
    at_ms_ = std::max(at_ms_, now_ms) + 1000 / kPerSecond;
    return std::max(now_ms, at_ms_ - kBurst * 1000 / kPerSecond) / 1000;
  }

 private:
  std::uint64_t at_ms_ = 0;  // when the last one would be due if there were no bursts
};

}  // namespace pando::manager
