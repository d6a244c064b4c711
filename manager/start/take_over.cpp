#include "manager/start/take_over.h"

#include <sys/socket.h>

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
  // It closes the connection by ending.
  const auto gone = ipc::receive_json(running->get(), ipc::kMaxReplyBytes, kTimeout);
  char byte;
  if (gone || ::recv(running->get(), &byte, 1, MSG_DONTWAIT) != 0)
    return fail(Errc::kIo, "the manager that runs is still there");
  return {};
}

}  // namespace pando::manager
