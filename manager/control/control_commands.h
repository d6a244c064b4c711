#pragma once

#include "manager/catalog/catalogs.h"
#include "manager/control/command_table.h"
#include "manager/control/config_control.h"
#include "manager/control/dnssec_control.h"
#include "manager/control/record_control.h"
#include "manager/control/report/status_report.h"
#include "manager/control/store_control.h"
#include "manager/control/tls_control.h"
#include "manager/control/worker_control.h"
#include "manager/control/zone_control.h"
#include "manager/control/zone_report.h"
#include "manager/start/reloader.h"
#include "manager/start/run_time_zones.h"
#include "manager/start/zone_lists.h"

namespace pando::manager {

/// All commands of pandoctl. Commands that need the zone lists wait until these are read.
class ControlCommands {
 public:
  struct Hooks {
    std::function<void()> stop;         ///< the reply to `stop` is sent
    std::function<void()> handed_over;  ///< see StoreControl
  };

  /// References outlive the object. `started`: start of the process, in seconds since 1970.
  ControlCommands(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
                  Reloader& reloader, RunTimeZones& run_time_zones, const Catalogs& catalogs,
                  Hooks hooks, std::uint64_t started);
  ControlCommands(const ControlCommands&) = delete;
  ControlCommands& operator=(const ControlCommands&) = delete;

  /// Calls `reply` once, now or later.
  void run(const ipc::ControlRequest& request, const CommandTable::Reply& reply);

  /// The verbs that have a handler.
  [[nodiscard]] std::vector<std::string> verbs() const { return table_.verbs(); }

  /// The connection is closed: transactions that end with it are aborted.
  void end_connection(std::uint64_t number) { records_.end_connection(number); }

  /// The process ends: a copy or dump under way is given up.
  void stop() { store_.stop(); }
  /// Waits for the threads that write copies and dumps.
  void join() { store_.join(); }

 private:
  void change_zones(const ipc::ControlRequest& request, const CommandTable::Reply& reply);

  const CurrentConfiguration& configuration_;
  const RemovedZones& removed_;
  ZoneLists& lists_;
  Reloader& reloader_;
  StatusReport status_;
  RunTimeZones& run_time_zones_;
  ZoneReport zone_report_;
  StoreControl store_;
  ZoneControl zone_;
  RecordControl records_;
  DnssecControl dnssec_;
  TlsControl tls_;
  WorkerControl workers_;
  ConfigControl config_;
  CommandTable table_;
};

}  // namespace pando::manager
