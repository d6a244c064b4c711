#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "ipc/control_results.h"
#include "manager/commit/zone_table_sync.h"
#include "manager/start/reload_gate.h"
#include "manager/start/retired_runtimes.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/start/zone_lists.h"
#include "manager/support/kept_value.h"
#include "manager/systemd/readiness.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool.h"

namespace pando::manager {

/// Reads the configuration again and brings store, parts and workers in line with it, one reload
/// at a time.
///
/// All methods on the commit thread.
class Reloader {
 public:
  using Done = std::function<void(Result<ipc::ReloadResult>)>;
  Reloader(asio::io_context& io, asio::thread_pool& pool, ServerParts parts);

  /// Reloads for a command; kExists while another reload, or the end of the process, is under way.
  void reload(Done done);
  /// Reloads for SIGHUP. Nobody waits for an answer to a signal, so the signal is never refused:
  /// one more reload serves all signals that come while a reload is under way.
  void reload_or_put_off();

  /// Keeps reloads away while a command works out other zones from the configuration in force;
  /// reloads that come meanwhile wait for release(). False while a reload, the start or the end of
  /// the process is under way.
  [[nodiscard]] bool hold();
  /// `files`: what became of the zones' files.
  using Adopted =
      std::function<void(const Result<ipc::ReloadResult>&, const ZoneFileLoads::Counts& files)>;
  /// After hold(): the configuration in force with other `zones` takes its place, like that of a
  /// reload. The work grows with the number of `zones`, not with that of all zones. After an error
  /// the configuration before may be in force, or the new one with a store that lacks some zones.
  /// With the configuration in force itself, only the files of `zones` are read again.
  void adopt(RuntimePtr runtime, ZoneNames zones, Adopted done);
  /// Ends hold(): reloads that waited begin.
  void release();

  /// The store's list of zones was compared with the configuration, or cannot be. A reload that
  /// came earlier has waited for this: two comparisons together would give zones the same places in
  /// the store's side table.
  void allow();
  [[nodiscard]] bool is_allowed() const noexcept { return gate_.is_allowed(); }
  /// Whether a reload is under way; one that waits for allow() is.
  [[nodiscard]] bool is_under_way() const noexcept { return gate_.is_under_way(); }
  /// Frees what earlier configurations and reloads took; to be called regularly.
  void free_retired();

  /// The process is to end: no reload begins any more.
  void stop() noexcept { gate_.stop(); }
  /// The process ends: a reload that waits for allow() gets its answer.
  void give_up();

 private:
  struct Reload;
  using ReloadPtr = std::shared_ptr<Reload>;
  void start(const ReloadPtr& reload);
  void read(const ReloadPtr& reload);
  void release_secondaries(const ReloadPtr& reload);
  void sync_zones(const ReloadPtr& reload);
  void keep_old(const ReloadPtr& reload, const Status& status);
  void take_new(const ReloadPtr& reload, const Status& status, const ZoneTableSync::Counts& counts);
  void end_sync(const ReloadPtr& reload, const Status& status, ZoneTableSync::Counts&& counts);
  void configure_secondaries(const Reload& reload);
  void configure_zones(const Reload& reload);
  void configure_parts();
  void configure_workers(Reload& reload);
  void load_files(const ReloadPtr& reload);
  [[nodiscard]] std::shared_ptr<HistorySource> history_for(const Reload& reload);
  void files_loaded(const ReloadPtr& reload, const ZoneFileLoads::Counts& files);
  [[nodiscard]] bool may_return(const Reload& reload) const;
  void find_removed(const ReloadPtr& reload);
  void end(const ReloadPtr& reload, const Status& status);
  void tell(const Reload& reload, const Status& status);
  void note_configuration(std::uint64_t fingerprint);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  ServerParts parts_;
  ReloadGate gate_;
  ReloadPtr waiting_;  // for allow() or release()
  /// Of the zones in the store; nullopt: the next comparison reads all of them.
  std::optional<SideIndexes> sides_;
  RetiredRuntimes retired_;
  /// The journal as it was read for new zones; marked by Committer::Counters::gone.
  KeptValue<std::shared_ptr<HistorySource>, std::uint64_t> kept_history_;
};

}  // namespace pando::manager
