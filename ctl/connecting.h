#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "ctl/arguments.h"
#include "ctl/commands/manager_commands.h"
#include "ctl/view/output.h"

namespace pando::ctl {

/// Standard output and error, as the options and the terminal want them.
[[nodiscard]] Output output_for(const Arguments& arguments);

/// Folder of the control socket. Even a configuration with errors must give it: pandoctl is the
/// tool for repairs.
[[nodiscard]] Result<std::string> run_directory(const Arguments& arguments);

/// Connects to the manager and runs `command`; returns the exit code.
int with_session(const Arguments& arguments, const std::function<int(Session&)>& command);

}  // namespace pando::ctl
