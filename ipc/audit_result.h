#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "ipc/control_results.h"

namespace pando::ipc {

/// Turns the findings of a walk into a result, with the first `most_snapshots` snapshots. `Audit`
/// is zone::Audit. This is a template because ipc/ may not include zone/; and manager/ and ctl/,
/// which both walk stores, may not include each other.
template <class Audit>
[[nodiscard]] StoreAudit store_audit(
    Audit audit, std::uint64_t version,
    std::size_t most_snapshots = std::numeric_limits<std::size_t>::max()) {
  StoreAudit result;
  result.version = version;
  result.zones = audit.zones;
  result.names = audit.names;
  result.records = audit.records;
  result.bytes = audit.usage.by_name();
  result.faults_found = audit.fault_count;
  result.faults = std::move(audit.faults);
  for (auto& one : audit.snapshots) {
    if (result.snapshots.size() >= most_snapshots) break;
    result.snapshots.push_back({std::move(one.zone), std::move(one.label), one.bytes});
  }
  return result;
}

}  // namespace pando::ipc
