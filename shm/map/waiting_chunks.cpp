#include "shm/map/waiting_chunks.h"

#include <algorithm>
#include <utility>

namespace pando::shm {

std::vector<std::uint32_t> WaitingChunks::release(const Holds& holds) {
  std::vector<std::uint32_t> freed;
  for (auto bucket = held_.begin(); bucket != held_.end();) {
    if (std::binary_search(holds.exact.begin(), holds.exact.end(), bucket->first)) {
      ++bucket;
      continue;
    }
    const std::vector<Chunk> chunks = std::move(bucket->second);
    bucket = held_.erase(bucket);
    for (const Chunk& chunk : chunks) free_or_hold(chunk, holds, freed);
  }
  while (!unsorted_.empty() && unsorted_.front().freed_at <= holds.oldest_batch) {
    free_or_hold(unsorted_.front(), holds, freed);
    unsorted_.pop_front();
  }
  return freed;
}

/// A version w refers to the chunk when born <= w < freed_at. The smallest held version not below
/// `born` decides; the chunk is checked again when that version is dropped.
void WaitingChunks::free_or_hold(const Chunk& chunk, const Holds& holds,
                                 std::vector<std::uint32_t>& freed) {
  const auto holder = std::lower_bound(holds.exact.begin(), holds.exact.end(), chunk.born);
  if (holder != holds.exact.end() && *holder < chunk.freed_at)
    held_[*holder].push_back(chunk);
  else
    freed.push_back(chunk.number);
}

std::size_t WaitingChunks::held_by(std::uint64_t version) const {
  const auto bucket = held_.find(version);
  return bucket == held_.end() ? 0 : bucket->second.size();
}

std::size_t WaitingChunks::held() const noexcept {
  std::size_t sum = 0;
  for (const auto& [version, chunks] : held_) sum += chunks.size();
  return sum;
}

}  // namespace pando::shm
