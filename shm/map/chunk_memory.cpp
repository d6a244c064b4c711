#include "shm/map/chunk_memory.h"

#include <algorithm>

namespace pando::shm {

ChunkMemory::ChunkMemory(ChunkBacking& backing, HugePageRegions& regions, std::uint32_t limit)
    : backing_(backing), regions_(regions), free_(limit), backed_(limit) {
  free_.set_all();
}

void ChunkMemory::take(std::uint32_t chunk) noexcept {
  free_.reset(chunk);
  if (backed_.test(chunk)) --spare_;
}

void ChunkMemory::give(std::uint32_t chunk) {
  give_known(chunk);
  if (!backed_.test(chunk)) unknown_.push_back(chunk);
}

void ChunkMemory::give_known(std::uint32_t chunk) noexcept {
  free_.set(chunk);
  if (backed_.test(chunk)) ++spare_;
}

Status ChunkMemory::grow(std::uint32_t wanted, const SpacePolicy& space) {
  for (std::uint32_t from = 0; spare_ < wanted;) {
    const std::uint32_t first = free_.find_only(backed_, from);
    if (first == Bitmap::kNone) return {};  // all have memory; the caller checks what is left
    const std::uint32_t aim = std::max(space.growth(spare_), wanted - spare_);
    std::uint32_t count = 1;
    while (count < aim && first + count < free_.size() && free_.test(first + count) &&
           !backed_.test(first + count))
      ++count;
    auto backed = back(first, count);
    if (!backed && count > 1) backed = back(first, 1);
    if (!backed) return backed;
    from = first;
  }
  return {};
}

std::uint32_t ChunkMemory::find(std::uint32_t count) const noexcept {
  if (count != 1) return free_.find_run(count);
  const std::uint32_t ready = free_.find_both(backed_, 0);
  return ready != Bitmap::kNone ? ready : free_.find_set(0);
}

Status ChunkMemory::back(std::uint32_t first, std::uint32_t count) {
  const std::uint32_t end = first + count;
  for (std::uint32_t at = first; at < end;) {
    if (backed_.test(at)) {
      ++at;
      continue;
    }
    std::uint32_t stop = at + 1;
    while (stop < end && !backed_.test(stop)) ++stop;
    if (auto backed = backing_.back(at, stop - at); !backed) return backed;
    spare_ += stop - at;
    for (; at < stop; ++at) backed_.set(at);
  }
  return {};
}

void ChunkMemory::punch_unknown() {
  std::sort(unknown_.begin(), unknown_.end());
  for (std::size_t i = 0; i < unknown_.size();) {
    std::size_t end = i + 1;
    while (end < unknown_.size() && unknown_[end] == unknown_[end - 1] + 1) ++end;
    punch(unknown_[i], static_cast<std::uint32_t>(end - i));
    i = end;
  }
  unknown_.clear();
}

void ChunkMemory::trim(std::uint32_t keep) {
  if (spare_ > kMaxTrimmed) keep = std::max(keep, spare_ - kMaxTrimmed);
  std::uint32_t end = free_.size();
  while (spare_ > keep) {
    const std::uint32_t last = free_.find_last_both(backed_, end);
    if (last == Bitmap::kNone) return;
    std::uint32_t first = last;
    while (first > 0 && spare_ - (last - first + 1) > keep && free_.test(first - 1) &&
           backed_.test(first - 1))
      --first;
    if (!punch(first, last - first + 1)) return;
    for (std::uint32_t chunk = first; chunk <= last; ++chunk) backed_.reset(chunk);
    spare_ -= last - first + 1;
    end = first;
  }
}

/// A region that loses a chunk's memory has lost its huge page, too.
bool ChunkMemory::punch(std::uint32_t first, std::uint32_t count) noexcept {
  regions_.split(first, count);
  return backing_.punch(first, count);
}

}  // namespace pando::shm
