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
#include "shm/map/chunk.h"
#include "shm/map/ref.h"
#include "shm/map/reserve.h"

namespace pando::shm {

/// The identity of the owner of a store's data, for instance of a journal; all zero: no owner.
using StoreOwner = std::array<std::uint64_t, 2>;

struct StoreOptions {
  std::string path;                   ///< on tmpfs
  std::uint64_t size_limit = kReach;  ///< largest file, rounded down to chunks
  std::uint64_t layout = 0;           ///< caller's layout fingerprint, folded with shm's own
  std::uint32_t mode = 0640;
  bool allow_any_filesystem = false;  ///< tests and offline tools only
  StoreOwner owner{};  ///< attach refuses the store of another owner; all zero: takes any
  /// The error's text for another owner: the fact and the remedy; the path is put before it
  std::string foreign{};
};

class Store;
struct ImageState;
struct ImageCapture;
class ImageSource;

/// The private work of one writer on the next version. Blocks that the transaction allocated are
/// "fresh": no reader can see them, so they may be written in place. Nothing is shared until
/// Store::publish. Not thread-safe itself. Several transactions may be open in several threads at
/// once (they take chunks from the pool under a lock), but only the commit thread publishes. A
/// transaction must end before its Store does.
class Transaction {
 public:
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();  ///< an unpublished transaction returns its chunks to the pool

  /// A fresh block of block_bytes(bytes), 8-aligned, contents undefined. kFull when the store's
  /// limit (less the reserve, unless use_reserve()) or the machine's memory is reached.
  Result<Ref<>> allocate(std::size_t bytes);
  /// Writable address of a fresh block.
  template <class T = std::byte>
  [[nodiscard]] T* writable(Ref<T> ref) noexcept {
    return reinterpret_cast<T*>(mutable_base() + ref.offset());
  }
  [[nodiscard]] bool is_fresh(Ref<> ref) const noexcept;
  /// Takes the block out of the version being built. The store reuses the block's memory once no
  /// reader can hold it.
  void release(Ref<> ref, std::size_t bytes) noexcept;
  /// True when the block lies in a chunk that the compactor is emptying.
  [[nodiscard]] bool in_victim(Ref<> ref) const noexcept;
  /// Takes over another transaction's blocks and releases (a zone built in a background thread).
  void absorb(Transaction&& other);
  /// Blocks may be allocated out of the reserve from now on, as far as `use` says.
  void use_reserve(Reserve use = Reserve::kAll) noexcept;
  [[nodiscard]] Reserve reserve_use() const noexcept;
  /// See Store::low_space() and Store::low_space_without_pins().
  [[nodiscard]] bool low_space() const;
  [[nodiscard]] bool low_space_without_pins() const;
  /// Whether `bytes` of optional data may be written. At low space the answer is true only if two
  /// conditions hold. Space must not be low without pinned chunks. The bytes, and a quarter of the
  /// reserve, must be there beyond the part that this transaction must leave. So updates come first
  /// until waiting chunks are free.
  [[nodiscard]] bool can_afford(std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t allocated_bytes() const noexcept;  ///< by this transaction so far
  /// Bytes allocated less bytes released so far: how much more the next version has.
  [[nodiscard]] std::int64_t added_bytes() const noexcept;
  [[nodiscard]] Window window() const noexcept;

 private:
  friend class Store;
  struct Impl;
  explicit Transaction(std::unique_ptr<Impl> impl) noexcept;
  [[nodiscard]] std::byte* mutable_base() noexcept;
  std::unique_ptr<Impl> impl_;
};

/// One version: its number, the caller's root block and the caller's journal position.
struct VersionInfo {
  std::uint64_t number = 0;
  Ref<> root;
  std::uint64_t journal_position = 0;
};

struct StoreStats {
  /// Memory that the file really holds; the file's size is only addresses
  std::uint64_t memory_bytes = 0;
  std::uint64_t chunks_in_use = 0;   ///< chunks with live blocks, open or waiting for readers
  std::uint64_t peak_chunks = 0;     ///< most chunks_in_use since this process has the store
  std::uint64_t lent_chunks = 0;     ///< of chunks_in_use: being filled by unpublished transactions
  std::uint64_t live_bytes = 0;      ///< in blocks of the current version
  std::uint64_t waiting_chunks = 0;  ///< empty, but a reader may still read them
  std::uint64_t held_chunks = 0;     ///< of waiting_chunks: known to be held by one old version
  std::uint64_t free_chunks = 0;     ///< below the high-water mark
  std::uint64_t spare_chunks = 0;    ///< of free_chunks: have memory
  /// Bytes that chunks may take now: the size limit, or less where the machine has less memory.
  std::uint64_t limit_bytes = 0;
  std::uint64_t size_limit = 0;  ///< as configured
  bool memory_refused = false;   ///< the machine refused memory, and has not given any since
  std::uint64_t huge_pages = 0;  ///< given by the kernel since this process has the store
};

/// The writer's side of the store: the one process that holds the exclusive lock.
class Store {
 public:
  /// Makes a new store with an empty version 1. The new store replaces a file at `path` that is no
  /// live store of another process. kExists when another manager holds the store. `complete` (may
  /// be empty) fills in the data that must be there before the store gets its name. create()
  /// returns an error of `complete`.
  using Complete = std::function<Status(Store&)>;
  static Result<Store> create(const StoreOptions& options, const Complete& complete = {});
  /// Attaches to the live store at `path`. Errors: kNotFound, kExists (another manager), kLayout,
  /// kCorrupt (copied file, header damage), kDenied (another owner's; the file is left as it is).
  /// Memory that a surviving reader may hold is not reused before that reader has shown a later
  /// epoch or died.
  static Result<Store> attach(const StoreOptions& options);
  /// Makes a new store, as create() does, with the version that `image` describes and whose bytes
  /// `source` has (shm/image_state.h). kCorrupt: `image` and `source` do not match. No other
  /// process sees the store before it is whole.
  static Result<Store> restore(const StoreOptions& options, const ImageState& image,
                               ImageSource& source);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// For the commit thread: continues the open chunk. A second transaction at the same time gets
  /// chunks of its own.
  [[nodiscard]] Transaction begin();
  [[nodiscard]] Transaction begin_private();  ///< for background threads: takes chunks of its own
  /// Publishes a new version made by `transaction`. All-or-nothing for readers and crashes. Returns
  /// the version number. Only the commit thread calls publish(). On kFull nothing has happened, and
  /// the transaction can be published later or dropped. On kCorrupt (the transaction released a
  /// place that is no block, or a block twice) the transaction can only be dropped.
  Result<std::uint64_t> publish(Transaction&& transaction, Ref<> root,
                                std::uint64_t journal_position);
  [[nodiscard]] VersionInfo current() const noexcept;
  /// The lineage of the versions: a random number that a new store gets, and that a restored store
  /// has from its image. An image of this lineage holds a version that this store has had; equal
  /// version numbers of different lineages say nothing.
  [[nodiscard]] std::uint64_t lineage() const noexcept;
  [[nodiscard]] Window window() const noexcept;
  /// The current version for a checkpoint. The version's chunks stay unchanged as long as it is
  /// pinned (SlotTable::pin_own). Commit thread; a few nanoseconds per chunk.
  [[nodiscard]] ImageCapture capture();
  /// Chunks that are not free only because a reader pins `version`.
  [[nodiscard]] std::uint64_t chunks_held_by(std::uint64_t version) const;

  /// Checks all slots and returns chunks that no reader can see to the pool. Returns the number of
  /// chunks freed. publish() calls reclaim() now and then and when memory is short; a timer calls
  /// it, too.
  std::size_t reclaim() noexcept;
  /// Compares the limit with the memory that the machine has, and gives a part of unused memory
  /// back. A timer calls it.
  void look_at_machine();
  /// False when reclaim() could free nothing beyond the chunks that the last check found held.
  /// Cheap.
  [[nodiscard]] bool may_reclaim() const;
  /// Marks chunks whose live part is below `threshold_percent` (not the open one) as victims, as
  /// far as there is room to copy. Returns the number of victims. The caller copies the blocks for
  /// which in_victim() is true.
  std::size_t choose_victims(unsigned threshold_percent, std::size_t max_chunks) noexcept;
  /// For a pause between two steps of the caller's walk. When half of the room that the walk began
  /// with is gone, only as many victims stay as the rest suffices for. False when no victim stays.
  bool narrow_victims() noexcept;
  void forget_victims() noexcept;
  /// No victims are chosen as long as chunks are borrowed from an image (shm/borrowing.h).
  [[nodiscard]] bool is_borrowing() const;

  /// Asks the kernel for huge pages under 2 MiB regions that are in use from end to end. Huge pages
  /// serve all processes, whose page tables shrink to 1/8 (64 workers on 16 GB: 2 GB of page tables
  /// without). A region takes about 0.5 ms of copying, so a pool thread calls this. A reader that
  /// uses the region meanwhile waits for 2 to 4 ms. A region that one private transaction filled
  /// from end to end has its huge page already, before any reader sees it. Returns the number of
  /// regions done.
  std::size_t collapse(std::size_t max_regions) noexcept;

  /// The slot registry whose pins and leases hold memory back (shm/slots.h). The registry must not
  /// move until it is replaced. Null: there are no readers. After attach() no memory is reused
  /// before this call.
  void set_slots(class SlotTable* slots) noexcept;
  [[nodiscard]] StoreStats stats() const noexcept;
  /// Low space: less than a sixteenth of the limit is free, or no more than the reserve.
  [[nodiscard]] bool low_space() const;
  /// Low space that would remain if all chunks were free that only readers of old versions need.
  /// These chunks become free by themselves, at the latest with the next image (Checkpointer);
  /// dropping data does not free them sooner. So optional data is dropped at low space without
  /// pinned chunks, not at low_space() alone.
  [[nodiscard]] bool low_space_without_pins() const;
  /// Whether the present use, unpublished transactions included, leaves the part of the reserve
  /// that a step of kind `use` must leave. A store taken over without room for deletes below its
  /// limit gets a reserve above the limit, for deletes and compaction. That allowance falls to the
  /// limit as use falls.
  [[nodiscard]] bool leaves_reserve(Reserve use) const;
  /// Check of the header, chunk table and counters without a walk through the data; for tests and
  /// `store check`.
  Status check() const;

  /// Unversioned side table for refresh timers and expiry: `index` < kSideEntries.
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
