#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "shm/map/chunk.h"
#include "shm/map/ref.h"

namespace pando::shm {

/// The chunks that compaction is emptying. One thread at a time changes the set; any thread may ask
/// has().
class VictimSet {
 public:
  /// `limit`: bound of the chunk numbers.
  explicit VictimSet(std::uint32_t limit);

  [[nodiscard]] bool has(std::uint32_t chunk) const noexcept {
    return chunk < limit_ &&
           (words_[chunk / 64].load(std::memory_order_relaxed) >> (chunk % 64) & 1) != 0;
  }
  void add(std::uint32_t chunk) noexcept;
  void remove(std::uint32_t chunk) noexcept;
  void clear() noexcept;

  /// Begins a walk with `room` bytes for copies.
  void begin_walk(std::uint64_t room) noexcept { walk_room_ = room; }
  /// Whether half of the walk's room is used up. The walk then continues as if it had begun with
  /// `room`.
  [[nodiscard]] bool must_narrow(std::uint64_t room) noexcept;

 private:
  std::uint32_t limit_;
  // Relaxed: a writer that sees an older bit copies a block too many or too few, which is harmless.
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::uint64_t walk_room_ = 0;
};

/// Selects the emptiest chunks, as many as there is room to copy: they free the most memory for the
/// least copying. The caller walks its data in another order, so no victim may be free before all
/// its live blocks were copied. Half of the room is for the blocks that refer to the copies.
///
/// The chunks are counted by their live bytes, not sorted: a full store of 32 GiB has half a
/// million.
class EmptiestChunks {
 public:
  /// Counts a candidate with `live` bytes.
  void add(std::uint32_t live) noexcept { ++chunks_with_[live / kUnit]; }
  /// Selects at most `most` of the candidates.
  void select(std::size_t most, std::uint64_t room) noexcept;
  /// Whether a chunk with `live` bytes belongs to the selection; to be asked of each candidate
  /// once.
  [[nodiscard]] bool take(std::uint32_t live) noexcept;

  [[nodiscard]] std::size_t selected() const noexcept { return selected_; }
  /// Bytes that emptying the selected chunks gives back.
  [[nodiscard]] std::uint64_t gain() const noexcept { return selected_ * kChunkBytes - copied_; }

 private:
  std::array<std::uint32_t, kChunkBytes / kUnit + 1> chunks_with_{};
  // Selected are the chunks with fewer live bytes than `bytes_`, and `at_` chunks with exactly so
  // many.
  std::uint32_t bytes_ = 0;
  std::size_t at_ = 0;
  std::size_t selected_ = 0;
  std::uint64_t copied_ = 0;  // live bytes in the selected chunks
};

}  // namespace pando::shm
