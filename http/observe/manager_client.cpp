#include "http/observe/manager_client.h"

#include <nlohmann/json.hpp>

#include "ipc/control.h"
#include "ipc/control_json.h"

namespace pando::http {

Result<ipc::StatusResult> ask_status(const std::string& run_directory,
                                     std::chrono::milliseconds timeout) {
  auto socket = ipc::connect_control(run_directory);
  if (!socket) return pass(socket);
  auto result = ipc::call(socket->get(), {.verb = std::string(ipc::verb::kStatus)}, timeout);
  if (!result) return pass(result);
  return ipc::read_json<ipc::StatusResult>(*result);
}

}  // namespace pando::http
