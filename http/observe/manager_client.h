#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "ipc/control_results.h"

namespace pando::http {

/// Asks the manager for its status over the control socket, within a bounded time.
Result<ipc::StatusResult> ask_status(const std::string& run_directory,
                                     std::chrono::milliseconds timeout);

}  // namespace pando::http
