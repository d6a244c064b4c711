#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "dns/name.h"

namespace pando::manager {

/// Progress of the thread that loads a zone. The commit thread may make the thread give up.
struct LoadProgress : Progress {
  using Clock = std::chrono::steady_clock;

  dns::Name zone;
  Clock::time_point start;
  Clock::time_point logged_at;  ///< time of the last log line; commit thread only
};

/// Tells a load at each record whether to give up. The shared flag is read only every few thousand
/// records, which are milliseconds apart.
class GivingUp {
 public:
  /// A null `progress` means that the load is never given up.
  explicit GivingUp(const LoadProgress* progress) noexcept : progress_(progress) {}
  [[nodiscard]] bool at_next_record() noexcept {
    if (++records_ % kRecordsPerCheck == 0) given_up_ = now();
    return given_up_;
  }
  [[nodiscard]] bool now() const noexcept {
    return progress_ != nullptr && progress_->is_given_up();
  }

 private:
  static constexpr std::uint64_t kRecordsPerCheck = 4096;
  const LoadProgress* progress_;
  std::uint64_t records_ = 0;
  bool given_up_ = false;
};

/// Large zones that are being loaded, each by a thread of its own. Lives on the commit thread.
class LoadsUnderWay {
 public:
  /// The zone counts as being loaded for as long as the returned pointer lives.
  std::shared_ptr<LoadProgress> begin(const dns::Name& zone, LoadProgress::Clock::time_point now);
  [[nodiscard]] std::shared_ptr<const LoadProgress> find(dns::NameView zone) const;
  void give_up();
  /// Loads that are due for a line of progress in the log: each load once in ten seconds.
  std::vector<std::shared_ptr<const LoadProgress>> due(LoadProgress::Clock::time_point now);

 private:
  std::vector<std::weak_ptr<LoadProgress>> loads_;  // one per thread, and some that have ended
};

}  // namespace pando::manager
