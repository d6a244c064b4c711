#include "manager/start/take_over.h"

#include <nlohmann/json.hpp>

#include "ipc/control.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {
/// Writing the largest store to a slow disk.
constexpr std::chrono::minutes kTimeout{60};
}  // namespace

Status take_over(const std::string& run_directory) {
  auto running = ipc::connect_control(run_directory);
  if (!running) {
    log::info("nothing_to_take_over", "reason", running.error().text);
    return {};
  }
  ipc::ControlRequest request;
  request.verb = ipc::verb::kHandOver;
  auto answer = ipc::call(running->get(), request, kTimeout);
  if (!answer)
    return fail(answer.error().code, "the manager that runs does not hand over: {}",
                answer.error().text);
  return ipc::await_end(running->get(), kTimeout);
}

}  // namespace pando::manager
