#pragma once

#include <cstdint>

namespace pando::manager {

/// Decides how a remote is tried that may not be there. For some time after news it is probed: one
/// NOTIFY at a time, whose datagram is repeated until an answer comes. A remote that comes up then
/// hears of the news within a second. A remote that is away for long is tried by its zones' pauses
/// alone. No clock: times are in milliseconds of any monotonic clock.
class RemotePresence {
 public:
  struct Options {
    std::uint64_t probe_time = 30'000;  ///< how long the remote is probed after news; 0: never
    /// The next probes begin no earlier after the last ones began, unless there was an answer.
    std::uint64_t rest = 600'000;
  };
  explicit RemotePresence(Options options) : options_(options) {}

  /// The remote is to hear of something at `when`.
  void news(std::uint64_t when) noexcept {
    if (!is_there_) begin(when);
  }
  /// The remote has answered. True: the last try had no answer.
  bool answered() noexcept {
    rest_until_ = 0;
    const bool was_silent = is_silent();
    is_there_ = was_tried_ = true;
    return was_silent;
  }
  void unanswered(std::uint64_t now) noexcept {
    if (is_there_) begin(now);
    is_there_ = false;
    was_tried_ = true;
  }
  /// The remote has asked for something.
  void seen() noexcept { is_there_ = true; }

  /// The last try had no answer, and the remote has asked for nothing since.
  [[nodiscard]] bool is_silent() const noexcept { return was_tried_ && !is_there_; }
  /// Nobody knows whether the remote is there, and it is to be probed.
  [[nodiscard]] bool is_probed(std::uint64_t now) const noexcept {
    return !is_there_ && now < probe_until_;
  }

 private:
  void begin(std::uint64_t when) noexcept {
    if (when < rest_until_) return;
    probe_until_ = when + options_.probe_time;
    rest_until_ = when + options_.rest;
  }

  Options options_;
  bool is_there_ = false;
  bool was_tried_ = false;
  std::uint64_t probe_until_ = 0;
  std::uint64_t rest_until_ = 0;
};

}  // namespace pando::manager
