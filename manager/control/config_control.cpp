#include "manager/control/config_control.h"

#include <algorithm>
#include <asio/post.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/secret.h"
#include "config/effective.h"
#include "config/settings/values.h"
#include "ipc/control_json.h"
#include "ipc/log.h"
#include "manager/start/log_options.h"
#include "manager/start/wanted_configuration.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// pando-http opens its addresses when it starts; two of its section's keys are the manager's, too.
std::string_view restarted_program(const config::SettingChange& change) {
  if (!change.at_restart) return "";
  const bool of_http = change.key.starts_with("http.") && change.key != "http.user" &&
                       change.key != "http.metrics-zones";
  return of_http ? "pando-http" : "pando-manager";
}

std::vector<ipc::SettingChangeRow> change_rows(config::SettingChanges&& changes) {
  std::vector<ipc::SettingChangeRow> rows;
  for (config::SettingChange& change : changes) {
    std::string restart(restarted_program(change));
    rows.push_back({std::move(change.key), std::move(change.before), std::move(change.after),
                    std::move(restart)});
  }
  return rows;
}

std::vector<std::string> texts_of(const std::vector<dns::Name>& names) {
  std::vector<std::string> texts;
  for (const dns::Name& name : names) texts.push_back(dns::to_text(name));
  return texts;
}

json to_json(config::ConfigDifference&& difference, std::vector<std::string>&& warnings) {
  ipc::ConfigDiffResult result;
  result.settings_changed = difference.settings_changed;
  result.zones_added = difference.zones_added;
  result.zones_removed = difference.zones_removed;
  result.zones_changed = difference.zones_changed;
  result.settings = change_rows(std::move(difference.settings));
  result.added = texts_of(difference.added);
  result.removed = texts_of(difference.removed);
  for (config::ZoneChange& change : difference.changed)
    result.changed.push_back({dns::to_text(change.zone), change_rows(std::move(change.settings))});
  result.warnings = std::move(warnings);
  return json(result);
}

}  // namespace

ConfigControl::ConfigControl(asio::io_context& io, asio::thread_pool& pool,
                             CurrentConfiguration& configuration, WorkerPool& workers)
    : io_(io), pool_(pool), configuration_(configuration), workers_(workers) {}

void ConfigControl::add_to(CommandTable& table) {
  table.add_query(ipc::verb::kConfigShow, std::bind_front(&ConfigControl::show, this));
  table.add(ipc::verb::kConfigDiff, std::bind_front(&ConfigControl::diff, this));
  table.add_query(ipc::verb::kHttpSettings, [this](const Request& request) {
    return http_settings_.answer(configuration_.runtime, request);
  });
  table.add_query(ipc::verb::kLogLevel, std::bind_front(&ConfigControl::log_level, this));
}

Result<json> ConfigControl::show(const Request& request) const {
  const config::Settings& settings = configuration_.runtime->settings;
  if (request.name.empty())
    return json(ipc::ConfigShowResult{"", config::effective_server(settings)});
  auto name = dns::Name::from_text(request.name);
  if (!name) return pass(name);
  const auto index = settings.zones.find(*name);
  if (!index) return fail(Errc::kNotFound, "no zone {} is configured", dns::to_text(*name));
  return json(ipc::ConfigShowResult{dns::to_text(*name), config::effective_zone(settings, *index)});
}

void ConfigControl::diff(const Request& request, const Reply& reply) {
  const std::size_t limit = std::min(request.limit, ipc::kZonePageRows);
  asio::post(pool_, [this, reply, limit, path = configuration_.path,
                     running = configuration_.runtime] {
    const WipeFreed wipe_freed;  // the secrets of the files
    WantedConfiguration wanted = read_wanted(path, running->settings);
    Result<json> result = json();
    if (wanted.runtime)
      result = to_json(config::compare(running->settings, wanted.runtime->settings, limit),
                       std::move(wanted.warnings));
    else
      result = pass(wanted.problem);
    wanted.runtime.reset();
    asio::post(io_, [reply, result = std::move(result)]() mutable { reply(std::move(result)); });
  });
}

Result<json> ConfigControl::log_level(const Request& request) {
  const config::Log& configured = configuration_.runtime->settings.server.log;
  if (!request.level.empty()) {
    auto level = config::parse_log_level(request.level);
    if (!level) return pass(level);
    set_level(*level);
  }
  const config::LogLevel level = configuration_.log_level.value_or(configured.level);
  return json(ipc::LogLevelResult{std::string(config::to_text(level)),
                                  std::string(config::to_text(configured.level))});
}

/// The event is logged at the more talkative of both levels, so that a log which ends says why.
void ConfigControl::set_level(config::LogLevel level) {
  const auto event = [level] { log::info("log_level_changed", "level", config::to_text(level)); };
  const bool shown_before = log::enabled(log::Level::kInfo);
  if (shown_before) event();
  configuration_.log_level = level;
  config::Log log = configuration_.runtime->settings.server.log;
  log.level = level;
  log::start(log_options(log));
  workers_.set_logging(worker_logging(log));
  if (!shown_before) event();
}

}  // namespace pando::manager
