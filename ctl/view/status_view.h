#pragma once

#include <cstdint>
#include <ostream>
#include <set>
#include <string>

#include "base/address.h"
#include "ipc/control_results.h"

/// The server's status for people, and the verdict for health checks.
namespace pando::ctl {

/// The number of that name, 0 if there is none.
[[nodiscard]] inline std::uint64_t count_of(const ipc::Counters& counters,
                                            const std::string& name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

/// Prints the status in groups, some twenty lines; with `all` every counter after them.
void print_status(const ipc::StatusResult& status, bool all, std::ostream& out,
                  bool colour = false);

/// Whether the server has no zone, and will have none without another configuration.
[[nodiscard]] bool has_no_zone(const ipc::StatusResult& status);

/// Why the server does not answer queries; empty: it does. With `all_zones` a zone without data is
/// a reason, too, and so is has_no_zone(): each answer is REFUSED then.
[[nodiscard]] std::string why_not_ready(const ipc::StatusResult& status, bool all_zones);

/// Why queries to this address get no answer though the server is ready; empty: they do. `own`:
/// addresses of the host. The manager opens addresses that the host may get later, so an open one
/// alone tells nothing.
[[nodiscard]] std::string why_not_answered(const ipc::StatusResult& status,
                                           const IpAddress& address,
                                           const std::set<std::string>& own);

}  // namespace pando::ctl
