#include "manager/workers/worker_supervisor.h"

#include <asio/post.hpp>
#include <utility>

#include <fcntl.h>

#include "base/crash_point.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = seconds(1);

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

WorkerSupervisor::WorkerSupervisor(WorkerTable& table, shm::SlotTable& slots, Listeners& listeners,
                                   WorkerProcesses& processes, const WorkerPoolOptions& options,
                                   SocketHandover& handover, LayoutSuccession& succession,
                                   Calls calls)
    : table_(table),
      slots_(slots),
      listeners_(listeners),
      processes_(processes),
      options_(options),
      handover_(handover),
      succession_(succession),
      calls_(std::move(calls)),
      readers_(slots),
      tick_timer_(table.io()) {}

// Facts
// -------------------------------------------------------------------------------------------

SlotFacts WorkerSupervisor::facts_of(const WorkerSlot& slot) const {
  return {.number = slot.number,
          .state = slot.state,
          .has_process = slot.process.has_value(),
          .connected = slot.link != nullptr,
          .awaited = slot.awaited,
          .lost = slot.lost,
          .previous_layout = succession_.serves(slot.number),
          .previous_layout_awaited = succession_.is_awaited(slot.number),
          .closes = handover_.is_ending(slot.number),
          .next_step = slot.step.expiry()};
}

std::vector<SlotFacts> WorkerSupervisor::facts() const {
  std::vector<SlotFacts> all;
  for (const auto& [number, slot] : std::as_const(table_).slots()) all.push_back(facts_of(slot));
  return all;
}

/// The slot's next step by time, instead of the one before. A slot that has gone, or has another
/// process by then, takes none.
void WorkerSupervisor::step_after(WorkerSlot& slot, milliseconds pause,
                                  std::function<void(WorkerSlot&)> step) {
  table_.after(slot.step, pause,
               [this, number = slot.number, pid = slot.pid, step = std::move(step)] {
                 WorkerSlot* found = table_.find(number);
                 if (found != nullptr && found->pid == pid) step(*found);
               });
}

// The number of workers
// --------------------------------------------------------------------------------

Status WorkerSupervisor::start(std::uint32_t count) {
  table_.phase.started = true;
  tick();
  await_adopted_workers();
  succession_.await_workers();
  for (std::uint32_t number = 0; !options_.external && number < count; ++number)
    if (table_.find(number) == nullptr) launch(table_.at(number));
  // Of the other slots with sockets none is wanted, unless a unit starts its worker.
  handover_.await_readers(options_.external ? WorkerSlot::State::kDead
                                            : WorkerSlot::State::kDraining);
  if (!options_.external) set_count(count);
  if (options_.external) miss_lost_workers(table_, slots_, processes_);
  static_cast<void>(handover_.take_failure());
  settle_if_complete();
  return handover_.take_failure();
}

void WorkerSupervisor::settle_if_complete() {
  if (!table_.phase.started || table_.phase.settled) return;
  if (!none_awaited(facts())) return;
  table_.phase.settled = true;
  for (auto& [number, slot] : table_.slots()) {
    const bool leaving = slot.state == WorkerSlot::State::kDraining;
    // Opened before the process has said Hello: queries wait for it rather than bounce. A slot
    // whose worker has to wait for long gets none.
    const bool waits = table_.has_previous_store() && !slot.keeps_store && !slots_.alive(number);
    if (!waits && (slot.link || !(options_.external || leaving))) handover_.open(number);
    if (slot.link) calls_.serve(slot);
    succession_.succeed(slot);
  }
  fill_vacant_slots();
}

void WorkerSupervisor::fill_vacant_slots() {
  if (!table_.phase.settled || table_.phase.stopping) return;
  for (const SlotFacts& before : facts()) {
    WorkerSlot* slot = table_.find(before.number);
    if (slot == nullptr) continue;
    const auto need = need_of(before, std::chrono::steady_clock::now(), options_.external);
    if (need == SlotNeed::kEnd) tell_to_stop(*slot);
    if (need == SlotNeed::kWorker) launch(*slot);
  }
}

void WorkerSupervisor::set_count(std::uint32_t count) {
  for (std::uint32_t have = table_.count(); have < count; ++have)
    if (auto added = add(); !added)
      return log::error("worker_not_added", "error", added.error().text);
  for (const auto number : surplus_slots(facts(), count)) drain(table_.at(number));
}

Result<std::uint32_t> WorkerSupervisor::add() {
  if (options_.external) return fail(Errc::kUnsupported, "workers are started by somebody else");
  const std::uint32_t number = table_.lowest_free();
  if (number >= shm::kMaxSlots) return fail(Errc::kFull, "all {} slots are in use", shm::kMaxSlots);
  // Its sockets are opened when it says Hello: until then nothing can wait in them.
  launch(table_.at(number));
  return number;
}

Status WorkerSupervisor::remove(std::uint32_t number, std::function<void()> done) {
  WorkerSlot* slot = table_.find(number);
  if (slot == nullptr) return fail(Errc::kNotFound, "no worker in slot {}", number);
  if (done) slot->on_removed.push_back(std::move(done));
  if (slot->state != WorkerSlot::State::kDraining) drain(*slot);
  return {};
}

// Processes from start to end
// --------------------------------------------------------------------------

void WorkerSupervisor::launch(WorkerSlot& slot) {
  if (table_.has_previous_store()) {
    // Sockets that the slot has are read by others meanwhile.
    if (!handover_.is_ending(slot.number)) await_next_worker(slot);
    return launch_after(slot, kTick);
  }
  slot.state = WorkerSlot::State::kStarting;
  slot.greeted = slot.adopted = slot.told_to_stop = false;
  handover_.set_known(slot.number, {});
  slot.restarts.process_started(std::chrono::steady_clock::now());
  // A connection that was opened before now is not the new process's, even if that process gets the
  // pid of an old one.
  calls_.accept_waiting();
  // A reader that nobody knows would share the slot's page with the new worker.
  if (slots_.alive(slot.number)) return give_up(slot);
  auto child = processes_.start(slot.number);
  if (!child) {
    log::error("worker_start_failed", "slot", slot.number, "error", child.error().text);
    await_next_worker(slot);
    return retry_later(slot);
  }
  crash_point("worker-started");
  log::info("worker_started", "slot", slot.number, "pid", child->pid);
  watch(slot, std::move(*child));
  crash_point("worker-recorded");
  step_after(slot, options_.hello_time, [this](WorkerSlot& late) { end_if_silent(late); });
}

void WorkerSupervisor::watch(WorkerSlot& slot, Child child) {
  slot.pid = child.pid;
  slot.process.emplace(processes_.watch(slot.number, std::move(child)));
  slot.process->on_end(table_.guarded([this, number = slot.number, pid = slot.pid] {
    WorkerSlot& gone = table_.at(number);
    if (gone.process && gone.pid == pid) ended(gone);
  }));
}

WorkerAdmission::Place WorkerSupervisor::place_of(std::uint32_t number) {
  const WorkerSlot* slot = table_.find(number);
  if (slot != nullptr && slot->process) return {slot->pid, 0};
  const auto recorded = processes_.recorded(number);
  return {0, recorded ? recorded->pid : 0};
}

void WorkerSupervisor::worker_came(WorkerSlot& slot, const std::shared_ptr<WorkerLink>& link) {
  if (!slot.process || slot.awaited) {
    const bool is_new = !slot.awaited;
    if (options_.external && slot.pid != 0 && slot.pid != link->peer().pid)
      slot.restarts.process_replaced();
    slot.adopted = true;
    slot.told_to_stop = slot.left = false;
    watch(slot, {link->peer().pid, Fd(::fcntl(link->peer().pidfd.get(), F_DUPFD_CLOEXEC, 0))});
    // Also a worker that ends before it attaches is missed.
    if (options_.external && is_new) processes_.note_start(slot.number);
  }
  if (slot.link) slot.link->close();
  slot.link = link;
  slot.greeted = true;
  slot.awaited = false;
  slot.step.cancel();
}

/// The worker serves on without a manager, but gets no keys and no sockets.
void WorkerSupervisor::connection_lost(WorkerSlot& slot) {
  if (!slot.process || slot.state == WorkerSlot::State::kDraining || table_.phase.stopping) return;
  step_after(slot, options_.hello_time, [this](WorkerSlot& late) { end_if_silent(late); });
}

/// A process that has no connection by now does not answer.
void WorkerSupervisor::end_if_silent(WorkerSlot& slot) {
  if (slot.link || !slot.process) return;
  log::error("worker_silent", "slot", slot.number, "pid", slot.pid);
  end_process(slot);
}

/// The process in `slot` has ended: the kernel has dropped its locks and closed its descriptors.
void WorkerSupervisor::ended(WorkerSlot& slot) {
  const std::string how = slot.process->reap();
  log::info("worker_ended", "slot", slot.number, "pid", slot.pid, "how", how);
  slot.process.reset();
  slot.lost = false;
  slot.attached = slot.keeps_store = false;
  readers_.forget(slot.number);
  slot.step.expires_at(std::chrono::steady_clock::time_point::min());
  if (slot.link) slot.link->close();
  slot.link.reset();
  processes_.clear_page(slot.number);
  handover_.replace_impaired(slot.number);
  handover_.worker_lost(slot.number);
  if (calls_.pins_cleared) calls_.pins_cleared();
  if (calls_.ended) calls_.ended(slot.number);
  if (table_.phase.stopping) {
    listeners_.close(slot.number);
    slots_.remove(slot.number);
    if (!succession_.serves(slot.number)) forget(slot.number);
    return finish_stop_if_empty();
  }
  vacated(slot);
}

/// Nobody is in the slot any more.
void WorkerSupervisor::vacated(WorkerSlot& slot) {
  slot.left = options_.external && processes_.has_left(slot.number);
  const bool has_remains = !slot.left || !listeners_.of(slot.number).empty();
  const auto next = after_end(facts_of(slot), has_remains, options_.external);
  const bool was_awaited = std::exchange(slot.awaited, false);
  if (next == AfterEnd::kRetire) {
    hasten_if_none_lives();
    handover_.retire(slot);
  } else if (next == AfterEnd::kForget) {
    forget(slot.number);
  } else {
    await_next_worker(slot);
    if (next == AfterEnd::kRestart) retry_later(slot);
  }
  if (was_awaited) settle_if_complete();
}

void WorkerSupervisor::await_next_worker(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kDead;
  if (succession_.serves(slot.number)) return;  // the previous-layout worker reads the queue
  handover_.await_worker(slot);
}

void WorkerSupervisor::retry_later(WorkerSlot& slot) {
  const bool others_serve = table_.other_serving(slot) != nullptr;
  launch_after(slot, slot.restarts.process_ended(slot.greeted, std::chrono::steady_clock::now(),
                                                 others_serve));
}

void WorkerSupervisor::launch_after(WorkerSlot& slot, milliseconds pause) {
  slot.state = WorkerSlot::State::kDead;
  step_after(slot, pause, [this](WorkerSlot& again) {
    if (again.state == WorkerSlot::State::kDead && !again.process) launch(again);
  });
}

void WorkerSupervisor::hasten_if_none_lives() {
  if (options_.external || table_.phase.stopping) return;
  const auto soon = std::chrono::steady_clock::now() + RestartPause::kFirst;
  if (const auto next = slot_to_hasten(facts(), soon))
    launch_after(table_.at(*next), RestartPause::kFirst);
}

void WorkerSupervisor::previous_layout_worker_ended(WorkerSlot& slot) {
  if (table_.phase.stopping) {
    if (!slot.process) forget(slot.number);
    return finish_stop_if_empty();
  }
  if (!table_.phase.settled) return settle_if_complete();  // fills the slot
  if (slot.process || slot.link) return;
  if (slot.state == WorkerSlot::State::kDraining) return tell_to_stop(slot);
  // As after the end of any worker.
  await_next_worker(slot);
  if (!options_.external) launch(slot);
}

// Workers of the last manager
// --------------------------------------------------------------------------

/// Workers of the last manager come by themselves: they are waited for.
void WorkerSupervisor::await_adopted_workers() {
  for (const auto number : slots_.numbers()) {
    auto process = processes_.recorded(number);
    if (!process && !slots_.alive(number)) continue;
    WorkerSlot& slot = table_.at(number);
    if (slot.greeted) continue;
    if (process) watch(slot, std::move(*process));
    await_adopted_worker(slot);
  }
}

void WorkerSupervisor::await_adopted_worker(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kStarting;
  slot.awaited = true;
  step_after(slot, options_.adopted_time,
             [this](WorkerSlot& late) { end_silent_adopted_worker(late); });
}

/// The worker has not said Hello in time.
void WorkerSupervisor::end_silent_adopted_worker(WorkerSlot& slot) {
  if (slot.greeted) return;
  if (!slot.process)
    if (auto process = processes_.recorded(slot.number)) watch(slot, std::move(*process));
  if (slot.process) {
    log::warning("worker_silent", "slot", slot.number, "pid", slot.pid);
    return end_process(slot);
  }
  if (slots_.alive(slot.number)) return give_up(slot);
  slots_.clear(slot.number);
  vacated(slot);
}

/// Kills the slot's process. A process may outlive even that, in a call that waits for a disk.
void WorkerSupervisor::end_process(WorkerSlot& slot) {
  kill(slot);
  step_after(slot, options_.kill_time, [this](WorkerSlot& late) {
    if (late.process) give_up(late);
  });
}

/// A process that cannot be found or ended holds the slot. The slot leaves when the process does,
/// and a worker in another slot takes its place.
void WorkerSupervisor::give_up(WorkerSlot& slot) {
  const std::uint32_t number = slot.number;
  const auto* page = slots_.page(number);
  log::error("slot_taken", "slot", number, "pid",
             slot.process || page == nullptr ? slot.pid : static_cast<pid_t>(page->pid));
  const bool leaving = slot.state == WorkerSlot::State::kDraining;
  slot.state = WorkerSlot::State::kDraining;
  slot.awaited = false;
  slot.lost = true;
  step_after(slot, options_.adopted_time, [this](WorkerSlot& late) { look_at_lost_slot(late); });
  succession_.stop(slot);
  if (!leaving && !options_.external)
    if (auto added = add(); !added) log::error("worker_not_added", "error", added.error().text);
  handover_.steer();
  settle_if_complete();
}

void WorkerSupervisor::look_at_lost_slot(WorkerSlot& slot) {
  if (!slot.lost) return;
  if (!slot.process && !slots_.alive(slot.number)) {
    slot.lost = false;
    return handover_.retire(slot);
  }
  kill(slot);
  step_after(slot, options_.adopted_time, [this](WorkerSlot& late) { look_at_lost_slot(late); });
}

// Leaving
// -------------------------------------------------------------------------------------

void WorkerSupervisor::drain(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kDraining;
  log::info("worker_leaving", "slot", slot.number, "pid", slot.pid);
  handover_.steer();
  if (calls_.leaves) calls_.leaves(slot.number);
  step_after(slot, SocketHandover::kSteerSettle, [this](WorkerSlot& late) { tell_to_stop(late); });
}

void WorkerSupervisor::tell_to_stop(WorkerSlot& slot) {
  if (slot.told_to_stop) return;
  if (succession_.serves(slot.number) && !slot.process) {  // its end continues the draining
    if (!succession_.is_awaited(slot.number)) succession_.stop(slot);
    return;
  }
  if (!slot.process && !slots_.alive(slot.number)) return handover_.retire(slot);
  if (slot.link) {
    slot.told_to_stop = true;
    slot.link->stop(options_.stop_grace_ms);
  }
  // An adopted or new worker that has not said Hello yet is told when it does.
  step_after(slot, options_.stop_time(), [this](WorkerSlot& late) {
    late.process ? end_process(late) : end_silent_adopted_worker(late);
  });
}

void WorkerSupervisor::kill(WorkerSlot& slot) {
  if (slot.process) processes_.kill(slot.number, *slot.process);
}

void WorkerSupervisor::close_slot(std::uint32_t number) {
  slots_.remove(number);
  forget(number);
}

void WorkerSupervisor::forget(std::uint32_t number) {
  handover_.forget(number);
  succession_.forget(number);
  table_.slots().erase(number);
}

void WorkerSupervisor::stop(std::function<void()> done) {
  on_stopped_ = std::move(done);
  table_.phase.stopping = true;
  succession_.stop_looking();
  for (auto& [number, slot] : table_.slots()) {
    slot.step.cancel();
    handover_.cancel(number);
    succession_.cancel(number);
    if (slot.link) slot.link->stop(options_.stop_grace_ms);
    succession_.stop(slot);
  }
  std::vector<std::uint32_t> empty;
  for (const auto& [number, slot] : table_.slots())
    if (!slot.process && !succession_.serves(number)) empty.push_back(number);
  for (const auto number : empty) forget(number);
  table_.after(tick_timer_, options_.stop_time(), [this] {
    for (auto& [number, slot] : table_.slots()) kill(slot);
    // A process that cannot be ended does not block the stop.
    table_.after(tick_timer_, options_.kill_time, [this] {
      for (const auto& [number, slot] : table_.slots())
        log::error("worker_left_behind", "slot", number, "pid", slot.pid);
      abandon();
      finish_stop_if_empty();
    });
  });
  finish_stop_if_empty();
}

void WorkerSupervisor::abandon() {
  tick_timer_.cancel();
  succession_.stop_looking();
  for (const auto& [number, slot] : table_.slots())
    if (slot.link) slot.link->leave();
  succession_.leave_all();
  handover_.forget_all();
  succession_.forget_all();
  table_.slots().clear();
}

void WorkerSupervisor::finish_stop_if_empty() {
  if (!table_.slots().empty()) return;
  tick_timer_.cancel();
  for (const auto slot : listeners_.slots()) listeners_.close(slot);
  calls_.stop_listening();
  if (!on_stopped_) return;
  asio::post(table_.io(), std::exchange(on_stopped_, {}));
}

// Once a second
// ----------------------------------------------------------------------------------

/// Looks for damaged slots, stuck readers, and listening sockets that could not be opened.
void WorkerSupervisor::tick() {
  // A tick that was queued when stop() set the timer must not set the timer again.
  if (table_.phase.stopping) return;
  for (auto& [number, slot] : table_.slots()) {
    if (slot.process) check_reader(slot);
    if (slot.link) slot.link->tell_finished();
  }
  fill_vacant_slots();
  hasten_if_none_lives();
  for (const std::uint32_t number : handover_.find_impairing())
    if (WorkerSlot* slot = table_.find(number)) {
      log::error("worker_impairs_sockets", "slot", number, "pid", slot->pid);
      kill(*slot);
    }
  handover_.retry_openings();
  table_.after(tick_timer_, kTick, [this] { tick(); });
}

void WorkerSupervisor::check_reader(WorkerSlot& slot) {
  // Versions of another store do not compare with ours.
  const bool compares = calls_.current_version && !slot.keeps_store;
  switch (readers_.check(slot.number, std::chrono::steady_clock::now(), options_.pin_time,
                         compares ? calls_.current_version() : 0)) {
    case ReaderWatch::Verdict::kHealthy:
      return;
    case ReaderWatch::Verdict::kDamaged:
      log::error("worker_slot_damaged", "slot", slot.number, "pid", slot.pid);
      break;
    case ReaderWatch::Verdict::kStuck:
      log::error("worker_stuck", "slot", slot.number, "pid", slot.pid, "limit_ms",
                 options_.pin_time.count());
  }
  kill(slot);
}

void WorkerSupervisor::release_oldest(std::uint64_t before, bool urgent) {
  std::vector<std::uint32_t> readers;
  for (const auto& [number, slot] : table_.slots())
    if (!slot.keeps_store) readers.push_back(number);
  const auto held =
      readers_.release_oldest(readers, before, std::chrono::steady_clock::now(), urgent);
  for (const auto number : held.overdue) {
    WorkerSlot& slot = table_.at(number);
    log::error("worker_holds_memory", "slot", number, "pid", slot.pid, "version", held.version);
    kill(slot);
  }
}

}  // namespace pando::manager
