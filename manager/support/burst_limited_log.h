#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "manager/support/token_bucket.h"

namespace pando::manager {

/// Limits log lines that come in bursts, and of which each is wanted: so many a second, and more
/// after a pause. RateLimitedLog is for lines of which one tells enough.
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

}  // namespace pando::manager
