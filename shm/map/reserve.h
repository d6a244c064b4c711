#pragma once

#include <algorithm>
#include <cstdint>

#include "shm/map/chunk.h"

namespace pando::shm {

/// The part of the chunks reserved for deletes and compaction that a step may use.
enum class Reserve : std::uint8_t {
  kKept,        ///< none of them: additions
  kHalf,        ///< all but the part that is compaction's: deletes
  kAllButLast,  ///< all but the last chunk, which is left to steps that only release: compaction
  kAll,         ///< all of them: steps that only release, and steps that were promised room
};

/// Part of the reserve that not even compaction takes. Steps that release blocks without moving
/// any, and each version's root block, find room there when compaction finds none.
inline constexpr std::uint64_t kLastChunks = 1;

/// Number of chunks of a store of `limit` chunks that additions do not use, so that deletes and
/// compaction work when the store is full. The reserve is 1 %, at most 64 MiB, plus the last
/// chunks. A small store keeps a sixteenth, up to sixteen chunks: compaction needs room for the
/// blocks it moves before it gives any back.
[[nodiscard]] constexpr std::uint64_t reserve_chunks(std::uint64_t limit) noexcept {
  constexpr std::uint64_t kLeast = 2;  // one small update with its root block can need two
  constexpr std::uint64_t kEnough = 16;
  constexpr std::uint64_t kMax = (std::uint64_t{64} << 20) / kChunkBytes;
  return std::clamp(limit / 100, std::clamp(limit / 16, kLeast, kEnough), kMax) + kLastChunks;
}

/// The part of the reserve that deletes leave to compaction: deletes make garbage, which only
/// compaction turns into room.
[[nodiscard]] constexpr std::uint64_t compaction_chunks(std::uint64_t limit) noexcept {
  return (reserve_chunks(limit) - kLastChunks) / 2 + kLastChunks;
}

}  // namespace pando::shm
