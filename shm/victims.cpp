#include <algorithm>
#include <array>

#include "shm/chunk_pool.h"
#include "shm/reserve.h"

// Which chunks compaction empties: the emptiest, as many as there is room to copy.

namespace pando::shm {

/// The chunks with fewer live bytes than `bytes`, and `at` chunks with exactly `bytes`.
struct ChunkPool::Selection {
  std::uint32_t bytes = 0;
  std::size_t at = 0;
  std::size_t chunks = 0;    // in the whole selection
  std::uint64_t copied = 0;  // live bytes in the whole selection

  /// Whether a chunk with `live` bytes belongs to the selection; to be asked of each candidate
  /// once.
  bool take(std::uint32_t live) noexcept {
    if (live != bytes) return live < bytes;
    if (at == 0) return false;
    --at;
    return true;
  }
};

/// The emptiest chunks give back the most memory for the least copying. The caller walks its data
/// in another order, so no victim may be free before all its live blocks were copied. Half of
/// `room` is for the blocks that refer to the copies. The chunks are counted by their live bytes,
/// not sorted: a full store of 32 GiB has half a million.
template <class Candidate>
ChunkPool::Selection ChunkPool::select_emptiest(const Candidate& candidate, std::size_t most,
                                                std::uint64_t room) const noexcept {
  std::array<std::uint32_t, kChunkBytes / kUnit + 1> chunks_with{};
  const auto end = static_cast<std::uint32_t>(chunks_.size());
  for (std::uint32_t chunk = 0; chunk < end; ++chunk)
    if (candidate(chunk)) ++chunks_with[live(chunk) / kUnit];
  Selection selection;
  for (std::uint32_t units = 1; units < chunks_with.size(); ++units) {
    const std::uint32_t bytes = units * static_cast<std::uint32_t>(kUnit);
    const std::size_t fit =
        std::min<std::uint64_t>((room / 2 - selection.copied) / bytes, most - selection.chunks);
    const std::size_t chosen = std::min<std::size_t>(chunks_with[units], fit);
    selection.chunks += chosen;
    selection.copied += std::uint64_t{chosen} * bytes;
    selection.bytes = bytes;
    selection.at = chosen;
    if (chosen < chunks_with[units]) break;
  }
  return selection;
}

/// At low space a walk through all data must give back enough to be worth it.
bool ChunkPool::is_worth(const Selection& selection, std::uint64_t room) const noexcept {
  if (!tight()) return selection.chunks > 0;
  const bool needed = ceiling_ > quota_ || ceiling_ - in_use_ <= reserve_;
  const std::uint64_t worth = needed ? 1 : std::max<std::uint64_t>(room / 8, kChunkBytes);
  return selection.chunks * kChunkBytes - selection.copied >= worth;
}

/// Bytes that compaction may write. Compaction takes neither the last chunk nor the rest of that
/// chunk once a root block has taken it.
std::uint64_t ChunkPool::room_to_copy(std::uint32_t open_rest) const noexcept {
  const std::uint64_t left = ceiling_ - in_use_;
  return left < kLastChunks ? 0 : (left - kLastChunks) * kChunkBytes + open_rest;
}

void ChunkPool::set_victim(std::uint32_t chunk, bool victim) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (chunk % 64);
  std::atomic<std::uint64_t>& word = victims_[chunk / 64];
  if (victim)
    word.fetch_or(bit, std::memory_order_relaxed);
  else
    word.fetch_and(~bit, std::memory_order_relaxed);
}

std::size_t ChunkPool::choose_victims(unsigned threshold_percent, std::size_t max_chunks,
                                      std::uint32_t open_rest) {
  const std::scoped_lock lock(mutex_);
  if (borrowed_ != 0) return 0;  // emptying a chunk gives no memory back yet
  // The count comes first: most chunks are full, and the table of counts is small.
  const auto is_thin = [this, threshold_percent](std::uint32_t chunk) {
    const std::uint32_t count = file_.counts()[chunk];
    return (count & kRunFlag) == 0 &&
           std::uint64_t{live_bytes(count)} * 100 < kChunkBytes * threshold_percent &&
           chunks_[chunk].state == State::kUsed;
  };
  const std::uint64_t room = room_to_copy(open_rest);
  Selection selection = select_emptiest(is_thin, max_chunks, room);
  if (!is_worth(selection, room)) return 0;
  walk_room_ = room;
  const auto end = static_cast<std::uint32_t>(chunks_.size());
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    if (!is_thin(chunk) || !selection.take(live(chunk))) continue;
    drop_tail(chunk);
    set_victim(chunk, true);
  }
  return selection.chunks;
}

/// The blocks that refer to the copies may have taken more than half of the room. Then only the
/// emptiest victims are emptied, and the others another time.
bool ChunkPool::narrow_victims(std::uint32_t open_rest) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t room = room_to_copy(open_rest);
  if (room != 0 && room >= walk_room_ / 2) return true;
  walk_room_ = room;
  const auto is_left = [this](std::uint32_t chunk) {
    return is_victim(chunk) && chunks_[chunk].state == State::kUsed;
  };
  Selection selection = select_emptiest(is_left, chunks_.size(), room);
  const auto end = static_cast<std::uint32_t>(chunks_.size());
  for (std::uint32_t chunk = 0; chunk < end; ++chunk)
    if (is_left(chunk) && !selection.take(live(chunk))) set_victim(chunk, false);
  return selection.chunks > 0;
}

void ChunkPool::forget_victims() noexcept {
  for (std::uint32_t word = 0; word < (limit_ + 63) / 64; ++word)
    victims_[word].store(0, std::memory_order_relaxed);
}

bool ChunkPool::is_borrowing() const {
  const std::scoped_lock lock(mutex_);
  return borrowed_ != 0;
}

}  // namespace pando::shm
