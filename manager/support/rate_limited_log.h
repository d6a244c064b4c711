#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace pando::manager {

/// Limits log lines about events whose number others choose: one line a second, or one a `pause`.
class RateLimitedLog {
 public:
  static constexpr std::uint64_t kPause = 1000;  ///< milliseconds

  explicit constexpr RateLimitedLog(std::uint64_t pause = kPause) noexcept : pause_(pause) {}

  /// Counts one event at `now` (milliseconds since 1970). When a line is due, returns the number of
  /// events for which the line stands.
  std::optional<std::uint64_t> one_more(std::uint64_t now) noexcept {
    ++untold_;
    const bool told_just_now = now >= told_ && now < told_ + pause_;  // a clock may go back
    if (told_just_now) return std::nullopt;
    told_ = now;
    return std::exchange(untold_, 0);
  }

 private:
  std::uint64_t pause_;
  std::uint64_t told_ = 0;
  std::uint64_t untold_ = 0;
};

}  // namespace pando::manager
