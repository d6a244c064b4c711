#pragma once

#include <vector>

#include "http/metrics/exposition.h"
#include "http/observe/observed.h"

namespace pando::http {

/// Writes all metrics of `observed`: those below, and those of the host.
void write_metrics(Exposition& out, const Observed& observed);

/// Metrics from the manager's status.
void write_manager_metrics(Exposition& out, const ipc::StatusResult& status);

/// Metrics from the workers' pages. `store_version`: 0 = not known. `monotonic_now` is a time of
/// the clock of SlotCopy::lease_since.
void write_worker_metrics(Exposition& out, const std::vector<shm::SlotCopy>& slots,
                          std::uint64_t store_version, std::uint64_t monotonic_now);

}  // namespace pando::http
