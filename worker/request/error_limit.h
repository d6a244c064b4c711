#pragma once

#include <cstdint>

namespace pando::worker {

/// Bounds error responses over UDP: a flood of garbage with forged senders must not become a flood
/// of answers to them. Always on, beside the rate limits of the configuration (RateLimiter). RFC 8906 §3 requires an answer to each query; ordinary clients
/// never get near the bound. One bucket a worker, filled once a second.
class ErrorLimit {
 public:
  static constexpr std::uint32_t kPerSecond = 4000;

  /// Returns true when an error may be sent in second `now`, and counts that error.
  bool allow(std::uint64_t now) noexcept {
    if (now != second_) {
      second_ = now;
      sent_ = 0;
    }
    return sent_++ < kPerSecond;
  }

 private:
  std::uint64_t second_ = 0;
  std::uint32_t sent_ = 0;
};

}  // namespace pando::worker
