#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "manager/workers/layout_succession.h"
#include "manager/workers/rules/slot_rules.h"
#include "manager/workers/socket_handover.h"
#include "manager/workers/worker_admission.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_processes.h"
#include "manager/workers/worker_table.h"
#include "shm/slots.h"

namespace pando::manager {

/// The parts of the pool on which WorkerSupervisor and WorkerLifecycle work. They outlive both.
struct WorkerParts {
  WorkerTable& table;
  shm::SlotTable& slots;
  Listeners& listeners;
  WorkerProcesses& processes;
  const WorkerPoolOptions& options;
  SocketHandover& handover;
  LayoutSuccession& succession;
};

/// The process of each slot from its start to its end: awaits its Hello and its connection, has it
/// stop or kills it, and starts the next one after a pause. Also workers that the last manager
/// started. WorkerSupervisor decides which slots should have one.
class WorkerLifecycle {
 public:
  struct Calls {
    /// Takes the connections that wait.
    std::function<void()> accept_waiting;
    /// The slot's worker will be told to stop.
    std::function<void(std::uint32_t slot)> leaves;
    /// The slot's process has ended, and its page is clear.
    std::function<void(std::uint32_t slot)> ended;
    /// A slot without a process is about to retire: the next worker may be waited for elsewhere.
    std::function<void()> retires;
    /// A slot is held by a process that cannot be ended: another one should take its place.
    std::function<void()> lost;
    /// A slot whose worker was awaited has one, or has none for good.
    std::function<void()> settle;
    /// A slot has gone while all workers end.
    std::function<void()> emptied;
  };

  WorkerLifecycle(const WorkerParts& parts, Calls calls);

  [[nodiscard]] std::vector<SlotFacts> facts() const;

  /// Not while a worker goes on with the last manager's store: it is tried again then.
  void launch(WorkerSlot& slot);
  void launch_after(WorkerSlot& slot, std::chrono::milliseconds pause);
  /// The slot is empty until a worker comes; its sockets are read by others meanwhile.
  void await_next_worker(WorkerSlot& slot);
  /// Waits for the workers of the last manager, which come by themselves.
  void await_adopted_workers();
  void drain(WorkerSlot& slot);
  void tell_to_stop(WorkerSlot& slot);
  void kill(WorkerSlot& slot);

  /// The process that is in the slot, or should come. An adopted worker's pid comes from its page,
  /// where the last manager wrote it.
  WorkerAdmission::Place place_of(std::uint32_t number);
  /// The process at the other end of `link` was admitted to the slot.
  void worker_came(WorkerSlot& slot, const std::shared_ptr<WorkerLink>& link);
  /// The connection of the slot's worker has broken: the process must come back soon.
  void connection_lost(WorkerSlot& slot);
  /// Removes the slot and its page's file.
  void close_slot(std::uint32_t number);
  /// Removes the slot.
  void forget(std::uint32_t number);

 private:
  [[nodiscard]] SlotFacts facts_of(const WorkerSlot& slot) const;
  void step_after(WorkerSlot& slot, std::chrono::milliseconds pause,
                  std::function<void(WorkerSlot&)> step);
  void watch(WorkerSlot& slot, Child child);
  void ended(WorkerSlot& slot);
  void vacated(WorkerSlot& slot);
  void retry_later(WorkerSlot& slot);
  void await_adopted_worker(WorkerSlot& slot);
  void end_if_silent(WorkerSlot& slot);
  void end_silent_adopted_worker(WorkerSlot& slot);
  void end_process(WorkerSlot& slot);
  void give_up(WorkerSlot& slot);
  void check_lost_slot(WorkerSlot& slot);

  WorkerParts parts_;
  Calls calls_;
};

}  // namespace pando::manager
