#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "manager/workers/layout_succession.h"
#include "manager/workers/rules/reader_watch.h"
#include "manager/workers/socket_handover.h"
#include "manager/workers/worker_lifecycle.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_processes.h"
#include "manager/workers/worker_table.h"
#include "shm/slots.h"

namespace pando::manager {

/// Carries out what the rules (manager/workers/rules) decide about slots: how many there are, which
/// of them should have a worker, and which worker harms. WorkerLifecycle does so slot by slot.
class WorkerSupervisor {
 public:
  struct Calls {
    /// Takes the connections that wait.
    std::function<void()> accept_waiting;
    /// Takes no connection any more.
    std::function<void()> stop_listening;
    /// Gives a worker that has said Hello all that it needs.
    std::function<void(WorkerSlot&)> serve;
    /// The slot's worker will be told to stop, or its process has ended; may be empty.
    std::function<void(std::uint32_t slot)> leaves;
    std::function<void(std::uint32_t slot)> ended;
    // As in WorkerPoolHooks; may be empty.
    std::function<void()> pins_cleared;
    std::function<std::uint64_t()> current_version;
  };

  WorkerSupervisor(const WorkerParts& parts, Calls calls);

  // As in WorkerPool.
  Status start(std::uint32_t count);
  void set_count(std::uint32_t count);
  Result<std::uint32_t> add();
  Status remove(std::uint32_t number, std::function<void()> done);
  void release_oldest(std::uint64_t before, bool urgent);
  void stop(std::function<void()> done);
  void abandon();

  /// Lets all workers serve once no worker of the last manager is waited for.
  void settle_if_complete();
  /// The slot's previous-layout worker has ended.
  void previous_layout_worker_ended(WorkerSlot& slot);
  /// The processes, slot by slot.
  [[nodiscard]] WorkerLifecycle& lifecycle() noexcept { return lifecycle_; }

 private:
  [[nodiscard]] WorkerLifecycle::Calls lifecycle_calls();
  void fill_vacant_slots();
  void hasten_if_none_lives();
  void tick();
  void check_reader(WorkerSlot& slot);
  void finish_stop_if_empty();

  WorkerParts parts_;
  Calls calls_;
  WorkerLifecycle lifecycle_;
  ReaderWatch readers_;
  asio::steady_timer tick_timer_;
  std::function<void()> on_stopped_;
};

}  // namespace pando::manager
