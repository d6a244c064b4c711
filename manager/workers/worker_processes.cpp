#include "manager/workers/worker_processes.h"

#include <sched.h>

#include <utility>

#include "base/crash_point.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/launch/adopted_worker.h"

namespace pando::manager {

namespace {

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

}  // namespace

Result<Child> WorkerProcesses::start(std::uint32_t slot) {
  if (auto page = slots_.add(slot); !page) return pass(page);
  crash_point("worker-page-made");
  std::optional<std::uint32_t> cpu;
  if (options_.cpu_affinity) cpu = processor(slot);
  if (launcher_ != nullptr) return launcher_->spawn(slot, cpu);
  return spawn_worker({options_.worker_binary, options_.run_directory, options_.worker_user}, slot,
                      cpu);
}

std::optional<Child> WorkerProcesses::recorded(std::uint32_t slot) const {
  return recorded_worker(slots_, slot, {options_.run_directory, options_.worker_uid});
}

WatchedProcess WorkerProcesses::watch(std::uint32_t slot, Child child) {
  if (auto page = slots_.add(slot)) (*page)->pid = static_cast<std::uint32_t>(child.pid);
  return {io_, std::move(child)};
}

void WorkerProcesses::kill(std::uint32_t slot, WatchedProcess& process) const {
  if (const auto killed = process.kill(launcher_); !killed)
    log::error("worker_not_killed", "slot", slot, "error", killed.error().text);
}

void WorkerProcesses::note_start(std::uint32_t slot) {
  if (auto* page = slots_.page(slot); page != nullptr && page->started == 0)
    page->started = unix_seconds();
}

bool WorkerProcesses::has_left(std::uint32_t slot) const {
  const auto* page = slots_.page(slot);
  return page == nullptr || page->started == 0;
}

void WorkerProcesses::clear_page(std::uint32_t slot) {
  if (slots_.alive(slot)) {
    // Its process is known to have ended, so nobody reads by its pins.
    const auto replaced = slots_.replace(slot);
    log::error("slot_left_open", "slot", slot, "error", replaced ? "" : replaced.error().text);
  } else if (!slots_.intact(slot)) {
    slots_.remove(slot);
  } else {
    slots_.clear(slot);
  }
  // Another process may get its pid.
  if (auto* page = slots_.page(slot)) page->pid = 0;
}

}  // namespace pando::manager
