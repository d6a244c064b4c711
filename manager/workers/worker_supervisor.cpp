#include "manager/workers/worker_supervisor.h"

#include <asio/post.hpp>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr std::chrono::seconds kTick{1};

/// Adds slots to the table whose external worker ended without an order to stop, under the last
/// manager or while there was none. By the same mark, a slot that has sockets alone is not added.
void miss_lost_workers(WorkerTable& table, const shm::SlotTable& slots,
                       const WorkerProcesses& processes) {
  for (const auto number : slots.numbers())
    if (!processes.has_left(number)) table.at(number);
  for (auto& [number, slot] : table.slots())
    slot.left = !slot.process && !slot.awaited && processes.has_left(number);
}

}  // namespace

WorkerSupervisor::WorkerSupervisor(const WorkerParts& parts, Calls calls)
    : parts_(parts),
      calls_(std::move(calls)),
      lifecycle_(parts, lifecycle_calls()),
      readers_(parts.slots),
      tick_timer_(parts.table.io()) {}

WorkerLifecycle::Calls WorkerSupervisor::lifecycle_calls() {
  WorkerLifecycle::Calls calls;
  calls.accept_waiting = [this] { calls_.accept_waiting(); };
  calls.leaves = [this](std::uint32_t slot) {
    if (calls_.leaves) calls_.leaves(slot);
  };
  calls.ended = [this](std::uint32_t slot) {
    readers_.forget(slot);
    if (calls_.pins_cleared) calls_.pins_cleared();
    if (calls_.ended) calls_.ended(slot);
  };
  calls.retires = [this] { hasten_if_none_lives(); };
  calls.lost = [this] {
    if (parts_.options.external) return;
    if (auto added = add(); !added) log::error("worker_not_added", "error", added.error().text);
  };
  calls.settle = [this] { settle_if_complete(); };
  calls.emptied = [this] { finish_stop_if_empty(); };
  return calls;
}

Status WorkerSupervisor::start(std::uint32_t count) {
  parts_.table.phase.started = true;
  tick();
  lifecycle_.await_adopted_workers();
  parts_.succession.await_workers();
  for (std::uint32_t number = 0; !parts_.options.external && number < count; ++number)
    if (parts_.table.find(number) == nullptr) lifecycle_.launch(parts_.table.at(number));
  // Of the other slots with sockets none is wanted, unless a unit starts its worker.
  parts_.handover.await_readers(parts_.options.external ? WorkerSlot::State::kDead
                                                        : WorkerSlot::State::kDraining);
  if (!parts_.options.external) set_count(count);
  if (parts_.options.external) miss_lost_workers(parts_.table, parts_.slots, parts_.processes);
  static_cast<void>(parts_.handover.take_failure());
  settle_if_complete();
  return parts_.handover.take_failure();
}

void WorkerSupervisor::settle_if_complete() {
  if (!parts_.table.phase.started || parts_.table.phase.settled) return;
  if (!none_awaited(lifecycle_.facts())) return;
  parts_.table.phase.settled = true;
  for (auto& [number, slot] : parts_.table.slots()) {
    const bool leaving = slot.state == WorkerSlot::State::kDraining;
    // Opened before the process has said Hello: queries wait for it rather than bounce. A slot
    // whose worker has to wait for long gets none.
    const bool waits =
        parts_.table.has_previous_store() && !slot.keeps_store && !parts_.slots.alive(number);
    if (!waits && (slot.link || !(parts_.options.external || leaving)))
      parts_.handover.open(number);
    if (slot.link) calls_.serve(slot);
    parts_.succession.succeed(slot);
  }
  fill_vacant_slots();
}

void WorkerSupervisor::fill_vacant_slots() {
  if (!parts_.table.phase.settled || parts_.table.phase.stopping) return;
  for (const SlotFacts& before : lifecycle_.facts()) {
    WorkerSlot* slot = parts_.table.find(before.number);
    if (slot == nullptr) continue;
    const auto need = need_of(before, std::chrono::steady_clock::now(), parts_.options.external);
    if (need == SlotNeed::kEnd) lifecycle_.tell_to_stop(*slot);
    if (need == SlotNeed::kWorker) lifecycle_.launch(*slot);
  }
}

void WorkerSupervisor::set_count(std::uint32_t count) {
  for (std::uint32_t have = parts_.table.count(); have < count; ++have)
    if (auto added = add(); !added)
      return log::error("worker_not_added", "error", added.error().text);
  for (const auto number : surplus_slots(lifecycle_.facts(), count))
    lifecycle_.drain(parts_.table.at(number));
}

Result<std::uint32_t> WorkerSupervisor::add() {
  if (parts_.options.external)
    return fail(Errc::kUnsupported, "workers are started by somebody else");
  const std::uint32_t number = parts_.table.lowest_free();
  if (number >= shm::kMaxSlots) return fail(Errc::kFull, "all {} slots are in use", shm::kMaxSlots);
  // Its sockets are opened when it says Hello: until then nothing can wait in them.
  lifecycle_.launch(parts_.table.at(number));
  return number;
}

Status WorkerSupervisor::remove(std::uint32_t number, std::function<void()> done) {
  WorkerSlot* slot = parts_.table.find(number);
  if (slot == nullptr) return fail(Errc::kNotFound, "no worker in slot {}", number);
  if (done) slot->on_removed.push_back(std::move(done));
  if (slot->state != WorkerSlot::State::kDraining) lifecycle_.drain(*slot);
  return {};
}

void WorkerSupervisor::hasten_if_none_lives() {
  if (parts_.options.external || parts_.table.phase.stopping) return;
  const auto soon = std::chrono::steady_clock::now() + RestartPause::kFirst;
  if (const auto next = slot_to_hasten(lifecycle_.facts(), soon))
    lifecycle_.launch_after(parts_.table.at(*next), RestartPause::kFirst);
}

void WorkerSupervisor::previous_layout_worker_ended(WorkerSlot& slot) {
  if (parts_.table.phase.stopping) {
    if (!slot.process) lifecycle_.forget(slot.number);
    return finish_stop_if_empty();
  }
  if (!parts_.table.phase.settled) return settle_if_complete();  // fills the slot
  if (slot.process || slot.link) return;
  if (slot.state == WorkerSlot::State::kDraining) return lifecycle_.tell_to_stop(slot);
  // As after the end of any worker.
  lifecycle_.await_next_worker(slot);
  if (!parts_.options.external) lifecycle_.launch(slot);
}

// The end
// -------------------------------------------------------------------------------------------

void WorkerSupervisor::stop(std::function<void()> done) {
  on_stopped_ = std::move(done);
  parts_.table.phase.stopping = true;
  parts_.succession.stop_looking();
  for (auto& [number, slot] : parts_.table.slots()) {
    slot.step.cancel();
    parts_.handover.cancel(number);
    parts_.succession.cancel(number);
    if (slot.link) slot.link->stop(parts_.options.stop_grace_ms);
    parts_.succession.stop(slot);
  }
  std::vector<std::uint32_t> empty;
  for (const auto& [number, slot] : parts_.table.slots())
    if (!slot.process && !parts_.succession.serves(number)) empty.push_back(number);
  for (const auto number : empty) lifecycle_.forget(number);
  parts_.table.after(tick_timer_, parts_.options.stop_time(), [this] {
    for (auto& [number, slot] : parts_.table.slots()) lifecycle_.kill(slot);
    // A process that cannot be ended does not block the stop.
    parts_.table.after(tick_timer_, parts_.options.kill_time, [this] {
      for (const auto& [number, slot] : parts_.table.slots())
        log::error("worker_left_behind", "slot", number, "pid", slot.pid);
      abandon();
      finish_stop_if_empty();
    });
  });
  finish_stop_if_empty();
}

void WorkerSupervisor::abandon() {
  tick_timer_.cancel();
  parts_.succession.stop_looking();
  for (const auto& [number, slot] : parts_.table.slots())
    if (slot.link) slot.link->leave();
  parts_.succession.leave_all();
  parts_.handover.forget_all();
  parts_.succession.forget_all();
  parts_.table.slots().clear();
}

void WorkerSupervisor::finish_stop_if_empty() {
  if (!parts_.table.slots().empty()) return;
  tick_timer_.cancel();
  for (const auto slot : parts_.listeners.slots()) parts_.listeners.close(slot);
  calls_.stop_listening();
  if (!on_stopped_) return;
  asio::post(parts_.table.io(), std::exchange(on_stopped_, {}));
}

// Once a second
// ----------------------------------------------------------------------------------

/// Looks for damaged slots, stuck readers, and listening sockets that could not be opened.
void WorkerSupervisor::tick() {
  // A tick that was queued when stop() set the timer must not set the timer again.
  if (parts_.table.phase.stopping) return;
  for (auto& [number, slot] : parts_.table.slots()) {
    if (slot.process) check_reader(slot);
    if (slot.link) slot.link->tell_finished();
  }
  fill_vacant_slots();
  hasten_if_none_lives();
  for (const std::uint32_t number : parts_.handover.find_impairing())
    if (WorkerSlot* slot = parts_.table.find(number)) {
      log::error("worker_impairs_sockets", "slot", number, "pid", slot->pid);
      lifecycle_.kill(*slot);
    }
  parts_.handover.retry_openings();
  parts_.table.after(tick_timer_, kTick, [this] { tick(); });
}

void WorkerSupervisor::check_reader(WorkerSlot& slot) {
  // Versions of another store do not compare with ours.
  const bool compares = calls_.current_version && !slot.keeps_store;
  switch (readers_.check(slot.number, std::chrono::steady_clock::now(), parts_.options.pin_time,
                         compares ? calls_.current_version() : 0)) {
    case ReaderWatch::Verdict::kHealthy:
      return;
    case ReaderWatch::Verdict::kDamaged:
      log::error("worker_slot_damaged", "slot", slot.number, "pid", slot.pid);
      break;
    case ReaderWatch::Verdict::kStuck:
      log::error("worker_stuck", "slot", slot.number, "pid", slot.pid, "limit_ms",
                 parts_.options.pin_time.count());
  }
  lifecycle_.kill(slot);
}

void WorkerSupervisor::release_oldest(std::uint64_t before, bool urgent) {
  std::vector<std::uint32_t> readers;
  for (const auto& [number, slot] : parts_.table.slots())
    if (!slot.keeps_store) readers.push_back(number);
  const auto held =
      readers_.release_oldest(readers, before, std::chrono::steady_clock::now(), urgent);
  for (const auto number : held.overdue) {
    WorkerSlot& slot = parts_.table.at(number);
    log::error("worker_holds_memory", "slot", number, "pid", slot.pid, "version", held.version);
    lifecycle_.kill(slot);
  }
}

}  // namespace pando::manager
