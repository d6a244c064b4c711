#include "manager/workers/worker_supervisor.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/workers/adopted_worker.h"
#include "manager/workers/restart_pause.h"

namespace pando::manager {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = seconds(1);

WorkerSearch search_of(const WorkerPoolOptions& options) {
  return {options.run_directory, options.worker_uid};
}

/// The `index`-th processor this process may use, counted round.
std::uint32_t processor(std::uint32_t index) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  const auto usable = static_cast<std::uint32_t>(CPU_COUNT(&set));
  std::uint32_t skip = usable == 0 ? 0 : index % usable;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set) && skip-- == 0) return cpu;
  return 0;
}

/// How the process ended; "unknown" when it is not our child.
std::string reap(int pidfd) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info,
               WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0)
    return "unknown";
  if (info.si_code == CLD_EXITED) return fmt::format("exit {}", info.si_status);
  return fmt::format("signal {}", info.si_status);
}

/// After the end of the slot's process.
void clear_page(shm::SlotTable& slots, std::uint32_t number) {
  if (slots.alive(number)) {
    // Its process is known to have ended, so nobody reads by its pins.
    const auto replaced = slots.replace(number);
    log::error("slot_left_open", "slot", number, "error", replaced ? "" : replaced.error().text);
  } else if (!slots.intact(number)) {
    slots.remove(number);
  } else {
    slots.clear(number);
  }
  // Another process may get its pid.
  if (auto* page = slots.page(number)) page->pid = 0;
}

}  // namespace

WorkerSupervisor::WorkerSupervisor(WorkerTable& table, shm::SlotTable& slots, Listeners& listeners,
                                   const Launcher* launcher, const WorkerPoolOptions& options,
                                   SocketHandover& handover, LayoutSuccession& succession,
                                   Calls calls)
    : table_(table),
      slots_(slots),
      listeners_(listeners),
      launcher_(launcher),
      options_(options),
      handover_(handover),
      succession_(succession),
      calls_(std::move(calls)),
      tick_timer_(table.io()) {}

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
  static_cast<void>(handover_.take_failure());
  settle_if_complete();
  return handover_.take_failure();
}

void WorkerSupervisor::settle_if_complete() {
  if (!table_.phase.started || table_.phase.settled) return;
  for (const auto& [number, slot] : table_.slots())
    if (slot.awaited || succession_.is_awaited(number)) return;
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

/// Nothing is in the slot, and nothing is under way that would bring a worker or end the slot.
bool WorkerSupervisor::is_vacant(const WorkerSlot& slot) const {
  return !slot.process && !slot.link && !slot.awaited && !slot.lost &&
         !succession_.serves(slot.number) &&
         slot.step.expiry() <= std::chrono::steady_clock::now() &&
         !(slot.state == WorkerSlot::State::kDraining && handover_.is_ending(slot.number));
}

/// The rule that no order of events may break: a wanted slot without a process gets one, a leaving
/// slot without a process ends.
void WorkerSupervisor::fill_vacant_slots() {
  if (!table_.phase.settled || table_.phase.stopping) return;
  std::vector<std::uint32_t> vacant;
  for (const auto& [number, slot] : table_.slots())
    if (is_vacant(slot)) vacant.push_back(number);
  for (const auto number : vacant) {
    WorkerSlot* slot = table_.find(number);
    if (slot == nullptr) continue;
    if (slot->state == WorkerSlot::State::kDraining)
      tell_to_stop(*slot);
    else if (!options_.external)
      launch(*slot);
  }
}

void WorkerSupervisor::set_count(std::uint32_t count) {
  std::uint32_t have = table_.count();
  for (; have < count; ++have)
    if (auto added = add(); !added)
      return log::error("worker_not_added", "error", added.error().text);
  std::vector<std::uint32_t> surplus;
  for (auto it = table_.slots().rbegin(); it != table_.slots().rend() && have > count; ++it) {
    if (it->second.state == WorkerSlot::State::kDraining) continue;
    surplus.push_back(it->first);
    --have;
  }
  for (const auto number : surplus) drain(table_.at(number));
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
  slot.started = std::chrono::steady_clock::now();
  // A connection that was opened before now is not the new process's, even if that process gets the
  // pid of an old one.
  calls_.accept_waiting();
  // A reader that nobody knows would share the slot's page with the new worker.
  if (slots_.alive(slot.number)) return give_up(slot);
  auto page = slots_.add(slot.number);
  crash_point("worker-page-made");
  auto child = page ? spawn(slot.number) : Result<Child>(pass(page));
  if (!child) {
    log::error("worker_start_failed", "slot", slot.number, "error", child.error().text);
    await_next_worker(slot);
    return retry_later(slot);
  }
  crash_point("worker-started");
  log::info("worker_started", "slot", slot.number, "pid", child->pid);
  watch(slot, std::move(*child));
  crash_point("worker-recorded");
  slot.step.expires_after(options_.hello_time);
  slot.step.async_wait(table_.guarded([this, number = slot.number] {
    WorkerSlot& late = table_.at(number);
    if (late.greeted) return;
    log::error("worker_silent", "slot", number, "pid", late.pid);
    end_process(late);
  }));
}

Result<Child> WorkerSupervisor::spawn(std::uint32_t number) {
  std::optional<std::uint32_t> cpu;
  if (options_.cpu_affinity) cpu = processor(number);
  if (launcher_ != nullptr) return launcher_->spawn(number, cpu);
  return spawn_worker({options_.worker_binary, options_.run_directory, options_.worker_user},
                      number, cpu);
}

void WorkerSupervisor::watch(WorkerSlot& slot, Child child) {
  slot.pid = child.pid;
  // From now on the next manager knows of this process, attached or not.
  if (auto page = slots_.add(slot.number)) (*page)->pid = static_cast<std::uint32_t>(child.pid);
  slot.process.emplace(table_.io(), child.pidfd.release());
  slot.process->async_wait(asio::posix::descriptor_base::wait_read,
                           table_.guarded([this, number = slot.number, pid = slot.pid] {
                             WorkerSlot& gone = table_.at(number);
                             if (gone.process && gone.pid == pid) ended(gone);
                           }));
}

WorkerAdmission::Place WorkerSupervisor::place_of(std::uint32_t number) {
  const WorkerSlot* slot = table_.find(number);
  if (slot != nullptr && slot->process) return {slot->pid, 0};
  const auto recorded = recorded_worker(slots_, number, search_of(options_));
  return {0, recorded ? recorded->pid : 0};
}

void WorkerSupervisor::worker_came(WorkerSlot& slot, const std::shared_ptr<WorkerLink>& link) {
  if (!slot.process || slot.awaited) {
    slot.adopted = true;
    slot.told_to_stop = false;
    watch(slot, {link->peer().pid, Fd(::fcntl(link->peer().pidfd.get(), F_DUPFD_CLOEXEC, 0))});
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
  slot.step.expires_after(options_.hello_time);
  slot.step.async_wait(table_.guarded([this, number = slot.number, pid = slot.pid] {
    WorkerSlot* late = table_.find(number);
    if (late == nullptr || late->link || !late->process || late->pid != pid) return;
    log::error("worker_silent", "slot", number, "pid", pid);
    end_process(*late);
  }));
}

/// The process in `slot` has ended: the kernel has dropped its locks and closed its descriptors.
void WorkerSupervisor::ended(WorkerSlot& slot) {
  const std::string how = reap(slot.process->native_handle());
  log::info("worker_ended", "slot", slot.number, "pid", slot.pid, "how", how);
  slot.process.reset();
  slot.lost = false;
  slot.attached = slot.keeps_store = false;
  slot.pins = PinWatch();
  slot.step.expires_at(std::chrono::steady_clock::time_point::min());
  if (slot.link) slot.link->close();
  slot.link.reset();
  clear_page(slots_, slot.number);
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
  if (slot.awaited) return adopted_worker_gone(slot);
  if (slot.state == WorkerSlot::State::kDraining) {
    hasten_if_none_lives();
    return handover_.retire(slot);
  }
  await_next_worker(slot);
  if (!options_.external) retry_later(slot);
}

void WorkerSupervisor::await_next_worker(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kDead;
  if (succession_.serves(slot.number)) return;  // the previous-layout worker reads the queue
  handover_.await_worker(slot);
}

void WorkerSupervisor::retry_later(WorkerSlot& slot) {
  const RestartPause::Life life{slot.greeted, slot.restarts == 0, slot.started,
                                std::chrono::steady_clock::now()};
  slot.backoff = RestartPause::backoff(slot.backoff, life);
  ++slot.restarts;
  const bool others_serve = table_.other_serving(slot) != nullptr;
  launch_after(slot, RestartPause::wait(slot.backoff, life, others_serve));
}

void WorkerSupervisor::launch_after(WorkerSlot& slot, milliseconds pause) {
  slot.state = WorkerSlot::State::kDead;
  slot.step.expires_after(pause);
  slot.step.async_wait(table_.guarded([this, number = slot.number] {
    WorkerSlot& again = table_.at(number);
    if (again.state == WorkerSlot::State::kDead && !again.process) launch(again);
  }));
}

/// A slot's back-off was chosen while others served.
void WorkerSupervisor::hasten_if_none_lives() {
  if (options_.external || table_.phase.stopping) return;
  WorkerSlot* next = nullptr;
  for (auto& [number, slot] : table_.slots()) {
    if (slot.state == WorkerSlot::State::kDraining) continue;
    if (slot.process || succession_.serves(number)) return;
    if (slot.state != WorkerSlot::State::kDead) continue;
    if (next == nullptr || slot.step.expiry() < next->step.expiry()) next = &slot;
  }
  const auto soon = std::chrono::steady_clock::now() + RestartPause::kFirst;
  if (next != nullptr && next->step.expiry() > soon) launch_after(*next, RestartPause::kFirst);
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
    auto process = recorded_worker(slots_, number, search_of(options_));
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
  slot.step.expires_after(options_.adopted_time);
  slot.step.async_wait(
      table_.guarded([this, number = slot.number] { end_silent_adopted_worker(number); }));
}

void WorkerSupervisor::adopted_worker_gone(WorkerSlot& slot) {
  slots_.clear(slot.number);
  slot.awaited = false;
  if (slot.state == WorkerSlot::State::kDraining) {
    handover_.retire(slot);
  } else if (options_.external && listeners_.of(slot.number).empty()) {
    forget(slot.number);
  } else {
    await_next_worker(slot);
    if (!options_.external) retry_later(slot);
  }
  settle_if_complete();
}

/// The worker has not said Hello in time.
void WorkerSupervisor::end_silent_adopted_worker(std::uint32_t number) {
  WorkerSlot* found = table_.find(number);
  if (found == nullptr || found->greeted) return;
  WorkerSlot& slot = *found;
  if (!slot.process)
    if (auto process = recorded_worker(slots_, number, search_of(options_)))
      watch(slot, std::move(*process));
  if (slot.process) {
    log::warning("worker_silent", "slot", number, "pid", slot.pid);
    return end_process(slot);
  }
  if (!slots_.alive(number)) return adopted_worker_gone(slot);
  give_up(slot);
}

/// Kills the slot's process. A process may outlive even that, in a call that waits for a disk.
void WorkerSupervisor::end_process(WorkerSlot& slot) {
  kill(slot);
  slot.step.expires_after(options_.kill_time);
  slot.step.async_wait(table_.guarded([this, number = slot.number, pid = slot.pid] {
    WorkerSlot* late = table_.find(number);
    if (late != nullptr && late->process && late->pid == pid) give_up(*late);
  }));
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
  slot.step.expires_after(options_.adopted_time);
  slot.step.async_wait(table_.guarded([this, number] { look_at_lost_slot(number); }));
  succession_.stop(slot);
  if (!leaving && !options_.external)
    if (auto added = add(); !added) log::error("worker_not_added", "error", added.error().text);
  handover_.steer();
  settle_if_complete();
}

void WorkerSupervisor::look_at_lost_slot(std::uint32_t number) {
  WorkerSlot* slot = table_.find(number);
  if (slot == nullptr || !slot->lost) return;
  if (!slot->process && !slots_.alive(number)) {
    slot->lost = false;
    return handover_.retire(*slot);
  }
  kill(*slot);
  slot->step.expires_after(options_.adopted_time);
  slot->step.async_wait(table_.guarded([this, number] { look_at_lost_slot(number); }));
}

// Leaving
// -------------------------------------------------------------------------------------

void WorkerSupervisor::drain(WorkerSlot& slot) {
  slot.state = WorkerSlot::State::kDraining;
  log::info("worker_leaving", "slot", slot.number, "pid", slot.pid);
  handover_.steer();
  if (calls_.leaves) calls_.leaves(slot.number);
  slot.step.expires_after(SocketHandover::kSteerSettle);
  slot.step.async_wait(table_.guarded([this, number = slot.number] {
    if (WorkerSlot* steered = table_.find(number)) tell_to_stop(*steered);
  }));
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
  slot.step.expires_after(options_.stop_time());
  slot.step.async_wait(table_.guarded([this, number = slot.number] {
    WorkerSlot* late = table_.find(number);
    if (late == nullptr) return;
    if (late->process) return end_process(*late);
    end_silent_adopted_worker(number);
  }));
}

void WorkerSupervisor::kill(WorkerSlot& slot) {
  if (slot.process) kill_process(slot, *slot.process);
}

void WorkerSupervisor::kill_process(const WorkerSlot& slot,
                                    asio::posix::stream_descriptor& process) {
  const int pidfd = process.native_handle();
  if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0) return;
  Status killed = fail_errno("pidfd_send_signal");
  if (launcher_ != nullptr) killed = launcher_->signal(pidfd, SIGKILL);
  if (!killed) log::error("worker_not_killed", "slot", slot.number, "error", killed.error().text);
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
  tick_timer_.expires_after(options_.stop_time());
  tick_timer_.async_wait(table_.guarded([this] {
    for (auto& [number, slot] : table_.slots()) kill(slot);
    // A process that cannot be ended does not block the stop.
    tick_timer_.expires_after(options_.kill_time);
    tick_timer_.async_wait(table_.guarded([this] {
      for (const auto& [number, slot] : table_.slots())
        log::error("worker_left_behind", "slot", number, "pid", slot.pid);
      abandon();
      finish_stop_if_empty();
    }));
  }));
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
  for (auto& [number, slot] : table_.slots()) {
    check_page(slot);
    check_pins(slot);
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
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait(table_.guarded([this] { tick(); }));
}

/// A worker that has cut its file off shows no pins any more, while it may still read: it must not
/// go on.
void WorkerSupervisor::check_page(WorkerSlot& slot) {
  if (!slot.process || slots_.intact(slot.number)) return;
  log::error("worker_slot_damaged", "slot", slot.number, "pid", slot.pid);
  kill(slot);
}

void WorkerSupervisor::check_pins(WorkerSlot& slot) {
  auto* page = slot.process ? slots_.page(slot.number) : nullptr;
  // Versions of another store do not compare with ours.
  const bool compares = calls_.current_version && !slot.keeps_store;
  if (page == nullptr ||
      !slot.pins.overdue(*page, std::chrono::steady_clock::now(), options_.pin_time,
                         compares ? calls_.current_version() : 0))
    return;
  log::error("worker_stuck", "slot", slot.number, "pid", slot.pid, "limit_ms",
             options_.pin_time.count());
  kill(slot);
}

void WorkerSupervisor::release_oldest(std::uint64_t before, bool urgent) {
  std::uint64_t oldest = UINT64_MAX;
  for (auto& [number, slot] : table_.slots())
    if (auto* page = slots_.page(number); page != nullptr && !slot.keeps_store)
      oldest = std::min(oldest, PinWatch::oldest(*page));
  if (oldest >= before) return;
  const bool is_overdue = oldest_.overdue(oldest, std::chrono::steady_clock::now(), urgent);
  for (auto& [number, slot] : table_.slots()) {
    auto* page = slots_.page(number);
    if (page == nullptr || slot.keeps_store || PinWatch::oldest(*page) != oldest) continue;
    PinWatch::revoke_up_to(*page, oldest);
    if (!is_overdue) continue;
    log::error("worker_holds_memory", "slot", number, "pid", slot.pid, "version", oldest);
    kill(slot);
  }
}

}  // namespace pando::manager
