#pragma once

#include <chrono>
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
/// The same again and again until it returns kDone, for `wait` at most. The last output is printed.
int with_session_within(const Arguments& arguments, std::chrono::seconds wait,
                        const std::function<int(Session&)>& command);

}  // namespace pando::ctl
