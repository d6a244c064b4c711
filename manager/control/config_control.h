#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <nlohmann/json_fwd.hpp>

#include "manager/control/command_table.h"
#include "manager/control/http_settings.h"
#include "manager/start/server_parts.h"
#include "manager/workers/worker_pool.h"

namespace pando::manager {

/// The commands `config-show`, `config-diff`, `http-settings` and `log-level`. Lives on the commit
/// thread; files of the configuration are read in pool threads.
class ConfigControl {
 public:
  /// References outlive the object.
  ConfigControl(asio::io_context& io, asio::thread_pool& pool, CurrentConfiguration& configuration,
                WorkerPool& workers);

  void add_to(CommandTable& table);

 private:
  using Request = CommandTable::Request;
  using Reply = CommandTable::Reply;
  [[nodiscard]] Result<nlohmann::json> show(const Request& request) const;
  void diff(const Request& request, const Reply& reply);
  Result<nlohmann::json> log_level(const Request& request);
  void set_level(config::LogLevel level);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  CurrentConfiguration& configuration_;
  WorkerPool& workers_;
  HttpSettings http_settings_;
};

}  // namespace pando::manager
