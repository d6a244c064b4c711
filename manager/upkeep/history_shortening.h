#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dns/name.h"

namespace pando::manager {

/// Decides when the histories of all zones are shortened, and how far the walk over the zones has
/// come.
class HistoryShortening {
 public:
  /// Bytes that all histories may take.
  void set_limit(std::uint64_t bytes) noexcept { limit_ = bytes; }

  /// Whether histories of `bytes` in total are too large.
  [[nodiscard]] bool exceeds(std::uint64_t bytes) const noexcept {
    return bytes > std::max(limit_, needed_);
  }
  [[nodiscard]] bool is_walking() const noexcept { return walking_; }
  void begin_walk(std::uint64_t bytes) noexcept {
    walking_ = true;
    before_ = bytes;
  }
  /// The next step begins after this zone.
  [[nodiscard]] const dns::Name& cursor() const noexcept { return cursor_; }
  /// Zones that the next step shortens.
  [[nodiscard]] std::size_t zones_per_step() const noexcept { return zones_; }
  void step_done(const dns::Name& cursor) {
    cursor_ = cursor;
    zones_ = std::min(zones_ * 2, kZonesPerStep);
  }
  /// Space was too low for so many zones.
  void step_failed() noexcept { zones_ = std::max<std::size_t>(zones_ / 2, 1); }
  /// Snapshots keep the histories that they need. After a fruitless walk, another one waits until
  /// the histories have grown by an eighth.
  void end_walk(std::uint64_t bytes) noexcept {
    walking_ = false;
    needed_ = bytes < before_ ? 0 : bytes + bytes / 8;
  }

 private:
  static constexpr std::size_t kZonesPerStep = 8;

  std::uint64_t limit_ = UINT64_MAX;
  std::uint64_t before_ = 0;  // bytes at the start of the walk
  std::uint64_t needed_ = 0;  // by snapshots, as of the last walk; or 0
  bool walking_ = false;
  dns::Name cursor_;  // histories are shortened up to this zone
  std::size_t zones_ = kZonesPerStep;
};

}  // namespace pando::manager
