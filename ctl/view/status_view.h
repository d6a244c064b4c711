#pragma once

#include <ostream>
#include <string>

#include "ipc/control_results.h"

/// The server's status for people, and the verdict for health checks.
namespace pando::ctl {

/// Prints the status in groups, some twenty lines; with `all` every counter behind them.
void print_status(const ipc::StatusResult& status, bool all, std::ostream& out,
                  bool colour = false);

/// Why the server does not answer queries; empty: it does. With `all_zones` a zone without data is
/// a reason, too.
[[nodiscard]] std::string why_not_ready(const ipc::StatusResult& status, bool all_zones);

}  // namespace pando::ctl
