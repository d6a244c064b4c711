#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/load.h"
#include "ipc/control_results.h"
#include "manager/checkpoint/checkpointer.h"
#include "manager/checkpoint/image_copying.h"
#include "manager/checkpoint/placed_dump.h"
#include "manager/checkpoint/quarantined_image.h"
#include "manager/checkpoint/store_opening.h"
#include "manager/commit/committer.h"
#include "manager/commit/huge_pages.h"
#include "manager/commit/journal_upkeep.h"
#include "manager/commit/large_changesets.h"
#include "manager/commit/runtime.h"
#include "manager/commit/store_upkeep.h"
#include "manager/commit/zone_snapshots.h"
#include "manager/net/network.h"
#include "manager/notify/notifier.h"
#include "manager/secondary/secondary_zones.h"
#include "manager/server/control_server.h"
#include "manager/server/host.h"
#include "manager/support/background_threads.h"
#include "manager/support/heap_upkeep.h"
#include "manager/update/update_queue.h"
#include "manager/update/update_service.h"
#include "manager/workers/worker_pool.h"
#include "manager/zonefile/zone_copies.h"
#include "manager/zonefile/zone_exports.h"
#include "manager/zonefile/zone_file_loads.h"
#include "manager/zonefile/zone_loader.h"

namespace pando::manager {

/// The manager's process: owns store, journal, sockets, workers, and the order in which they start,
/// change and stop. All methods run on the commit thread, the one that calls run().
class Server {
 public:
  struct Options {
    std::string config_path;
    std::string worker_binary;        ///< empty: beside this program
    bool take_over = false;           ///< from a manager that runs (manager/server/take_over.h)
    std::uint64_t configuration = 0;  ///< its fingerprint (config::LoadResult)
  };

  using UnreadLists = std::shared_ptr<config::UnreadLists>;

  /// Opens everything that can fail: store, journal, sockets. Nothing is served yet. `lists` (may
  /// be null): of zones that `runtime` does not have yet. A live store, and an image of the same
  /// configuration, are served before they are read; else they are read here, before a store is
  /// made, and an error that is theirs sets `bad_configuration`.
  static Result<std::unique_ptr<Server>> open(Options options, RuntimePtr runtime, Host host,
                                              UnreadLists lists, bool& bad_configuration);
  ~Server();
  /// Serves until SIGTERM, SIGINT or `pandoctl stop`.
  int run();

 private:
  Server(Options options, RuntimePtr runtime, Host host, UnreadLists lists);
  // server_start.cpp
  Status open_data();
  Status open_workers();
  Status open_control();
  std::unique_ptr<Image> make_image(const shm::StoreOptions& options) const;
  void look_at_image(const OpenedStore& opened);
  std::unique_ptr<PlacedDump> find_dump(const shm::StoreOptions& options) const;
  void dump_done(OpenedStore::From from);
  bool image_is_in_line();
  Status bring_up(shm::Store& restored);
  Status load_dump_into(shm::Store& empty);
  Status take_store(OpenedStore& opened);
  Status first_version();
  void make_parts();
  void begin_serving();
  void start_workers();
  void configure_exports();
  void bring_in_line();
  void in_line(const Status& status, std::uint64_t zones_with_data);
  void zone_transferred(const dns::Name& zone, bool had_data);
  void announce(std::string_view why);
  std::shared_ptr<HistorySource> history();
  void forget_zones();
  void note_gone(std::vector<dns::Name> names);
  void published(std::uint64_t version);
  void zone_changed(const dns::Name& zone, bool whole);
  void image_copied(const Status& status);
  void leave_damaged_image(const Error& reason);
  std::uint32_t worker_count() const;
  // server_lists.cpp
  enum class ListState : std::uint8_t { kRead, kReading, kFailed };
  static constexpr std::string_view kListsNotRead =
      "the zone lists could not be read: zones are served as they were";
  Status read_lists_first();
  void read_lists_later();
  void read_lists_now();
  void lists_read(const Result<RuntimePtr>& complete);
  void lists_failed(const Error& error);
  void count_loaded();
  void lists_in_use();
  void give_up_waiting();
  bool put_off(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  // server_reload.cpp
  struct Reload;
  using ReloadDone = std::function<void(Result<ipc::ReloadResult>)>;
  void reload(ReloadDone done);
  void reload_or_put_off();
  void start_reload(const std::shared_ptr<Reload>& reload);
  void reload_read(const std::shared_ptr<Reload>& reload);
  void reload_settings(const std::shared_ptr<Reload>& reload);
  void reload_zones(const std::shared_ptr<Reload>& reload);
  void reload_end(const std::shared_ptr<Reload>& reload, const Status& status);
  void tell_reload(const Reload& reload, const Status& status);
  // server.cpp
  void await_signals();
  void watchdog();
  void tick();
  void tick_later();
  void check_pinned();
  void stop();
  void write_last_checkpoint(std::function<void()> done);
  void stop_parts();
  void end_parts();
  void hand_over(const ControlServer::Reply& reply);
  void leave_workers();
  void leave(std::chrono::steady_clock::time_point deadline);
  // server_control.cpp
  [[nodiscard]] Status check_whole() const;
  void control(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  void audit(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  void roll_back(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  void copy_store_to(const std::string& path, const ControlServer::Reply& reply);
  void dump_store_to(const std::string& path, const ControlServer::Reply& reply);
  using DumpDone = std::function<void(Result<nlohmann::json>)>;
  void write_dump(const std::string& path, const DumpDone& done);
  asio::thread_pool& file_writers();
  void write_checkpoint(const ControlServer::Reply& reply);
  void export_zone(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  void take_snapshot(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  void delete_snapshot(const ipc::ControlRequest& request, const ControlServer::Reply& reply);
  Result<nlohmann::json> list_snapshots(const ipc::ControlRequest& request) const;
  Result<nlohmann::json> query(const ipc::ControlRequest& request);
  ipc::StatusResult status() const;
  ipc::ZoneRow zone_row(const zone::ZoneView& zone, bool every_field);
  std::string problem_of(const zone::ZoneView& zone, bool secondary) const;
  Result<nlohmann::json> zone_list(const ipc::ControlRequest& request);
  Result<nlohmann::json> zone_status(const ipc::ControlRequest& request);
  ipc::WorkerListResult worker_list();
  Result<nlohmann::json> change_workers(const ipc::ControlRequest& request);

  Options options_;
  RuntimePtr runtime_;
  Host host_;
  std::uint64_t started_ = 0;     // seconds since 1970
  std::uint64_t configured_ = 0;  // last time the configuration was read

  // Before io_: what waits there at the end holds transactions, which go back to the store.
  std::optional<shm::Store> store_;
  std::optional<shm::SlotTable> slots_;
  asio::io_context io_{1};
  JournalThread journal_thread_;
  BackgroundThreads background_;
  asio::thread_pool& pool_ = background_.pool();
  std::optional<BackgroundThreads> file_writers_;  // of copies and dumps, once one was asked for
  std::optional<Journal> journal_;
  std::unique_ptr<PlacedDump> dump_;  // until the store is there
  std::unique_ptr<Image> image_;      // until the checkpointer has it
  shm::SlotTable::OwnPin image_pin_;
  QuarantinedImage refused_image_;
  Status dump_failed_;           // one of another journal, when it was to take the image's place
  bool store_was_lost_ = false;  // the journal has records from before this store
  bool restored_ = false;        // the store was made from the image, or a dump
  bool zones_missing_ = false;  // some may have to be loaded, and settings to be brought up to date
  bool serves_first_ = false;   // the store has the list of zones: workers start before all else
  UnreadLists lists_;           // until they are read
  bool lists_are_wrong_ = false;  // so that there is no start
  ListState list_state_ = ListState::kRead;
  std::string list_problem_;                            // with kFailed
  std::deque<std::function<void()>> waiting_commands_;  // with kReading

  std::unique_ptr<Committer> committer_;
  std::unique_ptr<Checkpointer> checkpointer_;   // null: no image is written
  std::unique_ptr<ImageCopying> copying_image_;  // null: the store has all of its chunks
  std::unique_ptr<StoreUpkeep> upkeep_;
  std::chrono::steady_clock::time_point pinned_told_{};  // that too much memory is held back
  std::unique_ptr<HugePages> huge_pages_;
  std::unique_ptr<HeapUpkeep> heap_upkeep_;
  std::unique_ptr<JournalUpkeep> journal_upkeep_;
  std::unique_ptr<LargeChangesets> changes_;
  std::unique_ptr<ZoneSnapshots> snapshots_;
  std::unique_ptr<ZoneLoader> loader_;
  std::unique_ptr<ZoneCopies> copies_;
  std::unique_ptr<ZoneFileLoads> loads_;
  std::unique_ptr<ZoneExports> exports_;
  std::unique_ptr<Refresher> visits_;
  std::unique_ptr<SecondaryZones> secondaries_;
  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<UpdateForwarder> forwarder_;
  std::unique_ptr<UpdateService> service_;
  std::unique_ptr<UpdateQueue> gate_;
  std::unique_ptr<Listeners> listeners_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<ControlServer> control_;
  // After those who use it, hence ended before them: its results refer to them.
  std::unique_ptr<Network> network_;

  asio::signal_set signals_{io_};
  asio::steady_timer watchdog_timer_{io_};
  asio::steady_timer tick_timer_{io_};
  asio::steady_timer checkpoint_timer_{io_};
  asio::steady_timer lists_timer_{io_};
  bool announced_ = false;
  bool workers_later_ = false;  // they wait for all zones
  bool in_line_ = false;        // the store's list of zones was compared with the configuration
  bool reloading_ = false;
  bool reload_again_ = false;               // a SIGHUP came meanwhile
  std::shared_ptr<Reload> waiting_reload_;  // for that
  bool copying_ = false;
  bool dumping_ = false;
  std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace pando::manager
