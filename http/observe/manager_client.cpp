#include "http/observe/manager_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ipc/control.h"
#include "ipc/control_json.h"

namespace pando::http {

namespace verb = ipc::verb;

namespace {

template <class T>
Result<T> ask(const std::string& run_directory, const ipc::ControlRequest& request,
              std::chrono::milliseconds timeout) {
  auto socket = ipc::connect_control(run_directory);
  if (!socket) return pass(socket);
  auto result = ipc::call(socket->get(), request, timeout);
  if (!result) return pass(result);
  return ipc::read_json<T>(*result);
}

}  // namespace

Result<ipc::StatusResult> ask_status(const std::string& run_directory,
                                     std::chrono::milliseconds timeout) {
  return ask<ipc::StatusResult>(run_directory, {.verb = std::string(verb::kStatus)}, timeout);
}

Result<ipc::HttpSettingsResult> ask_http_settings(const std::string& run_directory,
                                                  const std::string& label,
                                                  std::chrono::milliseconds timeout) {
  return ask<ipc::HttpSettingsResult>(
      run_directory, {.verb = std::string(verb::kHttpSettings), .label = label}, timeout);
}

Result<std::vector<ipc::ZoneRow>> ask_zones(const std::string& run_directory,
                                            const std::vector<std::string>& names,
                                            std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  auto socket = ipc::connect_control(run_directory);
  if (!socket) return pass(socket);
  std::vector<ipc::ZoneRow> rows;
  for (const std::string& name : names) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    auto result = ipc::call(socket->get(), {.verb = std::string(verb::kZoneStatus), .name = name},
                            std::max(left, std::chrono::milliseconds(0)));
    if (!result && result.error().code == Errc::kNotFound) continue;
    if (!result) return pass(result);
    auto row = ipc::read_json<ipc::ZoneRow>(*result);
    if (!row) return pass(row);
    rows.push_back(std::move(*row));
  }
  return rows;
}

Result<ipc::ZoneListResult> ask_zone_list(const std::string& run_directory,
                                          const std::string& after,
                                          std::chrono::milliseconds timeout) {
  return ask<ipc::ZoneListResult>(run_directory,
                                  {.verb = std::string(verb::kZoneList), .after = after}, timeout);
}

}  // namespace pando::http
