#pragma once

#include <vector>

#include "http/metrics/exposition.h"
#include "shm/inspect/slot_pages.h"

namespace pando::http {

/// Metrics from the workers' pages. `store_version`: 0 = not known. `monotonic_now` is a time of
/// the clock of SlotCopy::lease_since.
void write_worker_metrics(Exposition& out, const std::vector<shm::SlotCopy>& slots,
                          std::uint64_t store_version, std::uint64_t monotonic_now);
void add_worker_families(std::vector<const Family*>& all);

}  // namespace pando::http
