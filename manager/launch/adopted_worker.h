#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "manager/launch/launcher.h"
#include "shm/slots.h"

/// Finding workers of an earlier manager. An attached worker is known by its lock on the store. A
/// new worker holds no lock yet, so its slot's page names its process from the start. A second
/// worker in such a slot would split the queue: queries would wait in a socket that nobody reads.
namespace pando::manager {

/// Whose processes may be workers: root, this process's own user, and `worker_uid`. Any user can
/// start a process that looks like a worker.
struct WorkerSearch {
  std::string run_directory;
  std::uint32_t worker_uid = 0;
};

/// The process `pid`, when it lives, belongs to such a user, and was started as the worker of
/// `slot` of this run directory. A page may name anything: its worker writes there what it likes,
/// and a pid is used again.
std::optional<Child> find_worker(pid_t pid, std::uint32_t slot, const WorkerSearch& search);

/// The process that the slot's page names, when it is this slot's worker.
std::optional<Child> recorded_worker(shm::SlotTable& slots, std::uint32_t number,
                                     const WorkerSearch& search);
/// Whether a recorded worker has no lock on the store of `slots`: it reads another, or none yet.
[[nodiscard]] bool may_read_another_store(shm::SlotTable& slots, const WorkerSearch& search);

/// A process that was started as the worker of some slot.
struct FoundWorker {
  std::uint32_t slot = 0;
  Child process;
};
/// All that live and were started as workers of this run directory, whatever pages say: a look at
/// every process of the machine, some 10 µs each.
std::vector<FoundWorker> find_workers(const WorkerSearch& search);

}  // namespace pando::manager
