#pragma once

#include <memory>
#include <string>

#include "manager/control/control_commands.h"
#include "manager/control/control_server.h"
#include "manager/server/previous_store.h"
#include "manager/start/pinned_memory.h"
#include "manager/start/reloader.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool.h"

namespace pando::manager {

/// The worker processes and their sockets. Later parts refer to earlier ones.
struct WorkerServices {
  std::string binary;  ///< empty: the program beside this one
  std::unique_ptr<Listeners> listeners;
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<PinnedMemory> pinned;
  std::unique_ptr<PreviousStore> previous_store;
  bool wait_for_zones = false;  ///< workers of another build serve until all zones are loaded
  bool may_start = false;  ///< the store has a list of zones: ours answer SERVFAIL, not REFUSED
};

/// The parts that carry out commands of an operator. Later parts refer to earlier ones.
struct ControlServices {
  std::unique_ptr<Reloader> reloader;
  std::unique_ptr<ControlCommands> commands;
  std::unique_ptr<ControlServer> socket;
};

}  // namespace pando::manager
