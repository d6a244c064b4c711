#include <asio/post.hpp>
#include <ctime>

#include "base/pause_point.h"
#include "config/load.h"
#include "ipc/log.h"
#include "manager/commit/zone_table_sync.h"
#include "manager/server/log_options.h"
#include "manager/server/server.h"
#include "manager/server/systemd.h"

namespace pando::manager {

/// One reload under way.
struct Server::Reload {
  ReloadDone done;
  RuntimePtr runtime;
  std::uint64_t fingerprint = 0;
  Status problem;
  ipc::ReloadResult result;
};

void Server::reload(ReloadDone done) {
  if (stopping_ || std::exchange(reloading_, true))
    return done(fail(Errc::kExists, "a reload or the end of the process is under way"));
  log::info("reload_started");
  systemd::reloading();
  auto reload = std::make_shared<Reload>();
  reload->done = std::move(done);
  // Two that bring the store in line at once would give zones the same places in its side table.
  if (in_line_)
    start_reload(reload);
  else
    waiting_reload_ = reload;
}

/// Nobody waits for an answer to SIGHUP, so it is never refused: what was edited before it came is
/// served in the end. One more reload does for all that come while one is under way.
void Server::reload_or_put_off() {
  if (!reloading_ || stopping_) return reload([](const Result<ipc::ReloadResult>&) {});
  if (std::exchange(reload_again_, true)) return;
  log::info("reload_put_off", "until", "the one that is under way has ended");
}

void Server::start_reload(const std::shared_ptr<Reload>& reload) {
  asio::post(pool_, [this, reload] { reload_read(reload); });
}

/// Pool thread: a million zones take a second to read.
void Server::reload_read(const std::shared_ptr<Reload>& reload) {
  config::LoadResult loaded = config::load(options_.config_path);
  pause_point("configuration-read");
  reload->result.warnings = std::move(loaded.warnings);
  reload->fingerprint = loaded.fingerprint;
  if (!loaded.ok()) {
    reload->problem = fail(Errc::kInvalid, "{}", loaded.error_text());
  } else {
    auto runtime = make_runtime(std::move(loaded.settings));
    if (runtime)
      reload->runtime = std::move(*runtime);
    else
      reload->problem = pass(runtime);
  }
  asio::post(io_, [this, reload] {
    if (!reload->runtime) return reload_end(reload, reload->problem);
    reload_settings(reload);
  });
}

/// Zones and rules first, as versions; then what lives outside the store; then the files.
void Server::reload_settings(const std::shared_ptr<Reload>& reload) {
  reload->result.restart_needed =
      config::restart_needed(runtime_->settings, reload->runtime->settings);
  secondaries_->let_go(reload->runtime, [this, reload] { reload_zones(reload); });
}

void Server::reload_zones(const std::shared_ptr<Reload>& reload) {
  if (checkpointer_ && reload->fingerprint != options_.configuration)
    checkpointer_->set_configuration(0);
  ZoneTableSync::run(
      *store_, *committer_, reload->runtime,
      [this, reload](const Status& status, const ZoneTableSync::Counts& counts) {
        if (!status && !counts.but_for_some) {
          if (checkpointer_) checkpointer_->set_configuration(0);
          secondaries_->configure(runtime_);
          // Once more those that were looked at since they were let go.
          loads_->load_copies(runtime_, history());
          return reload_end(reload, status);
        }
        loads_->recounted(counts.loaded);
        reload->result.zones_added = counts.added;
        reload->result.zones_removed = counts.removed;
        reload->result.zones_changed = counts.changed;
        reload->problem = status;
        // A store that has not all zones is not in line with any.
        options_.configuration = status ? reload->fingerprint : 0;
        if (checkpointer_) checkpointer_->set_configuration(options_.configuration);
        runtime_ = reload->runtime;
        configured_ = static_cast<std::uint64_t>(std::time(nullptr));
        const config::Settings& settings = runtime_->settings;
        log::start(log_options(settings.server.log));
        service_->set_runtime(runtime_);
        lists_in_use();
        notifier_->configure(runtime_);
        loader_->set_limits(runtime_->limits);
        journal_upkeep_->set_limit(settings.store.journal_limit);
        if (checkpointer_)
          checkpointer_->set_limits(std::chrono::milliseconds(settings.store.checkpoint.interval),
                                    settings.store.checkpoint.journal);
        upkeep_->set_history_total(runtime_->limits.history_total);
        workers_->set_keys(runtime_->worker_keys);
        workers_->set_pin_time(settings.limits.pin_time);
        auto change =
            listeners_->set_addresses({settings.server.listen, settings.server.listen_tls});
        for (const std::string& error : change.errors) {
          log::error("listen_failed", "reason", error);
          reload->result.warnings.push_back(error);
        }
        workers_->sockets_changed(change);
        if (settings.server.workers.mode != config::Workers::Mode::kExternal)
          workers_->set_count(worker_count());
        secondaries_->configure(runtime_);
        loads_->load(runtime_, history(), [this, reload](const ZoneFileLoads::Counts& files) {
          copies_->keep_only(runtime_);
          configure_exports();
          if (files.is_first) notifier_->tell_all();
          reload->result.zones_changed += files.changed;
          reload->result.zones_failed = files.failed;
          reload->result.problems = files.problems;
          if (!reload->problem && files.failed > 0)
            reload->problem = fail(reload->problem.error().code, "{}; {} files failed, {}",
                                   reload->problem.error().text, files.failed,
                                   files.problems.empty() ? "" : files.problems.front());
          reload_end(reload, reload->problem);
        });
      });
}

void Server::reload_end(const std::shared_ptr<Reload>& reload, const Status& status) {
  reloading_ = false;
  tell_reload(*reload, status);
  if (std::exchange(reload_again_, false)) reload_or_put_off();
}

void Server::tell_reload(const Reload& reload, const Status& status) {
  for (const std::string& text : reload.result.warnings)
    log::warning("configuration", "text", text);
  for (const std::string& key : reload.result.restart_needed)
    log::warning("restart_needed", "key", key);
  const bool lists_failed = list_state_ == ListState::kFailed;
  if (!status && lists_failed) list_problem_ = status.error().text;
  if (!stopping_)
    systemd::ready(lists_failed ? std::string(kListsNotRead)
                                : fmt::format("{} zones", committer_->current().zone_count()));
  if (!status) {
    log::error("reload_failed", "reason", status.error().text);
    return reload.done(tl::unexpected<Error>(status.error()));
  }
  log::info("reload_finished", "added", reload.result.zones_added, "removed",
            reload.result.zones_removed, "changed", reload.result.zones_changed, "failed",
            reload.result.zones_failed);
  reload.done(reload.result);
}

}  // namespace pando::manager
