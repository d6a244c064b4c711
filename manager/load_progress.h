#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "dns/name.h"

namespace pando::manager {

/// How far the thread that loads a zone has read its file.
struct LoadProgress {
  using Clock = std::chrono::steady_clock;

  dns::Name zone;
  Clock::time_point start;
  Clock::time_point told;                     ///< commit thread: the last line in the log
  std::atomic<std::uint64_t> file_octets{0};  ///< without what it includes; 0 = not known yet
  std::atomic<std::uint64_t> read_octets{0};  ///< with that

  /// 0 to 100. At 100 the zone is being built, or compared with what is served.
  [[nodiscard]] unsigned percent() const noexcept;
};

/// Zones that are being loaded, each by a thread of its own: the large ones. Lives on the commit
/// thread.
class LoadsUnderWay {
 public:
  /// The zone is one of them while somebody has what is returned.
  std::shared_ptr<LoadProgress> begin(const dns::Name& zone, LoadProgress::Clock::time_point now);
  /// Null: the zone is not being loaded.
  [[nodiscard]] std::shared_ptr<const LoadProgress> find(dns::NameView zone) const;
  /// Those of which the log should say something, each once in ten seconds.
  std::vector<std::shared_ptr<const LoadProgress>> due(LoadProgress::Clock::time_point now);

 private:
  std::vector<std::weak_ptr<LoadProgress>> loads_;  // as many as threads, and some that have ended
};

}  // namespace pando::manager
