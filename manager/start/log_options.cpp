#include "manager/start/log_options.h"

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

}  // namespace

ipc::Logging worker_logging(const config::Log& log) {
  const log::Options options = log_options(log);
  return {options.level, options.format};
}

log::Options log_options(const config::Log& log) {
  return {std::string(level_text(log.level)),
          log.format == config::LogFormat::kJson ? "json" : "text", "pando-manager"};
}

}  // namespace pando::manager
