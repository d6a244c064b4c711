#include "manager/start/pinned_memory.h"

#include <algorithm>

#include "ipc/log.h"

namespace pando::manager {

namespace {
constexpr std::chrono::milliseconds kBetweenWarnings{1000};
}  // namespace

/// Chunks that checkpoints, dumps and the like hold are not the workers' fault.
std::uint64_t PinnedMemory::held_bytes() const {
  std::uint64_t waiting = store_.stats().waiting_chunks;
  for (const std::uint64_t version : slots_.own_epochs())
    waiting -= std::min<std::uint64_t>(waiting, store_.chunks_held_by(version));
  return waiting * shm::kChunkBytes;
}

void PinnedMemory::check(std::uint64_t limit) {
  // Until the image is copied no reader holds the chunks: they wait for the image.
  if (services_.copying_image) return;
  if (store_.stats().waiting_chunks * shm::kChunkBytes <= limit || held_bytes() <= limit) return;
  services_.upkeep->reclaim();
  const std::uint64_t bytes = held_bytes();
  if (bytes <= limit) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - warned_ >= kBetweenWarnings) {
    warned_ = now;
    log::warning("memory_pinned", "bytes", bytes, "limit", limit);
  }
  // Readers of the present version hold nothing, however long it has been the present one.
  workers_.release_oldest(store_.current().number, bytes / 2 > limit);
}

}  // namespace pando::manager
