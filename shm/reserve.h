#pragma once

#include <algorithm>
#include <cstdint>

#include "shm/store.h"

namespace pando::shm {

/// Of the reserve not even compaction takes these: what gives blocks back without moving any, and
/// each version's root block, find room for themselves when compaction finds none.
inline constexpr std::uint64_t kLastChunks = 1;

/// Chunks of a store of `limit` chunks that additions leave alone, so that deletes and compaction
/// work when it is full: 1 %, at most 64 MiB; of a small store a sixteenth, up to sixteen chunks,
/// as compaction has to find room for what it moves before it gives anything back; and the last
/// ones.
[[nodiscard]] constexpr std::uint64_t reserve_chunks(std::uint64_t limit) noexcept {
  constexpr std::uint64_t kLeast = 2;  // one small update with its root block can need two
  constexpr std::uint64_t kEnough = 16;
  constexpr std::uint64_t kMost = (std::uint64_t{64} << 20) / kChunkBytes;
  return std::clamp(limit / 100, std::clamp(limit / 16, kLeast, kEnough), kMost) + kLastChunks;
}

/// The part of the reserve that deletes leave to compaction: they make garbage, which only
/// compaction turns into room.
[[nodiscard]] constexpr std::uint64_t compaction_chunks(std::uint64_t limit) noexcept {
  return (reserve_chunks(limit) - kLastChunks) / 2 + kLastChunks;
}

}  // namespace pando::shm
