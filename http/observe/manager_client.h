#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipc/control_results.h"

namespace pando::http {

/// Asks the manager for its status over the control socket, within a bounded time.
Result<ipc::StatusResult> ask_status(const std::string& run_directory,
                                     std::chrono::milliseconds timeout);

/// The manager's rows of these zones, each with every member, over one connection and within a
/// bounded time for all. Zones that it does not know are left out.
Result<std::vector<ipc::ZoneRow>> ask_zones(const std::string& run_directory,
                                            const std::vector<std::string>& names,
                                            std::chrono::milliseconds timeout);
/// The settings in force; the label alone if it is `label`. kNotFound: no section `http`.
Result<ipc::HttpSettingsResult> ask_http_settings(const std::string& run_directory,
                                                  const std::string& label,
                                                  std::chrono::milliseconds timeout);
/// A page of the manager's list after the zone `after`; empty = from the start.
Result<ipc::ZoneListResult> ask_zone_list(const std::string& run_directory,
                                          const std::string& after,
                                          std::chrono::milliseconds timeout);

}  // namespace pando::http
