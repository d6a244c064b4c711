#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "manager/workers/layout_succession.h"
#include "manager/workers/rules/reader_watch.h"
#include "manager/workers/rules/slot_rules.h"
#include "manager/workers/socket_handover.h"
#include "manager/workers/worker_admission.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_processes.h"
#include "manager/workers/worker_table.h"
#include "shm/slots.h"

namespace pando::manager {

/// Carries out what the rules (manager/workers/rules) decide about slots: has workers started when
/// they are wanted, waits for each one's Hello and end, and ends those that are not wanted or harm.
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

  /// References must outlive this object.
  WorkerSupervisor(WorkerTable& table, shm::SlotTable& slots, Listeners& listeners,
                   WorkerProcesses& processes, const WorkerPoolOptions& options,
                   SocketHandover& handover, LayoutSuccession& succession, Calls calls);

  // As in WorkerPool.
  Status start(std::uint32_t count);
  void set_count(std::uint32_t count);
  Result<std::uint32_t> add();
  Status remove(std::uint32_t number, std::function<void()> done);
  void release_oldest(std::uint64_t before, bool urgent);
  void stop(std::function<void()> done);
  void abandon();

  /// The process that is in the slot, or should come. An adopted worker's pid comes from its page,
  /// where the last manager wrote it.
  WorkerAdmission::Place place_of(std::uint32_t number);
  /// The process behind `link` was admitted to the slot.
  void worker_came(WorkerSlot& slot, const std::shared_ptr<WorkerLink>& link);
  /// The connection of the slot's worker has broken: the process must come back soon.
  void connection_lost(WorkerSlot& slot);
  /// Lets all workers serve once no worker of the last manager is waited for.
  void settle_if_complete();
  /// Not while a worker goes on with the last manager's store: it is tried again then.
  void launch(WorkerSlot& slot);
  void drain(WorkerSlot& slot);
  void kill(WorkerSlot& slot);
  /// The slot's previous-layout worker has ended.
  void previous_layout_worker_ended(WorkerSlot& slot);
  /// Removes the slot and its page's file.
  void close_slot(std::uint32_t number);

 private:
  [[nodiscard]] SlotFacts facts_of(const WorkerSlot& slot) const;
  [[nodiscard]] std::vector<SlotFacts> facts() const;
  void step_after(WorkerSlot& slot, std::chrono::milliseconds pause,
                  std::function<void(WorkerSlot&)> step);
  void watch(WorkerSlot& slot, Child child);
  void ended(WorkerSlot& slot);
  void vacated(WorkerSlot& slot);
  void retry_later(WorkerSlot& slot);
  void launch_after(WorkerSlot& slot, std::chrono::milliseconds pause);
  void hasten_if_none_lives();
  void await_next_worker(WorkerSlot& slot);
  void await_adopted_workers();
  void await_adopted_worker(WorkerSlot& slot);
  void end_if_silent(WorkerSlot& slot);
  void end_silent_adopted_worker(WorkerSlot& slot);
  void end_process(WorkerSlot& slot);
  void give_up(WorkerSlot& slot);
  void look_at_lost_slot(WorkerSlot& slot);
  void fill_vacant_slots();
  void tell_to_stop(WorkerSlot& slot);
  void tick();
  void check_reader(WorkerSlot& slot);
  void forget(std::uint32_t number);
  void finish_stop_if_empty();

  WorkerTable& table_;
  shm::SlotTable& slots_;
  Listeners& listeners_;
  WorkerProcesses& processes_;
  const WorkerPoolOptions& options_;
  SocketHandover& handover_;
  LayoutSuccession& succession_;
  Calls calls_;
  ReaderWatch readers_;
  asio::steady_timer tick_timer_;
  std::function<void()> on_stopped_;
};

}  // namespace pando::manager
