#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ipc/control_results.h"
#include "manager/control/command_table.h"
#include "manager/control/rolling_restart.h"
#include "manager/start/server_parts.h"
#include "manager/workers/worker_pool.h"
#include "shm/slots.h"

namespace pando::manager {

/// The commands `worker-list`, `worker-add`, `worker-remove` and `worker-restart`.
class WorkerControl {
 public:
  /// References outlive the object.
  WorkerControl(asio::io_context& io, ServerParts parts);

  void add_to(CommandTable& table);

 private:
  [[nodiscard]] bool is_external() const;
  [[nodiscard]] ipc::WorkerRow make_row(const WorkerStatus& worker) const;
  [[nodiscard]] Result<nlohmann::json> list() const;
  Result<nlohmann::json> change(const ipc::ControlRequest& request);
  Status remove_last();
  void restart(const CommandTable::Reply& reply);

  const CurrentConfiguration& configuration_;
  shm::SlotTable& slots_;
  WorkerPool& workers_;
  RollingRestart restart_;
};

}  // namespace pando::manager
