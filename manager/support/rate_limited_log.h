#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "ipc/log.h"
#include "base/net/token_bucket.h"

namespace pando::manager {

/// Limits log lines about events whose number others choose: one line a second, or one a `pause`.
class RateLimitedLog {
 public:
  static constexpr std::uint64_t kPause = 1000;  ///< milliseconds

  explicit constexpr RateLimitedLog(std::uint64_t pause = kPause) noexcept : pause_(pause) {}

  /// Counts one event at `now_ms`, of a clock that does not go back. When a line is due, returns
  /// the number of events for which the line stands.
  std::optional<std::uint64_t> one_more(std::uint64_t now_ms) noexcept {
    ++untold_;
    if (next_ > now_ms) return std::nullopt;
    next_ = now_ms + pause_;
    return std::exchange(untold_, 0);
  }

 private:
  std::uint64_t pause_;
  std::uint64_t next_ = 0;  // when the next line may be written
  std::uint64_t untold_ = 0;
};

/// Limits log lines that come in bursts, and of which each is wanted: so many a second, and more
/// after a pause. RateLimitedLog is for lines of which one is enough.
class BurstLimitedLog {
 public:
  BurstLimitedLog(std::uint32_t per_second, std::uint32_t burst) : pace_(per_second, burst) {}

  /// Counts one event at `now_ms`, of a clock that does not go back. When its line may be written,
  /// returns how many were left out since the last one.
  std::optional<std::uint64_t> one_more(std::uint64_t now_ms) noexcept {
    if (pace_.take(now_ms)) return std::exchange(left_out_, 0);
    ++left_out_;
    return std::nullopt;
  }

 private:
  TokenBucket pace_;
  std::uint64_t left_out_ = 0;
};

/// Limits log lines of one kind about single zones. After the first kMaxLines lines, further ones
/// are at debug level: a million zones with one problem must not fill the disk.
class LogLimit {
 public:
  static constexpr std::uint64_t kMaxLines = 1000;

  log::Level level_of_next(log::Level level) noexcept {
    return count_++ < kMaxLines ? level : log::Level::kDebug;
  }
  [[nodiscard]] std::uint64_t left_out() const noexcept {
    return count_ > kMaxLines ? count_ - kMaxLines : 0;
  }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace pando::manager
