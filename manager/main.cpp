#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/load.h"
#include "ipc/control.h"
#include "ipc/log.h"
#include "ipc/privileges.h"
#include "manager/launch/launcher.h"
#include "manager/server/server.h"
#include "manager/signing/keys/signed_zone_list.h"
#include "manager/start/log_options.h"
#include "manager/start/produced_catalogs.h"
#include "manager/support/heap_upkeep.h"
#include "manager/systemd/descriptor_store.h"
#include "manager/tls/openssl_memory.h"
#include "manager/verifier/verifier_process.h"

namespace {

using namespace pando;

/// As pandoctl's.
constexpr int kBadCommandLine = 2;
/// 78 is EX_CONFIG: systemd shows it as such, and a restart would not help.
constexpr int kBadConfiguration = 78;

/// Zone lists are read later if a store or an image may be served first. They are opened now, since
/// the process may have another user later.
config::LoadResult load_configuration(const manager::Server::Options& options) {
  config::LoadResult loaded = config::load(options.config_path, {.lists_later = true});
  std::error_code ignored;
  const bool store = std::filesystem::exists(loaded.settings.store.path, ignored) ||
                     std::filesystem::exists(loaded.settings.store.image, ignored);
  if (!loaded.ok() || options.take_over || !store) config::read_lists(loaded);
  return loaded;
}

/// Writing the largest store to a slow disk.
constexpr std::chrono::minutes kHandOverTimeout{60};

/// Asks the manager that runs in this run directory, of whatever build, to hand over: it writes a
/// dump beside its journal and leaves, its workers stay. Returns when it has gone; at once when
/// there is none. The error says what it answered.
Status take_over(const std::string& run_directory) {
  auto running = ipc::connect_control(run_directory);
  if (!running) {
    log::info("nothing_to_take_over", "reason", running.error().text);
    return {};
  }
  ipc::ControlRequest request;
  request.verb = ipc::verb::kHandOver;
  auto answer = ipc::call(running->get(), request, kHandOverTimeout);
  if (!answer)
    return fail(answer.error().code, "the manager that runs does not hand over: {}",
                answer.error().text);
  return ipc::await_end(running->get(), kHandOverTimeout);
}

/// The manager before may have added zones until it handed over.
void take_changes(manager::Server::Options& options, manager::RuntimePtr& runtime) {
  config::LoadResult loaded = config::load(options.config_path, {.lists_later = true});
  if (!loaded.ok() || loaded.fingerprint == options.configuration) return;
  config::read_lists(loaded);
  if (!loaded.ok()) return;
  auto newer = manager::make_runtime(std::move(loaded.settings));
  if (!newer) return;
  runtime = std::move(*newer);
  options.configuration = loaded.fingerprint;
}

/// Whoever collects JSON must be able to parse every line; a person reads the others.
void report_errors(const config::LoadResult& loaded, const log::Options& logging) {
  for (const std::string& error : loaded.errors)
    if (logging.format == "json")
      log::error("configuration", "reason", error);
    else
      std::fprintf(stderr, "%s\n", error.c_str());
}

int run_manager(manager::Server::Options options) {
  auto inherited = manager::systemd::take_inherited_descriptors();
  config::LoadResult loaded = load_configuration(options);
  options.configuration = loaded.fingerprint;
  const log::Options logging = manager::log_options(loaded.settings.server.log);
  log::start(logging);
  for (const std::string& warning : loaded.warnings)
    log::warning("configuration", "text", warning);
  if (!loaded.ok()) {
    report_errors(loaded, logging);
    return kBadConfiguration;
  }
  // Workers inherit level and format for the lines before this process sends them server.log.
  ::setenv("PANDO_LOG_LEVEL", logging.level.c_str(), 1);
  ::setenv("PANDO_LOG_FORMAT", logging.format.c_str(), 1);
  // Without its file a session key has a secret that nobody has: all else can be served.
  if (auto made = manager::prepare_session_keys(loaded.settings); !made)
    log::warning("session_key_not_made", "reason", made.error().text);
  auto runtime = manager::make_runtime(std::move(loaded.settings));
  if (!runtime) {
    log::error("configuration", "reason", runtime.error().text);
    return kBadConfiguration;
  }
  if (options.take_over) {
    if (auto taken = take_over((*runtime)->settings.server.run_directory); !taken) {
      log::error("start_failed", "reason", taken.error().text);
      return 1;
    }
    take_changes(options, *runtime);
  }
  auto host = manager::prepare_host((*runtime)->settings);
  if (!host) {
    log::error("start_failed", "reason", host.error().text);
    return 1;
  }
  host->inherited = std::move(inherited);
  if (const auto stays =
          manager::check_signed_zones(manager::native_files(), (*runtime)->settings);
      !stays) {
    log::error("configuration", "reason", stays.error().text);
    return kBadConfiguration;
  }
  // After the change of user, which undoes it.
  if (auto closed = ipc::forbid_inspection(); !closed) {
    log::error("start_failed", "reason", closed.error().text);
    return 1;
  }
  // Without zones of unread lists, a catalog would lack members.
  if (!loaded.lists) manager::make_missing_catalogs((*runtime)->settings);
  bool bad_configuration = false;
  auto server = manager::Server::open(std::move(options), std::move(*runtime), std::move(*host),
                                      std::move(loaded.lists), bad_configuration);
  if (!server) {
    log::error("start_failed", "reason", server.error().text);
    return bad_configuration ? kBadConfiguration : 1;
  }
  return (*server)->run();
}

}  // namespace

int main(int argc, char** argv) {
  manager::wipe_what_openssl_frees();
  // Before the command line is parsed: the words behind it are an operator's program and its own.
  if (argc > 1 && std::string_view(argv[1]) == "--verifier")
    std::_Exit(manager::run_verifier({argv + 2, argv + argc}));
  log::protect_process();
  CLI::App app{"The manager of Pando: owns the zone store, the sockets and the workers"};
  manager::Server::Options options;
  int launcher = -1;
  app.add_option("-c,--config", options.config_path, "configuration file");
  app.add_flag("--take-over", options.take_over,
               "a manager that runs hands its work over to this one first");
  app.add_option("--worker-binary", options.worker_binary, "program of the workers")->group("");
  app.add_option("--launcher", launcher, "internal")->group("");
  app.set_version_flag("--version", PANDO_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadCommandLine;
  }
  if (launcher >= 0) return manager::run_launcher(launcher);
  if (options.config_path.empty()) {
    std::cerr << "pando-manager: --config FILE is missing\n";
    return kBadCommandLine;
  }
  manager::HeapUpkeep::bound_heap();
  return run_manager(std::move(options));
}
