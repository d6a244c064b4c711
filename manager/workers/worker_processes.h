#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "manager/launch/launcher.h"
#include "manager/launch/watched_process.h"
#include "manager/workers/worker_pool_options.h"
#include "shm/slots.h"

namespace pando::manager {

/// Starts, finds and ends processes of workers, and keeps the pages of their slots: a page names
/// its process, so that the next manager finds the process.
class WorkerProcesses {
 public:
  /// References must outlive this object; `launcher` may be null.
  WorkerProcesses(asio::io_context& io, shm::SlotTable& slots, const Launcher* launcher,
                  const WorkerPoolOptions& options) noexcept
      : io_(io), slots_(slots), launcher_(launcher), options_(options) {}

  /// Makes the slot's page and starts a process for it, which no page names yet.
  Result<Child> start(std::uint32_t slot);
  /// The worker of the slot that its page names, where that process lives and is one.
  [[nodiscard]] std::optional<Child> recorded(std::uint32_t slot) const;
  /// Names the process in the slot's page: from now on the next manager knows of the process,
  /// attached or not.
  WatchedProcess watch(std::uint32_t slot, Child child);
  /// Notes in the slot's page that a worker of somebody else came, unless the worker has noted it.
  void note_start(std::uint32_t slot);
  /// Whether the slot, whose process has ended, had a worker that was ordered to stop, or
  /// none at all.
  [[nodiscard]] bool has_left(std::uint32_t slot) const;
  /// Kills the slot's process; a failure is logged.
  void kill(std::uint32_t slot, WatchedProcess& process) const;
  /// Clears the page of a slot whose process has ended. A page that the worker has damaged goes.
  void clear_page(std::uint32_t slot);

 private:
  asio::io_context& io_;
  shm::SlotTable& slots_;
  const Launcher* launcher_;
  const WorkerPoolOptions& options_;
};

}  // namespace pando::manager
