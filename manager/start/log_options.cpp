#include "manager/start/log_options.h"

#include <unistd.h>

#include <array>

namespace pando::manager {

namespace {

std::string_view level_text(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::kTrace:
    case config::LogLevel::kDebug:
      return "debug";
    case config::LogLevel::kInfo:
      return "info";
    case config::LogLevel::kWarning:
      return "warning";
    case config::LogLevel::kError:
      return "error";
    case config::LogLevel::kOff:
      return "off";
  }
  return "info";
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

}  // namespace

ipc::Logging worker_logging(const config::Log& log) {
  const log::Options options = log_options(log);
  return {options.level, options.format};
}

log::Options log_options(const config::Log& log) {
  return {std::string(level_text(log.level)),
          log.format == config::LogFormat::kJson ? "json" : "text", "pando-manager"};
}

std::optional<DnstapOptions> dnstap_options(const config::Server& server) {
  if (!server.dnstap) return std::nullopt;
  using Messages = config::Dnstap::Messages;
  const config::Dnstap& dnstap = *server.dnstap;
  DnstapOptions options;
  options.socket = dnstap.socket;
  options.what.on = true;
  options.what.sample = dnstap.sample;
  options.what.queries = dnstap.has(Messages::kQueries);
  options.what.responses = dnstap.has(Messages::kResponses);
  options.what.updates = dnstap.has(Messages::kUpdates);
  options.what.identity = server.identity.empty() ? host_name() : server.identity;
  options.what.version = server.version.empty() ? "pando " PANDO_VERSION : server.version;
  return options;
}

std::optional<QueryLogOptions> query_log_options(const config::Server& server) {
  if (!server.query_log) return std::nullopt;
  const config::QueryLog& log = *server.query_log;
  const bool is_socket = !log.socket.empty();
  return QueryLogOptions{{is_socket ? log.socket : log.file, is_socket}, {true, log.sample}};
}

XdpOptions xdp_options(const config::Server& server) { return {server.xdp, server.listen}; }

}  // namespace pando::manager
