#include "manager/start/reloader.h"

#include <asio/post.hpp>
#include <utility>

#include "base/pause_point.h"
#include "base/secret.h"
#include "base/unix_time.h"
#include "config/load.h"
#include "ipc/log.h"
#include "manager/start/log_options.h"
#include "manager/start/systemd.h"

namespace pando::manager {

struct Reloader::Reload {
  Done done;
  RuntimePtr runtime;
  std::uint64_t fingerprint = 0;
  Status problem;
  ipc::ReloadResult result;
};

Reloader::Reloader(asio::io_context& io, asio::thread_pool& pool, Parts parts)
    : io_(io), pool_(pool), parts_(parts) {}

void Reloader::reload(Done done) {
  if (stopping_ || std::exchange(under_way_, true))
    return done(fail(Errc::kExists, "a reload or the end of the process is under way"));
  log::info("reload_started");
  systemd::reloading();
  auto reload = std::make_shared<Reload>();
  reload->done = std::move(done);
  if (allowed_)
    start(reload);
  else
    waiting_ = reload;
}

void Reloader::reload_or_put_off() {
  if (!under_way_ || stopping_) return reload([](const Result<ipc::ReloadResult>&) {});
  if (std::exchange(again_, true)) return;
  log::info("reload_put_off", "until", "the one that is under way has ended");
}

void Reloader::allow() {
  allowed_ = true;
  if (waiting_) start(std::exchange(waiting_, nullptr));
}

void Reloader::give_up() {
  if (const auto reload = std::exchange(waiting_, nullptr))
    end(reload, fail(Errc::kExists, "the process ends"));
}

void Reloader::start(const ReloadPtr& reload) {
  asio::post(pool_, [this, reload] { read(reload); });
}

/// In a thread of the pool: a million zones take a second to read.
void Reloader::read(const ReloadPtr& reload) {
  const WipeFreed wipe_freed;  // the secrets of a configuration that is not taken
  config::LoadResult loaded = config::load(parts_.configuration.path);
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
    if (!reload->runtime) return end(reload, reload->problem);
    release_secondaries(reload);
  });
}

/// The order of a reload: zones and rules as versions of the store, then the parts outside the
/// store, then the zone files.
void Reloader::release_secondaries(const ReloadPtr& reload) {
  reload->result.restart_needed =
      config::restart_needed(parts_.configuration.runtime->settings, reload->runtime->settings);
  parts_.zones.secondaries->let_go(reload->runtime, [this, reload] { sync_zones(reload); });
}

void Reloader::note_configuration(std::uint64_t fingerprint) {
  if (parts_.services.checkpointer) parts_.services.checkpointer->set_configuration(fingerprint);
}

void Reloader::sync_zones(const ReloadPtr& reload) {
  if (reload->fingerprint != parts_.configuration.fingerprint) note_configuration(0);
  ZoneTableSync::run(*parts_.data.store, *parts_.services.committer, reload->runtime,
                     [this, reload](const Status& status, const ZoneTableSync::Counts& counts) {
                       if (!status && !counts.but_for_some) return keep_old(reload, status);
                       take_new(reload, status, counts);
                     });
}

/// The store could not take the new zones: the configuration before stays in force.
void Reloader::keep_old(const ReloadPtr& reload, const Status& status) {
  const RuntimePtr& runtime = parts_.configuration.runtime;
  note_configuration(0);
  parts_.zones.secondaries->configure(runtime);
  // Files of secondaries that were read since release_secondaries() have to be read once more.
  parts_.zones.loads->load_copies(runtime, make_history(*parts_.data.journal));
  end(reload, status);
}

void Reloader::take_new(const ReloadPtr& reload, const Status& status,
                        const ZoneTableSync::Counts& counts) {
  CurrentConfiguration& configuration = parts_.configuration;
  parts_.zones.loads->recounted(counts.loaded);
  reload->result.zones_added = counts.added;
  reload->result.zones_removed = counts.removed;
  reload->result.zones_changed = counts.changed;
  reload->problem = status;
  // A store that lacks some zones is in line with no configuration.
  configuration.fingerprint = status ? reload->fingerprint : 0;
  note_configuration(configuration.fingerprint);
  configuration.runtime = reload->runtime;
  configuration.read_at = unix_seconds();
  log::start(log_options(configuration.runtime->settings.server.log));
  configure_parts();
  configure_workers(*reload);
  parts_.zones.secondaries->configure(configuration.runtime);
  load_files(reload);
}

void Reloader::configure_parts() {
  const RuntimePtr& runtime = parts_.configuration.runtime;
  const config::StoreSettings& store = runtime->settings.store;
  StoreServices& services = parts_.services;
  parts_.zones.updates->set_runtime(runtime);
  parts_.lists.accept();
  parts_.zones.notifier->configure(runtime);
  parts_.zones.signatures->configured();
  parts_.zones.loader->set_limits(runtime->limits);
  services.journal_upkeep->set_limit(store.journal_limit);
  if (services.checkpointer)
    services.checkpointer->set_limits(std::chrono::milliseconds(store.checkpoint.interval),
                                      store.checkpoint.journal);
  services.upkeep->set_history_total(runtime->limits.history_total);
}

void Reloader::configure_workers(Reload& reload) {
  const RuntimePtr& runtime = parts_.configuration.runtime;
  const config::Settings& settings = runtime->settings;
  WorkerPool& workers = parts_.workers;
  workers.set_keys(runtime->worker_keys);
  workers.set_pin_time(settings.limits.pin_time);
  workers.set_logging(worker_logging(settings.server.log));
  auto change =
      parts_.listeners.set_addresses({settings.server.listen, settings.server.listen_tls});
  for (const std::string& error : change.errors) {
    log::error("listen_failed", "reason", error);
    reload.result.warnings.push_back(error);
  }
  workers.sockets_changed(change);
  if (settings.server.workers.mode != config::Workers::Mode::kExternal)
    workers.set_count(wanted_workers(settings));
}

void Reloader::load_files(const ReloadPtr& reload) {
  const auto history = make_history(*parts_.data.journal);
  const auto done = [this, reload, history](const ZoneFileLoads::Counts& files) {
    const RuntimePtr& runtime = parts_.configuration.runtime;
    parts_.zones.copies->keep_only(runtime);
    configure_exports(parts_.services, parts_.zones, runtime);
    if (files.is_first) parts_.zones.notifier->tell_all();
    reload->result.zones_changed += files.changed;
    reload->result.zones_failed = files.failed;
    reload->result.problems = files.problems;
    if (!reload->problem && files.failed > 0)
      reload->problem = fail(reload->problem.error().code, "{}; {} files failed, {}",
                             reload->problem.error().text, files.failed,
                             files.problems.empty() ? "" : files.problems.front());
    find_removed(reload, history);
  };
  parts_.zones.loads->load(parts_.configuration.runtime, history, done);
}

/// The journal is read for this only if the list of removed zones may have changed.
void Reloader::find_removed(const ReloadPtr& reload,
                            const std::shared_ptr<HistorySource>& history) {
  RemovedZones& removed = *parts_.zones.removed;
  const bool may_return = reload->result.zones_added > 0 && !removed.zones().empty();
  if (reload->result.zones_removed == 0 && !may_return) return end(reload, reload->problem);
  removed.look(parts_.configuration.runtime, history, [this, reload](std::uint64_t added) {
    reload->result.zones_kept = added;
    end(reload, reload->problem);
  });
}

void Reloader::end(const ReloadPtr& reload, const Status& status) {
  under_way_ = false;
  tell(*reload, status);
  if (std::exchange(again_, false)) reload_or_put_off();
}

void Reloader::tell(const Reload& reload, const Status& status) {
  for (const std::string& text : reload.result.warnings)
    log::warning("configuration", "text", text);
  for (const std::string& key : reload.result.restart_needed)
    log::warning("restart_needed", "key", key);
  const bool lists_failed = parts_.lists.state() == ZoneLists::State::kFailed;
  if (!status && lists_failed) parts_.lists.set_problem(status.error().text);
  if (!stopping_)
    systemd::ready(
        lists_failed ? std::string(ZoneLists::kNotRead)
                     : fmt::format("{} zones", parts_.services.committer->current().zone_count()));
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
