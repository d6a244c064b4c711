#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "manager/control/control_commands.h"
#include "manager/control/control_server.h"
#include "manager/journal/journal.h"
#include "manager/net/network.h"
#include "manager/server/previous_store.h"
#include "manager/server/service_start.h"
#include "manager/start/host.h"
#include "manager/start/pinned_memory.h"
#include "manager/start/reloader.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/start/zone_lists.h"
#include "manager/support/background_threads.h"
#include "manager/systemd/readiness.h"
#include "manager/tls/tls_certificates.h"
#include "manager/tls/tls_processes.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool.h"

namespace pando::manager {

/// The worker processes and their sockets. Later parts refer to earlier ones.
struct WorkerServices {
  std::unique_ptr<ServiceStart> start;  ///< outlives the pool, whose hooks refer to it
  std::string binary;  ///< empty: the program beside this one
  std::unique_ptr<Listeners> listeners;
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<TlsProcesses> tls;  ///< after the pool, to whose workers it leads
  std::unique_ptr<TlsCertificates> certificates;
  std::unique_ptr<PinnedMemory> pinned;
  std::unique_ptr<PreviousStore> previous_store;
};

/// The parts that change the configuration, and carry out commands of an operator. Later parts refer
/// to earlier ones.
struct ControlServices {
  std::unique_ptr<Reloader> reloader;
  std::unique_ptr<RunTimeZones> run_time_zones;
  std::unique_ptr<Catalogs> catalogs;
  std::unique_ptr<ControlCommands> commands;
  std::unique_ptr<ControlServer> socket;
};

/// The manager's process: the parts, and the order in which they start and stop. All methods run on
/// the commit thread, the one that calls run().
class Server {
 public:
  struct Options {
    std::string config_path;
    std::string worker_binary;        ///< empty: beside this program
    bool take_over = false;           ///< from a manager that runs (main.cpp)
    std::uint64_t configuration = 0;  ///< its fingerprint (config::LoadResult)
  };

  /// Opens everything that can fail: store, journal, sockets. Nothing is served yet. `lists` (may
  /// be null) has the zones that `runtime` lacks. A live store, or an image of the same
  /// configuration, is served before the lists are read. Otherwise open() reads the lists before
  /// it makes a store, and an error in them sets `bad_configuration`.
  static Result<std::unique_ptr<Server>> open(Options options, RuntimePtr runtime, Host host,
                                              UnreadLists lists, bool& bad_configuration);
  ~Server();
  /// Serves until SIGTERM, SIGINT or `pandoctl stop`.
  int run();

 private:
  /// How long accepted work may take before the process leaves anyway.
  static constexpr std::chrono::seconds kLastWork{10};

  Server(Options options, RuntimePtr runtime, Host host);
  // server_setup.cpp
  void make_store_services();
  void make_zone_services();
  void make_update_services();
  void make_lists(UnreadLists lists);
  Status open_workers();
  Status open_tls(std::vector<systemd::InheritedDescriptor> sockets);
  Status open_control();
  [[nodiscard]] WorkerPool::Hooks worker_hooks();
  // server_follow_up.cpp
  void image_damaged(const Error& reason);
  [[nodiscard]] systemd::Readiness::Hooks readiness_hooks();
  [[nodiscard]] config::SignaturePolicy signature_policy(const dns::Name& zone) const;
  [[nodiscard]] ZoneVerifierPtr verifier_of(const dns::Name& zone);
  void zone_transferred(const dns::Name& zone, bool had_data);
  [[nodiscard]] bool reads_journal() const;
  void load_again(const dns::Name& zone);
  void follow_up(const PublishedVersion& version);
  // server.cpp
  void await_signals();
  void watchdog();
  void tick();
  void tick_later();
  void check_pinned();
  bool begin_stop();
  void stop();
  void write_last_checkpoint(std::function<void()> done);
  void leave_workers();
  void end_parts();
  void leave(std::chrono::steady_clock::time_point deadline);

  CurrentConfiguration configuration_;
  Host host_;
  // Before io_: handlers left in io_ at the end hold transactions, which go back to the store.
  std::unique_ptr<OpenedData> data_;
  asio::io_context io_{1};
  JournalThread journal_thread_;
  BackgroundThreads background_;

  StoreServices services_;
  ZoneServices zones_;
  std::unique_ptr<ZoneLists> lists_;
  WorkerServices workers_;
  ControlServices control_;
  // After the parts that use it, hence ended before them: results of the network refer to them.
  std::unique_ptr<Network> network_;

  asio::signal_set signals_{io_};
  asio::steady_timer watchdog_timer_{io_};
  asio::steady_timer tick_timer_{io_};
  asio::steady_timer checkpoint_timer_{io_};
  systemd::Readiness readiness_{readiness_hooks()};
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace pando::manager
