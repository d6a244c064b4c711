#include "shm/map/huge_page_regions.h"

#include <sys/mman.h>

#include "shm/map/chunk.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; Debian 12's C library does not name it yet
#endif

namespace pando::shm {

HugePageRegions::HugePageRegions(std::uint32_t chunks) : asked_(chunks / kChunksPerRegion + 1) {}

std::vector<std::uint32_t> HugePageRegions::pick_full(std::uint32_t from, std::uint32_t end,
                                                      const Bitmap& free, std::size_t most) {
  std::vector<std::uint32_t> regions;
  const std::uint32_t start = (from + kChunksPerRegion - 1) / kChunksPerRegion;
  for (std::uint32_t region = asked_.find_clear(start); region != Bitmap::kNone;
       region = asked_.find_clear(region + 1)) {
    const std::uint32_t first = region * kChunksPerRegion;
    if (first + kChunksPerRegion > end || regions.size() >= most) break;
    const std::uint32_t empty = free.find_set(first);
    if (empty != Bitmap::kNone && empty < first + kChunksPerRegion) continue;
    asked_.set(region);
    regions.push_back(region);
  }
  return regions;
}

void HugePageRegions::split(std::uint32_t first, std::uint32_t count) noexcept {
  for (std::uint32_t chunk = first; chunk < first + count; ++chunk)
    asked_.reset(chunk / kChunksPerRegion);
}

bool HugePageRegions::collapse(std::byte* start) noexcept {
  if (::madvise(start, kHugePage, MADV_COLLAPSE) != 0) return false;
  given_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace pando::shm
