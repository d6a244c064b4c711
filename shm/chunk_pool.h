#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "shm/epoch.h"
#include "shm/ledger.h"
#include "shm/live_file.h"
#include "shm/map/bitmap.h"

namespace pando::shm {

/// Rests of chunks that are worth remembering: smaller ones are left to the compactor.
inline constexpr std::uint32_t kTailMin = 4096;

/// A chunk that may be written, and how much of it is in use already: what lies before `from`
/// belongs to published versions, what lies behind was never seen by a reader.
struct Span {
  std::uint32_t chunk = kNoChunk;
  std::uint32_t from = 0;
};

/// Writes the counts that a version's root block lists. Idempotent: attaching does it again.
void apply_counts(const RootBlock& published, std::uint32_t* counts) noexcept;

/// Who owns each chunk at the moment. Memory of the writer's process only: after a crash it is made
/// again from the chunk counts. All functions may be called from any thread.
///
///     free ──take──▶ lent ──settle──▶ used ──last block released──▶ waiting ──nobody looks──▶ free
///       ▲              │ give_back (transaction dropped)
///       └──────────────┘
class ChunkPool {
 public:
  /// `quota`: chunks that may be in use. `file` must outlive the pool.
  ChunkPool(LiveFile& file, std::uint32_t quota);

  /// Fills the pool from the counts of an attached store: counted chunks are used, `open` is lent,
  /// all others wait until nobody holds a version before `version`. How much of a chunk is in use
  /// is known of the open one only; of the others all may be. In a store that borrows chunks, which
  /// nobody has read before, all empty ones are free, but of the borrowed ones none is lent or
  /// becomes free before settle_borrowed().
  void adopt(Span open, std::uint64_t version);
  void settle_borrowed();

  /// A chunk with room for `bytes`: rather the rest of one in use than an empty one, rather one
  /// with memory than one without, rather a low one than a high one.
  Result<Span> take(std::uint32_t bytes, Reserve use);
  /// `count` consecutive empty chunks.
  Result<std::uint32_t> take_run(std::uint32_t count, Reserve use);
  /// A lent chunk that was not published; `span.from` as it was lent.
  void give_back(Span span);

  /// After a publication: applies its counts; the lent chunks of `entries` are used from now on
  /// (`open` stays lent); those without live blocks wait for readers of versions before its own.
  void settle(const RootBlock& published, const std::vector<LedgerEntry>& entries,
              std::uint32_t open);
  /// Room at the end of used chunks, for later transactions.
  void keep_tails(const std::vector<Span>& tails);

  /// Frees waiting chunks that nobody can see any more. Returns how many.
  std::size_t reclaim();
  /// Chunks wait of which the last look did not find one version that holds them.
  [[nodiscard]] bool has_unsorted() const;
  /// Null: there are no readers.
  void set_slots(SlotTable* slots);
  /// Until set_slots: no chunk becomes free (after attaching, readers may be there unseen).
  void distrust_readers();
  /// Nobody can read until distrust_readers() or set_slots(): all chunks that wait become free, but
  /// those of `version` only when there is little other room.
  void spare(std::uint64_t version);
  /// Whether all chunks of the version given to spare() are as they were.
  [[nodiscard]] bool has_spared() const;

  /// What an image needs to know of each chunk; see ImageCapture.
  void capture(ImageCapture& capture);
  [[nodiscard]] std::size_t held_by(std::uint64_t version) const;

  /// See Store. `open_rest`: room in the chunk that versions go on in. One pass over the chunks,
  /// two when some are chosen.
  std::size_t choose_victims(unsigned threshold_percent, std::size_t max_chunks,
                             std::uint32_t open_rest);
  bool narrow_victims(std::uint32_t open_rest);
  void forget_victims() noexcept;
  [[nodiscard]] bool is_borrowing() const;
  /// Huge-page regions whose chunks are all in use and that were not picked before.
  std::vector<std::uint32_t> pick_full_regions(std::size_t max_regions);
  /// Asks for a huge page under a region, once; false when there is none.
  bool collapse(std::uint32_t region);
  [[nodiscard]] bool is_victim(std::uint32_t chunk) const noexcept {
    return chunk < limit_ &&
           (victims_[chunk / 64].load(std::memory_order_relaxed) >> (chunk % 64) & 1) != 0;
  }

  /// Less than a sixteenth of the quota is free, or no more than the reserve.
  [[nodiscard]] bool low_space() const;
  /// So it would be if all chunks that wait were free.
  [[nodiscard]] bool low_space_without_pins() const;
  /// See Transaction.
  [[nodiscard]] bool can_afford(std::uint64_t bytes, Reserve use) const;
  /// See Store.
  [[nodiscard]] bool leaves_reserve(Reserve use) const;
  void fill(StoreStats& stats) const;
  [[nodiscard]] Status check() const;

 private:
  /// kBlocked: empty, among chunks that are an image's, so not to be written.
  enum class State : std::uint8_t { kFree, kLent, kUsed, kWaiting, kBlocked };
  struct Chunk {
    std::uint64_t born = 0;      // first version that may refer to it
    std::uint64_t freed_at = 0;  // first version that does not
    std::uint32_t used = 0;      // bytes from its start that published versions may refer to
    State state = State::kFree;
    bool has_tail = false;  // listed in tails_
  };

  [[nodiscard]] std::uint64_t version() const noexcept;
  [[nodiscard]] std::uint32_t live(std::uint32_t chunk) const noexcept;
  [[nodiscard]] std::uint32_t cushion() const noexcept;
  [[nodiscard]] std::uint32_t growth_step() const noexcept;
  [[nodiscard]] Chunk& info(std::uint32_t chunk);

  bool take_tail(std::uint32_t bytes, Span& span);
  void drop_tail(std::uint32_t chunk);
  [[nodiscard]] bool leaves(std::uint32_t more, Reserve use) const noexcept;
  Result<std::uint32_t> take_chunks(std::uint32_t count, Reserve use);
  Result<std::uint32_t> try_take(std::uint32_t count, Reserve use);
  Status grow(std::uint32_t wanted);
  Status back_range(std::uint32_t first, std::uint32_t count);
  void lend(std::uint32_t chunk);

  void become(Chunk& chunk, State state) noexcept;
  void wait(std::uint32_t chunk, std::uint64_t freed_at);
  void free_chunk(std::uint32_t chunk);
  std::size_t reclaim_locked();
  bool collect_holds();
  std::size_t reclaim_waiting();
  std::size_t give_up_spared();
  [[nodiscard]] bool is_fuller_than(std::uint32_t part) const noexcept;
  [[nodiscard]] bool tight() const noexcept { return is_tight_with(in_use_); }
  [[nodiscard]] bool tight_for_good() const noexcept {
    return is_tight_with(in_use_ - waiting_count_);
  }
  [[nodiscard]] bool is_tight_with(std::uint32_t in_use) const noexcept;
  std::size_t release_dropped_holds();
  std::size_t free_or_hold(std::uint32_t chunk);
  void punch_unsure();
  void trim();
  bool punch(std::uint32_t first, std::uint32_t count);
  struct Selection;
  template <class Candidate>
  [[nodiscard]] Selection select_emptiest(const Candidate& candidate, std::size_t most,
                                          std::uint64_t room) const noexcept;
  [[nodiscard]] bool is_worth(const Selection& selection, std::uint64_t room) const noexcept;
  [[nodiscard]] std::uint64_t room_to_copy(std::uint32_t open_rest) const noexcept;
  void set_victim(std::uint32_t chunk, bool victim) noexcept;

  mutable std::mutex mutex_;
  LiveFile& file_;
  const std::uint32_t quota_;
  // Deletes and compaction have more in a store that started with no room for them: so many chunks
  // beyond what is in use.
  std::uint32_t ceiling_;
  std::uint32_t beyond_ = 0;
  std::uint32_t borrowed_;     // chunks that are an image's
  const std::uint32_t limit_;  // of chunk numbers; above the quota when that was lowered, or when
                               // empty chunks between others cannot be used yet
  const std::uint32_t reserve_;

  std::vector<Chunk> chunks_;  // up to the highest chunk ever taken
  Bitmap free_;
  Bitmap backed_;     // has memory, for certain
  Bitmap collapsed_;  // by region: was picked, and not punched since
  Bitmap written_;    // published into since the last capture
  std::atomic<std::uint64_t> huge_pages_ = 0;
  std::uint32_t in_use_ = 0;
  std::uint32_t peak_in_use_ = 0;
  std::uint32_t lent_ = 0;
  std::uint32_t backed_free_ = 0;
  std::uint32_t waiting_count_ = 0;

  std::vector<Span> tails_;
  std::deque<std::uint32_t> waiting_;  // ascending by freed_at
  std::map<std::uint64_t, std::vector<std::uint32_t>>
      held_;                           // by the exact version that holds them
  std::vector<std::uint32_t> unsure_;  // freed just now, may have memory or not
  SlotTable* slots_ = nullptr;
  bool trust_ = true;
  std::uint64_t spared_ = 0;  // version; 0: none
  bool has_spared_ = false;
  Holds holds_;
  std::uint64_t reclaimed_at_ = 0;  // version of the last look at the slots

  std::unique_ptr<std::atomic<std::uint64_t>[]> victims_;
  std::uint64_t walk_room_ = 0;  // bytes that there were for copying when victims were chosen
};

}  // namespace pando::shm
