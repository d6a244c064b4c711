#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shm/epoch.h"
#include "shm/map/chunk.h"
#include "shm/map/ref.h"
#include "shm/slots.h"
#include "shm/store.h"

/// The bytes of the live store. Only shm/ itself and white-box tests include this file.
///
///   0        64 KiB        …             kSideOffset      kChunksOffset        committed
///   | Header | chunk counts (u32 each)   | side table      | chunk 0 | chunk 1 | …    |  (hole)
///
/// The tables are reserved for the whole reach but sparse: only pages in use have memory.
namespace pando::shm {

/// Raised by hand when the meaning of a field changes while its size does not.
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint64_t kStoreMagic = 0x3145524F54534450;  // "PDSTORE1"
inline constexpr std::uint64_t kSlotMagic = 0x31544F4C53445050;   // "PPDSLOT1"

inline constexpr std::uint64_t kPageBytes = 4096;

/// The side table gets memory in steps of 2,048 entries, for each of which the header has a bit.
inline constexpr std::uint64_t kSideGranuleBytes = std::uint64_t{64} << 10;
inline constexpr std::uint32_t kSidePerGranule = kSideGranuleBytes / sizeof(Store::SideEntry);
inline constexpr std::uint32_t kSideGranules = Store::kSideEntries / kSidePerGranule;

inline constexpr std::uint64_t kCountsOffset = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kCountsBytes = kReach / kChunkBytes * sizeof(std::uint32_t);
inline constexpr std::uint64_t kSideOffset = kCountsOffset + kCountsBytes;
inline constexpr std::uint64_t kSideBytes = Store::kSideEntries * sizeof(Store::SideEntry);
/// Chunks start on a huge page, so that MADV_COLLAPSE can take 32 of them at a time.
inline constexpr std::uint64_t kChunksOffset =
    (kSideOffset + kSideBytes + kHugePage - 1) / kHugePage * kHugePage;
static_assert(kChunksOffset == kFirstBlock,
              "readers would take blocks for tables or pass over them");
inline constexpr std::uint32_t kMaxChunks = (kReach - kChunksOffset) / kChunkBytes;

[[nodiscard]] constexpr std::uint64_t chunk_offset(std::uint64_t chunk) noexcept {
  return kChunksOffset + chunk * kChunkBytes;
}
/// kNoChunk for offsets before the chunks.
[[nodiscard]] constexpr std::uint32_t chunk_at(std::uint64_t offset) noexcept {
  return offset < kChunksOffset
             ? kNoChunk
             : static_cast<std::uint32_t>((offset - kChunksOffset) / kChunkBytes);
}

//   0     8      16     20    24     32     40    48    56          64        72    88  128
//  |magic|layout|format|unit |chunk |device|inode|nonce|size_limit |committed|owner|borrowed|
//    96        128           192
//  | lineage | root, epoch | side…
/// First page of the file. All fields before `committed`, and `owner`, are written once, before the
/// file gets its name; so these fields may be read without any memory order.
struct Header {
  std::uint64_t magic;
  std::uint64_t layout;  // shm's own fingerprint folded with the caller's
  std::uint32_t format;
  std::uint32_t unit;
  std::uint64_t chunk_bytes;
  std::uint64_t device;  // of this very file: a copy carries the original's and is refused
  std::uint64_t inode;
  std::uint64_t nonce;  // distinguishes two stores in one place (and a reused inode)
  std::atomic<std::uint64_t> size_limit;  // as configured last; informational
  /// Bytes of the file that may be touched. Written by the writer after fallocate succeeded and
  /// before any root that refers beyond the old value (release); read by readers after the root
  /// (acquire). A crash between fallocate and this store leaves memory that is backed again later.
  alignas(64) std::atomic<std::uint64_t> committed;
  StoreOwner owner;  // only the manager asks: its journal and this store go together
  /// The number of first chunks that are an image's. A reader maps the image's file over these
  /// chunks, and stops doing so when a pin finds 0 here (shm/borrowing.h). Set before the file gets
  /// its name. The writer clears the field once: after the chunks have been copied, and before any
  /// root that refers to a reused chunk (release). Readers load the field after the root (acquire).
  /// A crash that left another number than 0 costs the store, because its chunks are not in the
  /// file: a new one is made.
  std::atomic<std::uint32_t> borrowed;
  /// The lineage of the versions (Store::lineage()). Written once, before the file gets its name.
  std::uint64_t lineage;
  Publication publication;
  /// One bit per granule of the side table that has memory (release after fallocate; acquire). A
  /// reader must not touch a hole: reading a hole allocates memory, or is SIGBUS on a full tmpfs.
  alignas(64) std::array<std::atomic<std::uint64_t>, kSideGranules / 64> side_backed;
};
static_assert(sizeof(Header) == 448 && sizeof(Header) <= kPageBytes,
              "the header's one page is backed first; a field beyond it would be SIGBUS");
static_assert(offsetof(Header, committed) == 64 && offsetof(Header, owner) == 72 &&
                  offsetof(Header, borrowed) == 88 && offsetof(Header, lineage) == 96 &&
                  offsetof(Header, publication) == 128 && offsetof(Header, side_backed) == 192,
              "a shared line would make each growth of the file a miss in every worker");
static_assert(std::is_standard_layout_v<Header>, "offsets are read by processes of other builds");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "a lock inside an atomic would live in one process only");

/// A chunk's count has two parts: the live bytes, and whether the chunk belongs to a block of
/// several chunks. Such a block cannot be emptied by moving small blocks, so the compactor leaves
/// its chunks alone.
inline constexpr std::uint32_t kRunFlag = std::uint32_t{1} << 31;
[[nodiscard]] constexpr std::uint32_t live_bytes(std::uint32_t count) noexcept {
  return count & ~kRunFlag;
}

//   0       8        16    20      24          28         32       36        40
//   |version|journal |root |bytes |open_chunk |open_from |changes |checksum |CountChange…
/// One version of the store. Published by its reference; immutable from then on. `changes` new
/// *absolute* counts follow: applying them twice is harmless, so attaching simply applies them
/// again.
struct RootBlock {
  std::uint64_t version;
  std::uint64_t journal_position;
  std::uint32_t root;        // the caller's root, in units
  std::uint32_t bytes;       // of this block as allocated
  std::uint32_t open_chunk;  // where the next version continues to allocate; kNoChunk = nowhere
  std::uint32_t open_from;   // bytes of the open chunk in use
  std::uint32_t changes;
  std::uint32_t checksum;  // of the fields before it and the count changes
};
struct CountChange {
  std::uint32_t chunk;
  std::uint32_t count;
};
static_assert(sizeof(RootBlock) == 40 && offsetof(RootBlock, checksum) == 36 &&
                  std::is_trivially_copyable_v<RootBlock> && std::is_standard_layout_v<RootBlock>,
              "readers of another build would take the journal position for the root");
static_assert(sizeof(CountChange) == 8 && std::is_trivially_copyable_v<CountChange>,
              "attaching would apply counts to the wrong chunks");

static_assert(sizeof(Store::SideEntry) == 32, "a zone's expiry would be read from its neighbour");
static_assert(kSideGranules % 64 == 0 && Store::kSideEntries % kSidePerGranule == 0,
              "the last entries would have no bit and never be backed");
static_assert(kSideOffset % kSideGranuleBytes == 0 && kChunksOffset % kHugePage == 0,
              "fallocate works on whole pages: a shared page would be punched with its neighbour");
static_assert(sizeof(Lease) == 24 && offsetof(SlotPage, epoch) == 64 &&
                  offsetof(SlotPage, leases) == 128 && std::is_standard_layout_v<SlotPage>,
              "manager and worker of different builds would look for pins in different places");

/// The scratch memory begins on a page of its own.
inline constexpr std::uint64_t kScratchOffset =
    (sizeof(SlotPage) + kPageBytes - 1) / kPageBytes * kPageBytes;
inline constexpr std::uint64_t kSlotFileBytes = kScratchOffset + kScratchBytes;
static_assert(kScratchBytes % kPageBytes == 0, "its pages are mapped one by one");

/// Fingerprint of everything above, folded with the caller's own.
[[nodiscard]] std::uint64_t fold_layout(std::uint64_t callers) noexcept;
/// Checksum of a root block and its count changes.
[[nodiscard]] std::uint32_t root_checksum(const RootBlock& block) noexcept;
/// The count changes that follow `block`.
[[nodiscard]] inline const CountChange* changes_of(const RootBlock& block) noexcept {
  return reinterpret_cast<const CountChange*>(&block + 1);
}
/// The root block at `ref` when the block lies in the window with all its count changes, else
/// nullptr.
[[nodiscard]] inline const RootBlock* root_block_at(const Window& window,
                                                    Ref<RootBlock> ref) noexcept {
  const RootBlock* block = window.at(ref);
  if (block == nullptr) return nullptr;
  const std::uint64_t bytes = sizeof(RootBlock) + block->changes * sizeof(CountChange);
  return window.at(ref, bytes);
}

}  // namespace pando::shm
