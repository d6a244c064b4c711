#pragma once

#include <chrono>
#include <cstdint>

#include "manager/start/server_parts.h"
#include "manager/workers/worker_pool.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// The bound for memory that is held back for readers of old versions. The worker that holds the
/// oldest version is asked for it, and ended when that does not help; immediately when twice as
/// much is held back.
class PinnedMemory {
 public:
  /// References outlive the object.
  PinnedMemory(shm::Store& store, shm::SlotTable& slots, StoreServices& services,
               WorkerPool& workers)
      : store_(store), slots_(slots), services_(services), workers_(workers) {}

  /// Call at each publication, which alone adds to the memory, and each second, to end a worker
  /// whose grace is over. `limit` is in bytes.
  void check(std::uint64_t limit);

 private:
  [[nodiscard]] std::uint64_t held_bytes() const;

  shm::Store& store_;
  shm::SlotTable& slots_;
  StoreServices& services_;
  WorkerPool& workers_;
  std::chrono::steady_clock::time_point warned_{};  // last warning
};

}  // namespace pando::manager
