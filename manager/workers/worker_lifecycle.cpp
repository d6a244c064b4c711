#include "manager/workers/worker_lifecycle.h"

#include <fcntl.h>

#include <utility>

#include "base/crash_point.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {
using std::chrono::milliseconds;
constexpr milliseconds kPreviousStorePause{1000};
}  // namespace

WorkerLifecycle::WorkerLifecycle(const WorkerParts& parts, Calls calls)
    : parts_(parts), calls_(std::move(calls)) {}

SlotFacts WorkerLifecycle::facts_of(const WorkerSlot& slot) const {
  return {.number = slot.number,
          .state = slot.state,
          .has_process = slot.process.has_value(),
          .connected = slot.link != nullptr,
          .awaited = slot.awaited,
          .lost = slot.lost,
          .previous_layout = parts_.succession.serves(slot.number),
          .previous_layout_awaited = parts_.succession.is_awaited(slot.number),
          .closes = parts_.handover.is_ending(slot.number),
          .next_step = slot.step.expiry()};
}

std::vector<SlotFacts> WorkerLifecycle::facts() const {
  std::vector<SlotFacts> all;
  for (const auto& [number, slot] : std::as_const(parts_.table).slots())
    all.push_back(facts_of(slot));
  return all;
}

/// The slot's next step by time, instead of the one before. A slot that has gone, or has another
/// process by then, takes none.
void WorkerLifecycle::step_after(WorkerSlot& slot, milliseconds pause,
                                 std::function<void(WorkerSlot&)> step) {
  parts_.table.after(slot.step, pause,
                     [this, number = slot.number, pid = slot.pid, step = std::move(step)] {
                       WorkerSlot* found = parts_.table.find(number);
                       if (found != nullptr && found->pid == pid) step(*found);
                     });
}

// Processes from start to end
// --------------------------------------------------------------------------

void WorkerLifecycle::launch(WorkerSlot& slot) {
  if (parts_.table.has_previous_store()) {
    // Sockets that the slot has are read by others meanwhile.
    if (!parts_.handover.is_ending(slot.number)) await_next_worker(slot);
    return launch_after(slot, kPreviousStorePause);
  }
  slot.state = WorkerSlot::State::kStarting;
  slot.greeted = slot.adopted = slot.told_to_stop = false;
  parts_.handover.set_known(slot.number, {});
  slot.restarts.process_started(std::chrono::steady_clock::now());
  // A connection that was opened before now is not the new process's, even if that process gets the
  // pid of an old one.
  calls_.accept_waiting();
  // A reader that nobody knows would share the slot's page with the new worker.
  if (parts_.slots.alive(slot.number)) return give_up(slot);
  auto child = parts_.processes.start(slot.number);
  if (!child) {
    log::error("worker_start_failed", "slot", slot.number, "error", child.error().text);
    await_next_worker(slot);
    return retry_later(slot);
  }
  crash_point("worker-started");
  log::info("worker_started", "slot", slot.number, "pid", child->pid);
  watch(slot, std::move(*child));
  crash_point("worker-recorded");
  step_after(slot, parts_.options.hello_time, [this](WorkerSlot& late) { end_if_silent(late); });
}

void WorkerLifecycle::watch(WorkerSlot& slot, Child child) {
  slot.pid = child.pid;
  slot.process.emplace(parts_.processes.watch(slot.number, std::move(child)));
  slot.process->on_end(parts_.table.guarded([this, number = slot.number, pid = slot.pid] {
    WorkerSlot& gone = parts_.table.at(number);
    if (gone.process && gone.pid == pid) ended(gone);
  }));
}

WorkerAdmission::Place WorkerLifecycle::place_of(std::uint32_t number) {
  const WorkerSlot* slot = parts_.table.find(number);
  if (slot != nullptr && slot->process) return {slot->pid, 0};
  const auto recorded = parts_.processes.recorded(number);
  return {0, recorded ? recorded->pid : 0};
}

void WorkerLifecycle::worker_came(WorkerSlot& slot, const std::shared_ptr<WorkerLink>& link) {
  if (!slot.process || slot.awaited) {
    const bool is_new = !slot.awaited;
    if (parts_.options.external && slot.pid != 0 && slot.pid != link->peer().pid)
      slot.restarts.process_replaced();
    slot.adopted = true;
    slot.told_to_stop = slot.left = false;
    watch(slot, {link->peer().pid, Fd(::fcntl(link->peer().pidfd.get(), F_DUPFD_CLOEXEC, 0))});
    // Also a worker that ends before it attaches is missed.
    if (parts_.options.external && is_new) parts_.processes.note_start(slot.number);
  }
  if (slot.link) slot.link->close();
  slot.link = link;
  slot.greeted = true;
  slot.awaited = false;
  slot.step.cancel();
}

/// The worker serves on without a manager, but gets no keys and no sockets.
void WorkerLifecycle::connection_lost(WorkerSlot& slot) {
  if (!slot.process || slot.state == WorkerSlot::State::kDraining || parts_.table.phase.stopping)
    return;
  step_after(slot, parts_.options.hello_time, [this](WorkerSlot& late) { end_if_silent(late); });
}

/// A process that has no connection by now does not answer.
void WorkerLifecycle::end_if_silent(WorkerSlot& slot) {
  if (slot.link || !slot.process) return;
  log::error("worker_silent", "slot", slot.number, "pid", slot.pid);
  end_process(slot);
}

/// The process in `slot` has ended: the kernel has dropped its locks and closed its descriptors.
void WorkerLifecycle::ended(WorkerSlot& slot) {
  const std::string how = slot.process->reap();
  log::info("worker_ended", "slot", slot.number, "pid", slot.pid, "how", how);
  slot.process.reset();
  slot.lost = false;
  slot.attached = slot.keeps_store = false;
  slot.step.expires_at(std::chrono::steady_clock::time_point::min());
  if (slot.link) slot.link->close();
  slot.link.reset();
  parts_.processes.clear_page(slot.number);
  parts_.handover.replace_impaired(slot.number);
  parts_.handover.worker_lost(slot.number);
  calls_.ended(slot.number);
  if (parts_.table.phase.stopping) {
    parts_.listeners.close(slot.number);
    parts_.slots.remove(slot.number);
    if (!parts_.succession.serves(slot.number)) forget(slot.number);
    return calls_.emptied();
  }
  vacated(slot);
}

/// Nobody is in the slot any more.
void WorkerLifecycle::vacated(WorkerSlot& slot) {
  slot.left = parts_.options.external && parts_.processes.has_left(slot.number);
  const bool has_remains = !slot.left || !parts_.listeners.of(slot.number).empty();
  const auto next = after_end(facts_of(slot), has_remains, parts_.options.external);
  const bool was_awaited = std::exchange(slot.awaited, false);
  if (next == AfterEnd::kRetire) {
    calls_.retires();
    parts_.handover.retire(slot);
  } else if (next == AfterEnd::kForget) {
    forget(slot.number);
  } else {
    await_next_worker(slot);
    if (next == AfterEnd::kRestart) retry_later(slot);
  }
  if (was_awaited) calls_.settle();
}

void WorkerLifecycle::await_next_worker(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kDead;
  if (parts_.succession.serves(slot.number)) return;  // the previous-layout worker reads the queue
  parts_.handover.await_worker(slot);
}

void WorkerLifecycle::retry_later(WorkerSlot& slot) {
  const bool others_serve = parts_.table.other_serving(slot) != nullptr;
  launch_after(slot, slot.restarts.process_ended(slot.greeted, std::chrono::steady_clock::now(),
                                                 others_serve));
}

void WorkerLifecycle::launch_after(WorkerSlot& slot, milliseconds pause) {
  slot.state = WorkerSlot::State::kDead;
  step_after(slot, pause, [this](WorkerSlot& again) {
    if (again.state == WorkerSlot::State::kDead && !again.process) launch(again);
  });
}

// Workers of the last manager
// --------------------------------------------------------------------------

/// Workers of the last manager come by themselves: they are waited for.
void WorkerLifecycle::await_adopted_workers() {
  for (const auto number : parts_.slots.numbers()) {
    auto process = parts_.processes.recorded(number);
    if (!process && !parts_.slots.alive(number)) continue;
    WorkerSlot& slot = parts_.table.at(number);
    if (slot.greeted) continue;
    if (process) watch(slot, std::move(*process));
    await_adopted_worker(slot);
  }
}

void WorkerLifecycle::await_adopted_worker(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kStarting;
  slot.awaited = true;
  step_after(slot, parts_.options.adopted_time,
             [this](WorkerSlot& late) { end_silent_adopted_worker(late); });
}

/// The worker has not said Hello in time.
void WorkerLifecycle::end_silent_adopted_worker(WorkerSlot& slot) {
  if (slot.greeted) return;
  if (!slot.process)
    if (auto process = parts_.processes.recorded(slot.number)) watch(slot, std::move(*process));
  if (slot.process) {
    log::warning("worker_silent", "slot", slot.number, "pid", slot.pid);
    return end_process(slot);
  }
  if (parts_.slots.alive(slot.number)) return give_up(slot);
  parts_.slots.clear(slot.number);
  vacated(slot);
}

/// Kills the slot's process. A process may outlive even that, in a call that waits for a disk.
void WorkerLifecycle::end_process(WorkerSlot& slot) {
  kill(slot);
  step_after(slot, parts_.options.kill_time, [this](WorkerSlot& late) {
    if (late.process) give_up(late);
  });
}

/// A process that cannot be found or ended holds the slot. The slot leaves when the process does,
/// and a worker in another slot takes its place.
void WorkerLifecycle::give_up(WorkerSlot& slot) {
  const std::uint32_t number = slot.number;
  const auto* page = parts_.slots.page(number);
  log::error("slot_taken", "slot", number, "pid",
             slot.process || page == nullptr ? slot.pid : static_cast<pid_t>(page->pid));
  const bool leaving = slot.state == WorkerSlot::State::kDraining;
  slot.state = WorkerSlot::State::kDraining;
  slot.awaited = false;
  slot.lost = true;
  step_after(slot, parts_.options.adopted_time,
             [this](WorkerSlot& late) { check_lost_slot(late); });
  parts_.succession.stop(slot);
  if (!leaving) calls_.lost();
  parts_.handover.steer();
  calls_.settle();
}

void WorkerLifecycle::check_lost_slot(WorkerSlot& slot) {
  if (!slot.lost) return;
  if (!slot.process && !parts_.slots.alive(slot.number)) {
    slot.lost = false;
    return parts_.handover.retire(slot);
  }
  kill(slot);
  step_after(slot, parts_.options.adopted_time,
             [this](WorkerSlot& late) { check_lost_slot(late); });
}

// Leaving
// -------------------------------------------------------------------------------------

void WorkerLifecycle::drain(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kDraining;
  log::info("worker_leaving", "slot", slot.number, "pid", slot.pid);
  parts_.handover.steer();
  calls_.leaves(slot.number);
  step_after(slot, SocketHandover::kSteerSettle, [this](WorkerSlot& late) { tell_to_stop(late); });
}

void WorkerLifecycle::tell_to_stop(WorkerSlot& slot) {
  if (slot.told_to_stop) return;
  if (parts_.succession.serves(slot.number) && !slot.process) {  // its end continues the draining
    if (!parts_.succession.is_awaited(slot.number)) parts_.succession.stop(slot);
    return;
  }
  if (!slot.process && !parts_.slots.alive(slot.number)) return parts_.handover.retire(slot);
  if (slot.link) {
    slot.told_to_stop = true;
    slot.link->stop(parts_.options.stop_grace_ms);
  }
  // An adopted or new worker that has not said Hello yet is told when it does.
  step_after(slot, parts_.options.stop_time(), [this](WorkerSlot& late) {
    late.process ? end_process(late) : end_silent_adopted_worker(late);
  });
}

void WorkerLifecycle::kill(WorkerSlot& slot) {
  if (slot.process) parts_.processes.kill(slot.number, *slot.process);
}

void WorkerLifecycle::close_slot(std::uint32_t number) {
  parts_.slots.remove(number);
  forget(number);
}

void WorkerLifecycle::forget(std::uint32_t number) {
  parts_.handover.forget(number);
  parts_.succession.forget(number);
  parts_.table.slots().erase(number);
}

}  // namespace pando::manager
