#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "shm/map/holds.h"

namespace pando::shm {

/// The chunks without live blocks that readers of older versions may still see.
///
/// A batch's pin holds all chunks freed after it, because the batch may read a newer root than its
/// number says. A lease or own pin holds one exact version. Chunks that only an exact version holds
/// are listed under that version, and checked again when it is dropped.
class WaitingChunks {
 public:
  /// A chunk that the versions from `born` on may refer to, and those from `freed_at` on do not.
  /// `freed_at` never falls from one call to the next.
  struct Chunk {
    std::uint32_t number = 0;
    std::uint64_t born = 0;
    std::uint64_t freed_at = 0;
  };
  void add(const Chunk& chunk) { unsorted_.push_back(chunk); }
  /// Takes out the chunks that none of `holds` holds. `holds.exact` is sorted.
  [[nodiscard]] std::vector<std::uint32_t> release(const Holds& holds);

  /// Whether some waiting chunks have no known pinning version.
  [[nodiscard]] bool has_unsorted() const noexcept { return !unsorted_.empty(); }
  /// Chunks that `version` alone is known to hold.
  [[nodiscard]] std::size_t held_by(std::uint64_t version) const;
  /// Chunks that one exact version is known to hold.
  [[nodiscard]] std::size_t held() const noexcept;

 private:
  void free_or_hold(const Chunk& chunk, const Holds& holds, std::vector<std::uint32_t>& freed);

  std::deque<Chunk> unsorted_;                        // ascending by freed_at
  std::map<std::uint64_t, std::vector<Chunk>> held_;  // by the exact version that holds them
};

}  // namespace pando::shm
