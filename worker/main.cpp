#include <CLI/CLI.hpp>
#include <asio/io_context.hpp>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "base/pause_point.h"
#include "base/program_build.h"
#include "ipc/log.h"
#include "ipc/privileges.h"
#include "shm/slots.h"
#include "sandbox/hardening.h"
#include "worker/service.h"
#include "zone/draft/draft.h"

namespace {

struct Arguments {
  pando::worker::ServiceOptions service;
  std::string user;
  std::optional<std::uint32_t> cpu;
  std::string log_level = "info";
  std::string log_format = "text";
};

/// Gives up every right that the worker does not need later.
pando::Status give_up_rights(const Arguments& arguments) {
  if (!arguments.user.empty()) {
    auto became = pando::ipc::become_user(arguments.user, pando::ipc::Keep::kNothing);
    if (!became) return became;
  }
  // Also without a change of user: a service manager's ambient capabilities pass every exec.
  if (auto dropped = pando::ipc::drop_capabilities(pando::ipc::Keep::kNothing); !dropped)
    return dropped;
  if (arguments.cpu) {
    auto pinned = pando::sandbox::pin_to_processor(*arguments.cpu);
    if (!pinned) return pinned;
  }
  pando::sandbox::raise_descriptor_limit();
  return pando::sandbox::forbid_inspection();
}

int run(const Arguments& arguments) {
  asio::io_context io(1);
  pando::worker::Service service(io, arguments.service);
  ::tzset();  // the log's times need a file that cannot be opened later
  auto confined = pando::sandbox::limit_memory();
  if (confined) confined = pando::sandbox::forbid_files(pando::shm::kSlotFileSize);
  if (confined)
    confined = pando::sandbox::filter_system_calls(pando::sandbox::SocketPairs::kForbidden);
  if (!confined) {
    pando::log::error("worker_failed", "error", confined.error().text);
    return 1;
  }
  service.start();
  io.run();
  return service.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  pando::log::protect_process();
  Arguments arguments;
  CLI::App app("Pando worker: answers queries from the store its manager writes");
  app.set_version_flag("--version", PANDO_VERSION);
  app.add_option("--slot", arguments.service.slot, "slot number")
      ->required()
      ->check(CLI::Range(0U, pando::shm::kMaxSlots - 1));
  app.add_option("--run-directory", arguments.service.run_directory, "where the manager listens")
      ->required();
  app.add_option("--user", arguments.user, "user to become, by name or number");
  app.add_option("--cpu", arguments.cpu, "processor to run on");
  app.add_option("--log-level", arguments.log_level, "debug, info, warning, error or off")
      ->envname("PANDO_LOG_LEVEL");
  app.add_option("--log-format", arguments.log_format, "text or json")
      ->envname("PANDO_LOG_FORMAT");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  pando::pause_point("worker-started");
  // Rights go first: no later step needs root.
  const auto rights = give_up_rights(arguments);
  pando::log::start({arguments.log_level, arguments.log_format, "worker"});
  if (!rights) {
    pando::log::error("worker_failed", "slot", arguments.service.slot, "error",
                      rights.error().text);
    return 1;
  }
  // Ctrl-C on the manager's terminal reaches the workers too; only the manager's order stops a
  // worker.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  arguments.service.layout = pando::zone::layout_fingerprint();
  arguments.service.build = pando::own_build();
  return run(arguments);
}
