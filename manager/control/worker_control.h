#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ipc/control_results.h"
#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"
#include "manager/workers/worker_pool.h"
#include "shm/slots.h"

namespace pando::manager {

/// The commands `worker-list`, `worker-add` and `worker-remove`.
class WorkerControl {
 public:
  /// References outlive the object.
  WorkerControl(const CurrentConfiguration& configuration, shm::SlotTable& slots,
                WorkerPool& workers)
      : configuration_(configuration), slots_(slots), workers_(workers) {}

  void add_to(CommandTable& table);

 private:
  [[nodiscard]] bool is_external() const;
  [[nodiscard]] ipc::WorkerRow make_row(const WorkerStatus& worker) const;
  [[nodiscard]] Result<nlohmann::json> list() const;
  Result<nlohmann::json> change(const ipc::ControlRequest& request);
  Status remove_last();

  const CurrentConfiguration& configuration_;
  shm::SlotTable& slots_;
  WorkerPool& workers_;
};

}  // namespace pando::manager
