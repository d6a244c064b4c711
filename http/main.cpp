#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/secret.h"
#include "config/load.h"
#include "http/live_settings.h"
#include "http/observe/manager_client.h"
#include "http/routes.h"
#include "http/serve/http_server.h"
#include "ipc/log.h"
#include "ipc/privileges.h"
#include "shm/slot_guard.h"
#include "zone/draft/draft.h"

namespace {

using namespace pando;  // NOLINT: a program's main file

/// For the settings in force; an answer of the manager takes some 0.1 ms.
constexpr std::chrono::milliseconds kManagerTime{1000};
/// 78 is EX_CONFIG: systemd shows that name, and a restart would not help.
constexpr int kBadConfiguration = 78;

/// Short texts are in their object, where no allocator wipes them.
void wipe_text(std::string& text) {
  wipe({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
}

std::vector<http::TsigKeyName> names_of(const std::vector<config::Key>& keys) {
  std::vector<http::TsigKeyName> names;
  for (const config::Key& key : keys)
    names.push_back({dns::to_text(key.name), std::string(dns::to_text(key.algorithm))});
  return names;
}

http::CollectorOptions collector_options(const config::Settings& settings) {
  http::CollectorOptions options;
  options.store_path = settings.store.path;
  options.run_directory = settings.server.run_directory;
  options.listen = settings.server.listen;
  options.layout = zone::layout_fingerprint();
  options.zones = settings.http->metrics_zones;
  return options;
}

/// Gives up every right of its own. The control socket is open to its group; the manager knows by
/// the user that this process reads, and edits only what a key of `http.keys` may edit.
Status give_up_rights(const config::Settings& settings) {
  if (::geteuid() == 0 && settings.http->user != "root") {
    std::vector<std::uint32_t> groups;
    if (const ::group* control = ::getgrnam(settings.server.control_group.c_str()))
      groups.push_back(control->gr_gid);
    auto became = ipc::become_user(settings.http->user, ipc::Keep::kNothing, groups);
    if (!became) return became;
  }
  if (settings.http->user != "root")
    if (auto dropped = ipc::drop_capabilities(ipc::Keep::kNothing); !dropped) return dropped;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_NO_NEW_PRIVS)");
  return ipc::forbid_inspection();
}

void start_log(const config::Log& wanted) {
  const bool json = wanted.format == config::LogFormat::kJson;
  std::string level = "info";
  if (wanted.level <= config::LogLevel::kDebug) level = "debug";
  if (wanted.level == config::LogLevel::kWarning) level = "warning";
  if (wanted.level >= config::LogLevel::kError) level = "error";
  log::start({level, json ? "json" : "text", "pando-http"});
}

/// With JSON, every line must be JSON for the collector's sake; other formats are for people.
void report_errors(const config::LoadResult& loaded) {
  for (const std::string& error : loaded.errors)
    if (loaded.settings.server.log.format == config::LogFormat::kJson)
      log::error("configuration", "reason", error);
    else
      std::fprintf(stderr, "%s\n", error.c_str());
}

int give_up(const Error& error) {
  log::error("start_failed", "reason", error.text);
  return error.code == Errc::kInvalid ? kBadConfiguration : 1;
}

int run(const config::Settings& settings, http::ServedSettings served) {
  http::Collector collector(collector_options(settings));
  const bool needs_keys =
      !std::ranges::all_of(settings.http->listen, config::is_loopback, &Endpoint::address);
  http::LiveSettings live(std::move(served), needs_keys,
                          [&directory = settings.server.run_directory](const std::string& label) {
                            return http::ask_http_settings(directory, label, kManagerTime);
                          });
  const http::Routes routes(
      live, collector, http::ZoneWriter(settings.server.run_directory, settings.store.journal));
  std::optional<http::TlsFiles> tls;
  if (settings.http->tls)
    tls = http::TlsFiles{settings.http->tls->certificate, settings.http->tls->key};
  const http::Handlers handlers{
      [&routes](const http::Request& request) { return routes.answer(request); },
      [&routes](const http::Request& header) { return routes.may_send_much(header); },
      [&routes](const http::Request& request) { return routes.is_known(request); }};
  // Ports below 1024 and the key's file may be root's alone.
  auto server = http::HttpServer::open(settings.http->listen, tls, {}, handlers);
  if (!server) return give_up(server.error());
  if (auto given = give_up_rights(settings); !given) return give_up(given.error());
  if (auto guarded = shm::install_slot_guard(); !guarded) return give_up(guarded.error());
  for (const Endpoint& at : (*server)->addresses())
    log::info("http_listening", "address", to_text(at), "tls", tls ? "yes" : "no");
  (*server)->run();
  log::info("http_stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  log::protect_process();
  CLI::App app{"Metrics and zones of Pando over HTTP"};
  std::string path;
  app.add_option("-c,--config", path, "configuration file")->required();
  app.set_version_flag("--version", PANDO_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  config::LoadResult loaded = config::load(path, {.read_zone_lists = false, .read_key_files = false});
  start_log(loaded.settings.server.log);
  for (const std::string& warning : loaded.warnings)
    log::warning("configuration", "text", warning);
  if (!loaded.ok()) {
    report_errors(loaded);
    return kBadConfiguration;
  }
  if (!loaded.settings.http) {
    std::fprintf(stderr, "pando-http: %s has no section 'http': nothing to serve\n", path.c_str());
    return 0;
  }
  http::ServedSettings served{
      http::Access(http::known_keys(loaded.settings.http->keys), loaded.settings.http->hosts),
      {names_of(loaded.settings.keys), loaded.settings.remotes,
       loaded.settings.http->template_name}};
  {
    // Digests suffice to know clients, so no secret stays in memory.
    const WipeFreed wipe_freed;
    loaded.settings.keys = {};
    for (config::HttpKey& key : loaded.settings.http->keys) wipe_text(key.secret);
    loaded.settings.http->keys = {};
    loaded.settings.server.cookies.secrets = {};
  }
  return run(loaded.settings, std::move(served));
}
