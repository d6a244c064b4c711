#pragma once

#include <vector>

#include "http/metrics/exposition.h"
#include "shm/inspect/slot_pages.h"

namespace pando::http {

/// Metrics from the workers' pages. `version`: of the store; 0 = not known. `monotonic`: now, on
/// the clock of SlotCopy::lease_since.
void write_worker_metrics(Exposition& out, const std::vector<shm::SlotCopy>& slots,
                          std::uint64_t version, std::uint64_t monotonic);
void add_worker_families(std::vector<const Family*>& all);

}  // namespace pando::http
