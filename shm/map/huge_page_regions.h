#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/map/bitmap.h"

namespace pando::shm {

/// The regions of chunks for which a huge page was requested, each once. Not thread-safe, except
/// for collapse() and given().
class HugePageRegions {
 public:
  explicit HugePageRegions(std::uint32_t chunks);

  /// Regions of the chunks [from, end) without a free chunk for which no huge page was requested
  /// yet. They count as requested from now on.
  std::vector<std::uint32_t> pick_full(std::uint32_t from, std::uint32_t end, const Bitmap& free,
                                       std::size_t most);
  void note_asked(std::uint32_t region) noexcept { asked_.set(region); }
  /// The chunks lose their memory: huge pages can be requested for their regions again.
  void split(std::uint32_t first, std::uint32_t count) noexcept;

  /// Asks the kernel for a huge page at `start`; false when there is none. Half a millisecond of
  /// copying, so no lock may be held. Any thread.
  bool collapse(std::byte* start) noexcept;
  /// Huge pages that the kernel has given.
  [[nodiscard]] std::uint64_t given() const noexcept {
    return given_.load(std::memory_order_relaxed);
  }

 private:
  Bitmap asked_;
  std::atomic<std::uint64_t> given_ = 0;
};

}  // namespace pando::shm
