#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "shm/epoch.h"
#include "shm/ledger.h"
#include "shm/live_file.h"
#include "shm/map/bitmap.h"
#include "shm/map/chunk_memory.h"
#include "shm/map/chunk_tails.h"
#include "shm/map/huge_page_regions.h"
#include "shm/map/space_policy.h"
#include "shm/map/victim_set.h"
#include "shm/map/waiting_chunks.h"

namespace pando::shm {

/// Writes the counts that a version's root block lists. Idempotent: attaching does it again.
void apply_counts(const RootBlock& published, std::uint32_t* counts) noexcept;

/// The owner of each chunk at the moment. The pool is memory of the writer's process only: after a
/// crash the pool is rebuilt from the chunk counts. All functions may be called from any thread.
/// The pool's parts in shm/map have one purpose each and know nothing of the lock.
///
///     free ──take──▶ lent ──commit_counts──▶ used ──last block released──▶ waiting ──no reader──▶
///     free
///       ▲              │ give_back (transaction dropped)
///       └──────────────┘
class ChunkPool {
 public:
  /// `quota`: chunks that may be in use. `file` must outlive the pool.
  ChunkPool(LiveFile& file, std::uint32_t quota);

  /// Fills the pool from the counts of an attached store. Counted chunks become used, `open`
  /// becomes lent, and all others wait until no reader holds a version before `version`. The bytes
  /// in use are known of the open chunk only; the other chunks count as full. A store that borrows
  /// chunks had no reader before, so all its empty chunks are free. Borrowed chunks are neither
  /// lent nor freed before settle_borrowed().
  void adopt(Span open, std::uint64_t version);
  void settle_borrowed();

  /// A chunk with room for `bytes`. The rest of a used chunk comes before an empty chunk, a chunk
  /// with memory before one without, a low number before a high one.
  Result<Span> take(std::uint32_t bytes, Reserve use);
  /// `count` consecutive empty chunks.
  Result<std::uint32_t> take_run(std::uint32_t count, Reserve use);
  /// Takes back a lent chunk that was not published; `span.from` as it was lent.
  void give_back(Span span);

  /// After a publication: applies its counts. The lent chunks of `entries` become used (`open`
  /// stays lent); chunks without live blocks wait for readers of versions before the published one.
  void commit_counts(const RootBlock& published, const std::vector<LedgerEntry>& entries,
                     std::uint32_t open);
  /// Remembers the room at the end of used chunks, for later transactions.
  void keep_tails(const std::vector<Span>& tails);

  /// Compares the quota with the memory that the machine has (see SpacePolicy), and returns surplus
  /// memory of free chunks, which dropped transactions leave.
  void look_at_machine();
  /// Frees waiting chunks that no reader can see any more. Returns their number.
  std::size_t reclaim();
  /// Whether chunks wait for which the last check found no single version that holds them.
  [[nodiscard]] bool has_unsorted() const;
  /// Null: there are no readers.
  void set_slots(SlotTable* slots);
  /// No chunk becomes free until set_slots(): after attaching, unknown readers may exist.
  void distrust_readers();
  /// No process can read until distrust_readers() or set_slots(): all waiting chunks become free.
  /// The chunks of `version` become free only when there is little other room.
  void spare(std::uint64_t version);
  /// Whether all chunks of the version given to spare() are unchanged.
  [[nodiscard]] bool has_spared() const;

  /// Fills in the pool's part of an image: see ImageCapture.
  void capture(ImageCapture& capture);
  [[nodiscard]] std::size_t held_by(std::uint64_t version) const;

  /// See Store. `open_rest`: room in the open chunk. One pass over the chunks, two when victims are
  /// chosen.
  std::size_t choose_victims(unsigned threshold_percent, std::size_t max_chunks,
                             std::uint32_t open_rest);
  bool narrow_victims(std::uint32_t open_rest);
  void forget_victims() noexcept { victims_.clear(); }
  [[nodiscard]] bool is_victim(std::uint32_t chunk) const noexcept { return victims_.has(chunk); }
  [[nodiscard]] bool is_borrowing() const;
  /// Huge-page regions whose chunks are all in use and that were not picked before.
  std::vector<std::uint32_t> pick_full_regions(std::size_t max_regions);
  /// Asks for a huge page under a region, once; false when the kernel gives none.
  bool collapse(std::uint32_t region);

  /// The space as it is at this moment.
  [[nodiscard]] SpacePolicy space() const;
  void fill(StoreStats& stats) const;
  [[nodiscard]] Status check() const;

 private:
  /// kBlocked: an empty chunk among an image's chunks, so it must not be written.
  enum class State : std::uint8_t { kFree, kLent, kUsed, kWaiting, kBlocked };
  struct Chunk {
    std::uint64_t born = 0;  // first version that may refer to the chunk
    std::uint32_t used = 0;  // bytes from its start that published versions may refer to
    State state = State::kFree;
  };

  [[nodiscard]] std::uint64_t version() const noexcept;
  [[nodiscard]] std::uint32_t live(std::uint32_t chunk) const noexcept;
  [[nodiscard]] Chunk& info(std::uint32_t chunk);

  Result<std::uint32_t> take_chunks(std::uint32_t count, Reserve use);
  Result<std::uint32_t> try_take(std::uint32_t count, Reserve use);
  void lend(std::uint32_t chunk);
  void become(Chunk& chunk, State state) noexcept;
  void wait(std::uint32_t chunk, std::uint64_t freed_at);
  void free_chunk(std::uint32_t chunk);
  std::size_t reclaim_locked();
  bool collect_holds();
  std::size_t reclaim_waiting();
  std::size_t give_up_spared();

  mutable std::mutex mutex_;
  LiveFile& file_;
  std::uint32_t borrowed_;  // number of first chunks that are an image's
  // The limit of chunk numbers is above the quota if the quota was lowered, or if empty chunks
  // between others cannot be used yet.
  SpacePolicy space_;

  std::vector<Chunk> chunks_;  // up to the highest chunk ever taken
  std::uint32_t lent_ = 0;
  HugePageRegions regions_;
  ChunkMemory memory_;
  ChunkTails tails_;
  Bitmap written_;  // the chunk was published into since the last capture
  VictimSet victims_;

  WaitingChunks waiting_;
  SlotTable* slots_ = nullptr;
  bool trust_ = true;
  std::uint64_t spared_ = 0;  // version; 0: none
  bool has_spared_ = false;
  Holds holds_;
  std::uint64_t reclaimed_at_ = 0;  // version at the last check of the slots
};

}  // namespace pando::shm
