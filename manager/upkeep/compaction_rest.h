#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "shm/map/reserve.h"
#include "shm/store.h"

namespace pando::manager {

/// Compaction begins at this share of garbage in the chunks in use. Then the bytes copied are less
/// than five times the bytes freed.
inline constexpr unsigned kGarbagePercent = 20;
/// Compaction empties chunks with a live share below this.
inline constexpr unsigned kVictimPercent = 85;

/// The garbage in the chunks in use. Chunks that wait for readers cannot be freed yet, and chunks
/// lent to a zone under construction hold none. Counting either would cause one fruitless walk
/// after another.
struct StoreGarbage {
  std::uint64_t used = 0;     ///< chunks in use
  std::uint64_t chunks = 0;   ///< whole chunks' worth of garbage in them
  std::uint64_t percent = 0;  ///< garbage as a share of `used`
  std::uint64_t bytes = 0;
  std::uint64_t free = 0;   ///< chunks below the limit that are not in use
  std::uint64_t slack = 1;  ///< changes by fewer chunks than this justify no other walk

  static StoreGarbage of(const shm::StoreStats& stats) noexcept {
    // With low space another walk waits until this part of the free space beyond the reserve has
    // changed: the search for chunks is a pass over all of them.
    constexpr std::uint64_t kSlackPart = 16;
    const std::uint64_t elsewhere = stats.waiting_chunks + stats.lent_chunks;
    const std::uint64_t chunks = stats.chunks_in_use - std::min(stats.chunks_in_use, elsewhere);
    const std::uint64_t bytes = chunks * shm::kChunkBytes;
    const std::uint64_t limit = stats.limit_bytes / shm::kChunkBytes;
    const std::uint64_t free = limit - std::min(limit, stats.chunks_in_use);
    // Inside the reserve a delete may be waiting for any single chunk, so the slack is one chunk
    // there. Elsewhere the slack is a part of the space before the reserve, so that reaching the
    // reserve always counts as a change.
    const std::uint64_t beyond = free - std::min(free, shm::reserve_chunks(limit));
    const std::uint64_t slack = std::max<std::uint64_t>(beyond / kSlackPart, 1);
    if (bytes <= stats.live_bytes) return {chunks, 0, 0, 0, free, slack};
    const std::uint64_t dead = bytes - stats.live_bytes;
    return {chunks, dead / shm::kChunkBytes, dead * 100 / bytes, dead, free, slack};
  }
};

/// Tells compaction to rest while another walk through the store could gain nothing.
class CompactionRest {
 public:
  void begin_walk(const StoreGarbage& now) noexcept { before_ = now; }
  /// True when the walk has freed chunks. Small gains of single walks add up in the chunk being
  /// filled, so only many walks without a freed chunk lead to a rest.
  bool end_walk(const StoreGarbage& now) noexcept {
    constexpr unsigned kWalksInVain = 32;
    const bool gained = now.used < before_.used;
    in_vain_ = gained ? 0 : in_vain_ + 1;
    since_.reset();
    if (in_vain_ >= kWalksInVain) {
      in_vain_ = 0;
      since_ = now;
    }
    return gained;
  }
  /// Rests from now on: no chunk is worth a walk.
  void begin(const StoreGarbage& now) noexcept { since_ = now; }
  /// Whether nothing has changed since the rest began that a walk could gain from.
  [[nodiscard]] bool goes_on(const StoreGarbage& now) const noexcept {
    if (!since_) return false;
    const std::uint64_t slack = since_->slack;
    const auto same = [](std::uint64_t a, std::uint64_t b, std::uint64_t within) {
      return std::max(a, b) - std::min(a, b) < within;
    };
    return same(now.used, since_->used, slack) && same(now.free, since_->free, slack) &&
           same(now.bytes, since_->bytes, slack * shm::kChunkBytes);
  }

 private:
  StoreGarbage before_;
  unsigned in_vain_ = 0;               // walks in a row
  std::optional<StoreGarbage> since_;  // the state at which a walk, or several, gained nothing
};

}  // namespace pando::manager
