#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "shm/map/ref.h"

namespace pando::shm {

/// Store format: 64 KiB chunks; a block larger than a chunk takes a run of consecutive chunks.
inline constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

/// Names what a store's data belong to, for instance a journal; all zero: nothing.
using StoreOwner = std::array<std::uint64_t, 2>;

struct StoreOptions {
  std::string path;                   ///< on tmpfs
  std::uint64_t size_limit = kReach;  ///< largest file, rounded down to chunks
  std::uint64_t layout = 0;           ///< caller's layout fingerprint, folded with shm's own
  std::uint32_t mode = 0640;
  static constexpr std::uint32_t kKeepGroup = UINT32_MAX;
  std::uint32_t group = kKeepGroup;   ///< the readers' group: may read the file, never write it
  bool allow_any_filesystem = false;  ///< tests and offline tools only
  StoreOwner owner{};     ///< attach refuses the store of another owner; all zero: takes any
  std::string foreign{};  ///< says so and what to do; the path is put before it
};

/// How far a step may go into the chunks that are kept for deletes and compaction (shm/reserve.h).
enum class Reserve : std::uint8_t {
  kKept,        ///< not at all: what adds
  kHalf,        ///< as far as the part that is compaction's: deletes
  kAllButLast,  ///< compaction: a chunk is left to what only releases
  kAll,         ///< what only releases, and what was promised room
};

class Store;
struct ImageState;
struct ImageCapture;
class ImageSource;

/// One writer's private work on the next version. Blocks it allocated are "fresh": no reader can
/// see them, so they may be written in place. Nothing is shared until Store::publish.
/// Not thread-safe itself; several transactions may be open in several threads at once (they take
/// chunks from the store's pool under a lock), but only the commit thread publishes. Must end
/// before its Store does.
class Transaction {
 public:
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();  ///< not published: its chunks return to the pool

  /// A fresh block of block_octets(bytes), 8-aligned, contents undefined. kFull when the store's
  /// limit (less the reserve, unless use_reserve()) or the machine's memory is reached.
  Result<Ref<>> allocate(std::size_t bytes);
  /// Writable address of a fresh block.
  template <class T = std::byte>
  [[nodiscard]] T* writable(Ref<T> ref) noexcept {
    return reinterpret_cast<T*>(mutable_base() + ref.offset());
  }
  [[nodiscard]] bool is_fresh(Ref<> ref) const noexcept;
  /// The block leaves the version being built. Its memory is reused once no reader can hold it.
  void release(Ref<> ref, std::size_t bytes) noexcept;
  /// True when the block lies in a chunk that the compactor is emptying.
  [[nodiscard]] bool in_victim(Ref<> ref) const noexcept;
  /// Takes over another transaction's blocks and releases (a zone built in a pool thread).
  void absorb(Transaction&& other);
  /// Blocks may be allocated out of the reserve from now on, as far as `use` says.
  void use_reserve(Reserve use = Reserve::kAll) noexcept;
  [[nodiscard]] Reserve reserve_use() const noexcept;
  /// See Store::low_space() and Store::low_space_without_pins().
  [[nodiscard]] bool low_space() const;
  [[nodiscard]] bool low_space_without_pins() const;
  /// Whether `bytes` may be written that one can do without. In a tight store only when it does
  /// not stay so, and when they, and a quarter of the reserve, are there beyond what a transaction
  /// of this kind has to leave: until what waits is free, updates come first.
  [[nodiscard]] bool can_afford(std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t allocated_bytes() const noexcept;  ///< by this transaction so far
  [[nodiscard]] Window window() const noexcept;

 private:
  friend class Store;
  struct Impl;
  explicit Transaction(std::unique_ptr<Impl> impl) noexcept;
  [[nodiscard]] std::byte* mutable_base() noexcept;
  std::unique_ptr<Impl> impl_;
};

/// What a version is: its number, the caller's root block and the caller's journal position.
struct VersionInfo {
  std::uint64_t number = 0;
  Ref<> root;
  std::uint64_t journal_position = 0;
};

struct StoreStats {
  std::uint64_t memory_bytes = 0;    ///< that the file really holds; its size is only addresses
  std::uint64_t chunks_in_use = 0;   ///< chunks with live blocks, open or waiting for readers
  std::uint64_t peak_chunks = 0;     ///< most chunks_in_use since this process has the store
  std::uint64_t lent_chunks = 0;     ///< of these: being filled by what is not published
  std::uint64_t live_bytes = 0;      ///< in blocks of the current version
  std::uint64_t waiting_chunks = 0;  ///< empty but a reader may still look
  std::uint64_t held_chunks = 0;     ///< of these: known to be held by one old version
  std::uint64_t free_chunks = 0;     ///< below the high-water mark
  std::uint64_t spare_chunks = 0;    ///< of the free ones: have memory
  std::uint64_t limit_bytes = 0;
  std::uint64_t huge_pages = 0;  ///< given by the kernel since this process has the store
};

/// The writer's side of the store: the one process that holds the exclusive lock.
class Store {
 public:
  /// Makes a new store (replacing a file at `path` that is no live store of another process) with
  /// an empty version 1. kExists when another manager holds it. `complete` (may be empty) brings in
  /// what has to be there before the store gets its name; its error is one of create().
  using Complete = std::function<Status(Store&)>;
  static Result<Store> create(const StoreOptions& options, const Complete& complete = {});
  /// Attaches to the live store at `path`. kNotFound, kExists (another manager), kLayout, kCorrupt
  /// (copied file, header damage), kDenied (another owner's; it is left as it is). Nothing a
  /// surviving reader may hold is reused before that reader has shown a later epoch or died.
  static Result<Store> attach(const StoreOptions& options);
  /// Makes a new store, as create() does, with the version that `image` describes and `source` has
  /// the bytes of (shm/image_state.h). kCorrupt: they do not go together. Nobody sees it before it
  /// is whole.
  static Result<Store> restore(const StoreOptions& options, const ImageState& image,
                               ImageSource& source);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// For the commit thread: continues the open chunk; a second one at the same time gets chunks of
  /// its own.
  [[nodiscard]] Transaction begin();
  [[nodiscard]] Transaction begin_private();  ///< for pool threads: chunks of its own
  /// Publishes a new version made by `transaction`. All-or-nothing for readers and crashes.
  /// Returns the version number. Only the commit thread calls it. On kFull nothing has happened and
  /// the transaction can be published later or dropped; on kCorrupt (it released what is no block,
  /// or a block twice) it can only be dropped.
  Result<std::uint64_t> publish(Transaction&& transaction, Ref<> root,
                                std::uint64_t journal_position);
  [[nodiscard]] VersionInfo current() const noexcept;
  /// Names the line of versions: a random number that a new store gets, and one that is restored
  /// has from its image. So an image of this line is of a version that this store has had, and
  /// equal numbers of versions say nothing across lines. 0: not known, an earlier build made it.
  [[nodiscard]] std::uint64_t line() const noexcept;
  [[nodiscard]] Window window() const noexcept;
  /// The current version for a checkpoint. Its chunks stay as they are as long as it is pinned
  /// (SlotTable::pin_own). Commit thread; a few nanoseconds per chunk.
  [[nodiscard]] ImageCapture capture();
  /// Chunks that are kept only because `version` is pinned by somebody.
  [[nodiscard]] std::uint64_t chunks_held_by(std::uint64_t version) const;

  /// Looks at all slots and returns chunks that nobody can see to the pool (called by publish now
  /// and then, when memory is short, and by a timer). Gives the number of chunks freed.
  std::size_t reclaim() noexcept;
  /// False when reclaim() could free nothing that the last look did not see held. Cheap.
  [[nodiscard]] bool may_reclaim() const;
  /// Marks chunks whose live part is below `threshold_percent` (not the open one) as victims;
  /// as far as there is room to copy; returns how many. The caller copies what in_victim() says.
  std::size_t choose_victims(unsigned threshold_percent, std::size_t max_chunks) noexcept;
  /// Between two steps of the caller's walk: when half of the room that there was for it is gone,
  /// only so many victims as the rest suffices for stay some. False when that is none.
  bool narrow_victims() noexcept;
  void forget_victims() noexcept;
  /// No victims are chosen as long as chunks are borrowed from an image (shm/borrowing.h).
  [[nodiscard]] bool is_borrowing() const;

  /// Asks the kernel for huge pages under 2 MiB regions that are in use from end to end: they serve
  /// all processes, whose page tables shrink to 1/8 (64 workers on 16 GB: 2 GB of page tables
  /// without). About 0.5 ms of copying per region, so for a pool thread; a reader that looks at the
  /// region meanwhile waits for 2 to 4 ms. What a private transaction fills from end to end has its
  /// huge pages already, before anybody reads it. Returns the regions done.
  std::size_t collapse(std::size_t max_regions) noexcept;

  /// The slot registry whose pins and leases hold memory back (shm/slots.h); it must stay where it
  /// is until replaced. Null: nobody reads. After attach() nothing is reused before this call.
  void set_slots(class SlotTable* slots) noexcept;
  [[nodiscard]] StoreStats stats() const noexcept;
  /// Less than a sixteenth of the limit is free, or no more than the reserve.
  [[nodiscard]] bool low_space() const;
  /// The same if all chunks were free that only readers of old versions keep. These come back by
  /// themselves, at the latest with the next image (Checkpointer), and nothing that is given up
  /// brings them back sooner. So what is there and one can do without goes in a store that stays
  /// tight, not in one that is.
  [[nodiscard]] bool low_space_without_pins() const;
  /// Whether what is in use now, by transactions under way too, leaves of the reserve what a step
  /// of that kind has to leave. In a store that had more in use than its limit leaves deletes
  /// room beside when this process took it over, these and compaction have a reserve beyond that;
  /// it comes down to the limit with what is in use.
  [[nodiscard]] bool leaves_reserve(Reserve use) const;
  /// Walk-independent check of the header, chunk table and counters; for tests and `store check`.
  Status check() const;

  /// Unversioned side table (design: refresh timers, expiry): `index` < kSideEntries.
  static constexpr std::uint32_t kSideEntries = 4U << 20;
  struct SideEntry {  // all fields written by the manager only, read by workers with relaxed loads
    std::atomic<std::uint64_t> expires_at;    // seconds since 1970, 0 = never
    std::atomic<std::uint64_t> next_refresh;  // seconds since 1970
    std::atomic<std::uint64_t> last_ok;       // last successful check with a primary
    std::atomic<std::uint64_t> reserved;
  };
  [[nodiscard]] SideEntry* side(std::uint32_t index) noexcept;

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::shm
