#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "ipc/log.h"
#include "manager/workers/adopted_worker.h"
#include "manager/workers/worker_pool_impl.h"

namespace pando::manager {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A worker that served this long was healthy: its death is answered by an immediate restart.
constexpr auto kHealthyAfter = seconds(10);
constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLongestBackoff{5000};
/// Attaching takes milliseconds; a process that says nothing for this long never will.
constexpr auto kHelloDeadline = seconds(20);
/// Survivors try every 100 ms at least.
constexpr auto kSurvivorDeadline = seconds(3);
/// A dead worker's queue is read by another one after this time (design §1).
constexpr auto kAbsenceLimit = seconds(1);
constexpr auto kTick = seconds(1);

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

/// How the process ended; empty when it is not our child (then nobody tells).
std::string reap(int pidfd) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info,
               WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0)
    return "unknown";
  if (info.si_code == CLD_EXITED) return fmt::format("exit {}", info.si_status);
  return fmt::format("signal {}", info.si_status);
}

}  // namespace

WorkerSlot& WorkerPool::Impl::slot_at(std::uint32_t number) {
  return workers_.try_emplace(number, io_, number).first->second;
}

std::uint32_t WorkerPool::Impl::lowest_free() const {
  std::uint32_t number = 0;
  while (workers_.contains(number)) ++number;
  return number;
}

std::uint32_t WorkerPool::Impl::count() const {
  return static_cast<std::uint32_t>(std::count_if(
      workers_.begin(), workers_.end(),
      [](const auto& entry) { return entry.second.state != Slot::State::kDraining; }));
}

void WorkerPool::Impl::launch(Slot& slot) {
  slot.state = Slot::State::kStarting;
  slot.greeted = slot.adopted = slot.told_to_stop = false;
  slot.known_sockets.clear();
  slot.started = std::chrono::steady_clock::now();
  // What has connected so far is none of the new process, even if it gets the pid of one of them.
  accept_all();
  auto page = slots_.add(slot.number);
  auto child = page ? spawn(slot.number) : Result<Child>(pass(page));
  if (!child) {
    log::error("worker_start_failed", "slot", slot.number, "error", child.error().text);
    return retry_later(slot);
  }
  log::info("worker_started", "slot", slot.number, "pid", child->pid);
  watch(slot, std::move(*child));
  slot.step.expires_after(kHelloDeadline);
  slot.step.async_wait(guarded([this, number = slot.number] {
    Slot& late = slot_at(number);
    if (late.greeted) return;
    log::error("worker_silent", "slot", number, "pid", late.pid);
    kill(late);
  }));
}

Result<Child> WorkerPool::Impl::spawn(std::uint32_t number) {
  std::optional<std::uint32_t> cpu;
  if (options_.cpu_affinity) cpu = processor(number);
  if (launcher_ != nullptr) return launcher_->spawn(number, cpu);
  return spawn_worker({options_.worker_binary, options_.run_directory, options_.worker_user},
                      number, cpu);
}

void WorkerPool::Impl::watch(Slot& slot, Child child) {
  slot.pid = child.pid;
  // From now on the next manager knows of this process, attached or not.
  if (auto page = slots_.add(slot.number)) (*page)->pid = static_cast<std::uint32_t>(child.pid);
  slot.process.emplace(io_, child.pidfd.release());
  slot.process->async_wait(asio::posix::descriptor_base::wait_read,
                           guarded([this, number = slot.number, pid = slot.pid] {
                             Slot& gone = slot_at(number);
                             if (gone.process && gone.pid == pid) ended(gone);
                           }));
}

/// The process in `slot` has ended: the kernel has dropped its locks and closed its descriptors.
void WorkerPool::Impl::ended(Slot& slot) {
  const std::string how = reap(slot.process->native_handle());
  log::info("worker_ended", "slot", slot.number, "pid", slot.pid, "how", how);
  slot.process.reset();
  slot.step.cancel();
  if (slot.link) slot.link->close();
  slot.link.reset();
  if (!slots_.intact(slot.number))
    slots_.remove(slot.number);
  else if (!slots_.alive(slot.number))
    slots_.clear(slot.number);
  // Its pid may become anybody's.
  if (auto* page = slots_.page(slot.number)) page->pid = 0;
  guardian_lost(slot.number);
  if (hooks_.pins_cleared) hooks_.pins_cleared();
  if (stopping_) {
    listeners_.close(slot.number);
    slots_.remove(slot.number);
    if (!slot.predecessor) workers_.erase(slot.number);
    return finish_stop_if_empty();
  }
  if (slot.awaited) return survivor_gone(slot);
  if (slot.state == Slot::State::kDraining) return retire(slot);
  await_successor(slot);
  if (!options_.external) retry_later(slot);
}

/// The queue waits for the slot's next worker, for a while.
void WorkerPool::Impl::await_successor(Slot& slot) {
  slot.state = Slot::State::kDead;
  if (slot.predecessor) return;  // which reads it
  slot.absence.expires_after(kAbsenceLimit);
  slot.absence.async_wait(guarded([this, number = slot.number] {
    const auto found = workers_.find(number);
    if (found != workers_.end()) hand_over(found->second);
  }));
}

/// At once after a healthy life, else with growing pauses: a worker that dies at its first query
/// must not keep a processor busy with starting.
void WorkerPool::Impl::retry_later(Slot& slot) {
  const auto lived = std::chrono::steady_clock::now() - slot.started;
  const bool healthy = slot.greeted && (lived >= kHealthyAfter || slot.restarts == 0);
  slot.backoff =
      healthy ? milliseconds(0) : std::clamp(slot.backoff * 2, kFirstBackoff, kLongestBackoff);
  ++slot.restarts;
  slot.state = Slot::State::kDead;
  slot.step.expires_after(slot.backoff);
  slot.step.async_wait(guarded([this, number = slot.number] {
    Slot& again = slot_at(number);
    if (again.state == Slot::State::kDead && !again.process) launch(again);
  }));
}

/// The process that the slot's page names, when it is this slot's worker.
std::optional<Child> WorkerPool::Impl::recorded_worker(std::uint32_t number) {
  const auto* page = slots_.page(number);
  if (page == nullptr) return std::nullopt;
  return find_worker(static_cast<pid_t>(page->pid), number, options_.run_directory);
}

/// Workers of the last manager come by themselves: they are waited for.
void WorkerPool::Impl::await_survivors() {
  for (const auto number : slots_.numbers()) {
    auto process = recorded_worker(number);
    if (!process && !slots_.alive(number)) continue;
    Slot& slot = slot_at(number);
    if (slot.greeted) continue;
    if (process) watch(slot, std::move(*process));
    await_survivor(slot);
  }
}

void WorkerPool::Impl::await_survivor(Slot& slot) {
  slot.state = Slot::State::kStarting;
  slot.awaited = true;
  slot.step.expires_after(kSurvivorDeadline);
  slot.step.async_wait(guarded([this, number = slot.number] { end_silent_survivor(number); }));
}

void WorkerPool::Impl::survivor_gone(Slot& slot) {
  slots_.clear(slot.number);
  slot.awaited = false;
  const std::uint32_t number = slot.number;
  if (slot.state == Slot::State::kDraining) {
    retire(slot);
  } else if (options_.external) {
    workers_.erase(number);
  } else {
    retry_later(slot);
  }
  settle_if_complete();
}

/// It did not come.
void WorkerPool::Impl::end_silent_survivor(std::uint32_t number) {
  Slot& slot = slot_at(number);
  if (slot.greeted) return;
  if (!slot.process)
    if (auto process = recorded_worker(number)) watch(slot, std::move(*process));
  if (slot.process) {
    log::warning("worker_silent", "slot", number, "pid", slot.pid);
    return kill(slot);
  }
  if (!slots_.alive(number)) return survivor_gone(slot);
  // Somebody holds the slot and is not to be found: the others go on without it.
  log::error("slot_taken", "slot", number, "pid", slots_.page(number)->pid);
  await_survivor(slot);
  slot.awaited = false;
  settle_if_complete();
}

void WorkerPool::Impl::kill(Slot& slot) {
  if (slot.process) kill_process(slot, *slot.process);
}

void WorkerPool::Impl::kill_process(const Slot& slot, asio::posix::stream_descriptor& process) {
  const int pidfd = process.native_handle();
  if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0) return;
  Status killed = fail_errno("pidfd_send_signal");
  if (launcher_ != nullptr) killed = launcher_->signal(pidfd, SIGKILL);
  if (!killed) log::error("worker_not_killed", "slot", slot.number, "error", killed.error().text);
}

/// Once a second: damaged slots, stuck readers, and listening sockets that could not be opened.
void WorkerPool::Impl::tick() {
  for (auto& [number, slot] : workers_) {
    check_page(slot);
    check_pins(slot);
    if (slot.link) slot.link->tell_finished();
  }
  if (retry_open_ && settled_) {
    retry_open_ = false;
    for (auto& [number, slot] : workers_) {
      if (!slot.serving()) continue;
      if (!listeners_.open(number)) retry_open_ = true;
      send_sockets(slot);
    }
  }
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait(guarded([this] { tick(); }));
}

/// A worker that has cut its file off shows no pins any more, while it may still read: it must not
/// go on.
void WorkerPool::Impl::check_page(Slot& slot) {
  if (!slot.process || slots_.intact(slot.number)) return;
  log::error("worker_slot_damaged", "slot", slot.number, "pid", slot.pid);
  kill(slot);
}

void WorkerPool::Impl::check_pins(Slot& slot) {
  auto* page = slot.process ? slots_.page(slot.number) : nullptr;
  if (page == nullptr ||
      !slot.pins.overdue(*page, std::chrono::steady_clock::now(), options_.pin_time))
    return;
  log::error("worker_stuck", "slot", slot.number, "pid", slot.pid, "limit_ms",
             options_.pin_time.count());
  kill(slot);
}

void WorkerPool::Impl::release_oldest(std::uint64_t before, bool urgent) {
  std::uint64_t oldest = UINT64_MAX;
  for (auto& [number, slot] : workers_)
    if (auto* page = slots_.page(number); page != nullptr)
      oldest = std::min(oldest, PinWatch::oldest(*page));
  if (oldest >= before) return;
  const bool is_overdue = oldest_.overdue(oldest, std::chrono::steady_clock::now(), urgent);
  for (auto& [number, slot] : workers_) {
    auto* page = slots_.page(number);
    if (page == nullptr || PinWatch::oldest(*page) != oldest) continue;
    PinWatch::revoke_up_to(*page, oldest);
    if (!is_overdue) continue;
    log::error("worker_holds_memory", "slot", number, "pid", slot.pid, "version", oldest);
    kill(slot);
  }
}

}  // namespace pando::manager
