#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "dns/name.h"

namespace pando::manager {

/// How far the thread that loads a zone has come; given up by the commit thread.
struct LoadProgress : Progress {
  using Clock = std::chrono::steady_clock;

  dns::Name zone;
  Clock::time_point start;
  Clock::time_point told;  ///< commit thread: the last line in the log
};

/// Asked for each record of a load, looks whether it is given up every few thousand of them:
/// milliseconds apart.
class GivingUp {
 public:
  /// `progress` may be null: then it never is.
  explicit GivingUp(const LoadProgress* progress) noexcept : progress_(progress) {}
  [[nodiscard]] bool at_next_record() noexcept {
    if (++records_ % kRecordsPerLook == 0) given_up_ = now();
    return given_up_;
  }
  [[nodiscard]] bool now() const noexcept {
    return progress_ != nullptr && progress_->is_given_up();
  }

 private:
  static constexpr std::uint64_t kRecordsPerLook = 4096;
  const LoadProgress* progress_;
  std::uint64_t records_ = 0;
  bool given_up_ = false;
};

/// Zones that are being loaded, each by a thread of its own: the large ones. Lives on the commit
/// thread.
class LoadsUnderWay {
 public:
  /// The zone is one of them while somebody has what is returned.
  std::shared_ptr<LoadProgress> begin(const dns::Name& zone, LoadProgress::Clock::time_point now);
  /// Null: the zone is not being loaded.
  [[nodiscard]] std::shared_ptr<const LoadProgress> find(dns::NameView zone) const;
  void give_up();
  /// Those of which the log should say something, each once in ten seconds.
  std::vector<std::shared_ptr<const LoadProgress>> due(LoadProgress::Clock::time_point now);

 private:
  std::vector<std::weak_ptr<LoadProgress>> loads_;  // as many as threads, and some that have ended
};

}  // namespace pando::manager
