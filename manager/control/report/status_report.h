#pragma once

#include <string>

#include "base/program_build.h"
#include "ipc/control_results.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/start/zone_lists.h"
#include "manager/workers/worker_pool.h"

namespace pando::manager {

/// The answer to `status`: figures and counters of all parts.
class StatusReport {
 public:
  /// `started`: start of the process, in seconds since 1970.
  StatusReport(ServerParts parts, std::uint64_t started);

  [[nodiscard]] ipc::StatusResult make() const;

 private:
  void add_workers(ipc::StatusResult& result) const;
  void add_store(ipc::StatusResult& result) const;
  void add_image(ipc::StatusResult& result) const;
  void add_counters(ipc::StatusResult& result) const;

  ServerParts parts_;
  std::uint64_t started_;
  config::Settings at_start_;  // the keys that are read at the start alone, without secrets
  std::string program_;
  std::string build_;
};

}  // namespace pando::manager
