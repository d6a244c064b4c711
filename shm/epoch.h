#pragma once

#include <atomic>
#include <cstdint>

#include "base/crash_point.h"
#include "shm/map/holds.h"
#include "shm/slots.h"

/// The whole pin protocol: how the writer publishes a version, how a reader holds one, and how the
/// writer knows which versions are held. Threads and processes run this same code
/// (tests/property/epoch_litmus.cpp runs it both ways).
///
/// S is the single order of all seq_cst operations.
///   Writer, version v:  root.store(v)   →  epoch.store(v)  →  slot.load, then leases.load
///   Reader:             epoch.load = e  →  slot.store(e)   →  root.load
/// A chunk is "freed at v" when its last block left with version v. The writer reuses the chunk
/// only after a load that came after epoch.store(v) showed 0 or at least v in each slot. Then the
/// reader's root.load sees v or newer, which does not refer to the chunk. The root may be newer
/// than e: the pin then holds back too much for one batch, never too little.
///
/// docs/explanation/chunk-reuse.md has the whole argument, with leases, deaths, and why plain
/// release stores do not suffice.
namespace pando::shm {

/// The two words that all workers load for each batch, alone on their cache line.
struct alignas(64) Publication {
  /// Reference of the current version's root block. Written by the writer only, seq_cst (see
  /// above); read by readers, seq_cst. A crash right after it leaves `epoch` one too low: readers
  /// are served the new version and pin the older number, which holds back too much. Attaching
  /// stores the number.
  std::atomic<std::uint32_t> root;
  std::uint32_t unused;
  /// The current version's number, never 0. Written by the writer only, after `root`, seq_cst; read
  /// by readers before they pin, seq_cst. A crash right after it leaves the chunk counts of the
  /// version before; attaching applies the root block's list of counts again.
  std::atomic<std::uint64_t> epoch;
};
static_assert(sizeof(Publication) == 64, "other words on this line would slow every batch down");

inline void publish_words(Publication& words, std::uint32_t root, std::uint64_t version) noexcept {
  words.root.store(root, std::memory_order_seq_cst);
  crash_point("store-publish-root");
  words.epoch.store(version, std::memory_order_seq_cst);
  crash_point("store-publish-epoch");
}

/// Result of a pin: the number that the slot shows, and the root, which is at least as new.
struct Pinned {
  std::uint64_t epoch;
  std::uint32_t root;
};

/// `slot` is written by its one reader only (0 = idle) and read by the writer. seq_cst, see above.
/// A crash here leaves a pin that no process will drop. The kernel drops the slot's lock, so the
/// writer ignores that pin.
[[nodiscard]] inline Pinned pin(const Publication& words,
                                std::atomic<std::uint64_t>& slot) noexcept {
  const std::uint64_t epoch = words.epoch.load(std::memory_order_seq_cst);
  slot.store(epoch, std::memory_order_seq_cst);
  return Pinned{epoch, words.root.load(std::memory_order_seq_cst)};
}

/// Release: the reader's last load from the version comes before the writer sees the slot idle.
inline void unpin(std::atomic<std::uint64_t>& slot) noexcept {
  slot.store(0, std::memory_order_release);
}

/// Makes a lease of `version`, which the slot's pin holds at this moment. The worker writes the
/// lease; the writer reads the lease *after* the slot word. A writer that finds the slot already
/// idle (or re-pinned) then finds the lease, because the lease was stored first; both are seq_cst.
/// A lease names exactly one version, so chunks that were taken into use after the lease are not
/// held back.
inline void hold_lease(Lease& lease, std::uint64_t version) noexcept {
  lease.epoch.store(version, std::memory_order_seq_cst);
}

/// Release, for the same reason as in unpin().
inline void drop_lease(Lease& lease) noexcept { lease.epoch.store(0, std::memory_order_release); }

/// Adds the pins of one page that are below `current` (newer pins hold nothing back yet). Returns
/// true when the page has any. The slot word is loaded before the leases: see hold_lease().
inline bool collect_holds(const SlotPage& page, std::uint64_t current, Holds& holds) {
  bool any = false;
  const std::uint64_t batch = page.epoch.load(std::memory_order_seq_cst);
  if (batch != 0 && batch < current) {
    any = true;
    if (batch < holds.oldest_batch) holds.oldest_batch = batch;
  }
  for (const Lease& lease : page.leases) {
    const std::uint64_t version = lease.epoch.load(std::memory_order_seq_cst);
    if (version == 0 || version >= current) continue;
    any = true;
    holds.exact.push_back(version);
  }
  return any;
}

}  // namespace pando::shm
