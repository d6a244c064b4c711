#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace pando::manager {

/// Of what others choose the number of, the log gets one line a second, or a `pause`.
class RateLimitedLog {
 public:
  static constexpr std::uint64_t kPause = 1000;  ///< milliseconds

  explicit constexpr RateLimitedLog(std::uint64_t pause = kPause) noexcept : pause_(pause) {}

  /// One more, at `now` (milliseconds since 1970). When a line is due: for how many it stands.
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
