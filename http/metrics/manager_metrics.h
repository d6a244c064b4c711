#pragma once

#include <vector>

#include "http/metrics/exposition.h"
#include "ipc/control_results.h"

namespace pando::http {

/// Metrics from the manager's status.
void write_manager_metrics(Exposition& out, const ipc::StatusResult& status);
void add_manager_families(std::vector<const Family*>& all);

}  // namespace pando::http
