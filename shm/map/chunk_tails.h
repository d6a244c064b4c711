#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shm/map/bitmap.h"
#include "shm/map/chunk.h"

namespace pando::shm {

/// Smallest rest of a chunk that is worth remembering: the compactor collects smaller ones.
inline constexpr std::uint32_t kTailMin = 4096;

/// The used chunks with room at their end, for later transactions. Each chunk is listed once.
class ChunkTails {
 public:
  /// `limit`: bound of the chunk numbers.
  explicit ChunkTails(std::uint32_t limit) : listed_(limit) {}

  /// False when the chunk is listed already, or the list is full.
  bool add(Span tail);
  /// Takes the newest of the last few tails that has room for `bytes`.
  std::optional<Span> take(std::uint32_t bytes);
  /// Forgets the chunk's tail, if there is one.
  void drop(std::uint32_t chunk);

 private:
  std::vector<Span> tails_;
  Bitmap listed_;
};

}  // namespace pando::shm
