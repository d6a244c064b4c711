#pragma once

#include <algorithm>
#include <chrono>

namespace pando::manager {

/// How long a slot waits for its next process. A worker that dies at its first query must not keep
/// a processor busy with starting, but somebody has to answer.
class RestartPause {
 public:
  using Clock = std::chrono::steady_clock;
  using Pause = std::chrono::milliseconds;

  static constexpr Pause kFirst{100};
  static constexpr Pause kLongest{5000};
  /// A worker that served this long was healthy.
  static constexpr std::chrono::seconds kHealthyAfter{10};

  /// The life of the process that has just ended.
  struct Life {
    bool greeted = false;  ///< it has said Hello
    bool first = false;    ///< the slot's first process
    Clock::time_point started;
    Clock::time_point ended;
  };

  /// The back-off after `life`: none after a healthy life, else twice the last one.
  [[nodiscard]] static Pause backoff(Pause last, const Life& life) {
    const bool healthy = life.greeted && (life.first || life.ended - life.started >= kHealthyAfter);
    return healthy ? Pause(0) : std::clamp(last * 2, kFirst, kLongest);
  }
  /// While no worker serves, the back-off does not apply. A program that does not come as far as
  /// its Hello answers nobody, and pauses a little.
  [[nodiscard]] static Pause wait(Pause backoff, const Life& life, bool others_serve) {
    if (others_serve) return backoff;
    return life.greeted ? Pause(0) : std::min(backoff, kFirst);
  }
};

}  // namespace pando::manager
