#include "manager/start/reloader.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "base/pause_point.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/io/session_key.h"
#include "manager/signing/keys/signed_zone_list.h"
#include "manager/start/log_options.h"
#include "manager/start/produced_catalogs.h"
#include "manager/start/tls_configuration.h"
#include "manager/start/wanted_configuration.h"
#include "manager/tls/tls_certificates.h"

namespace pando::manager {

namespace {

/// Time for which the journal is not read again for new zones. Until then its files stay open, and
/// take space also when a journal snapshot has replaced them.
constexpr std::chrono::seconds kHistoryTime{10};

/// Whether workers need the keys anew: the same keys may be the manager's alone, or theirs as well.
bool same_holders(const WorkerKeys& a, const WorkerKeys& b) {
  return std::equal(a.held.begin(), a.held.end(), b.held.begin(), b.held.end(),
                    [](const auto& one, const auto& other) { return one.name == other.name; });
}

}  // namespace

struct Reloader::Reload {
  Done done;
  RuntimePtr runtime;
  RuntimePtr before;  // once `runtime` is in force
  std::uint64_t fingerprint = 0;
  Status problem;
  ipc::ReloadResult result;
  std::shared_ptr<HistorySource> history;
  // Of adopt(), which reads no file of the configuration.
  Adopted adopted;
  ZoneNames only;           // null: all zones
  bool only_added = false;  // all of them are new
  bool reads_files_only = false;
  ZoneFileLoads::Counts files;
  ZoneFileLoads::ZoneBits counted;  // zones that are among the added or changed ones already
  bool by_name = false;  // the store's zones were not walked
  bool all_secondaries = true;
  bool lost_list = false;  // the list of added zones is missing, or cannot be used
};

Reloader::Reloader(asio::io_context& io, asio::thread_pool& pool, ServerParts parts)
    : io_(io), pool_(pool), parts_(parts), retired_(pool), kept_history_(kHistoryTime) {}

void Reloader::reload(Done done) {
  if (!gate_.enter())
    return done(fail(Errc::kExists, "a reload or the end of the process is under way"));
  log::info("reload_started");
  parts_.readiness.reload_begins();
  auto reload = std::make_shared<Reload>();
  reload->done = std::move(done);
  if (gate_.is_open())
    start(reload);
  else
    waiting_ = reload;
}

void Reloader::reload_or_put_off() {
  switch (gate_.signal()) {
    case ReloadGate::Signal::kEnters:
      return reload([](const Result<ipc::ReloadResult>&) {});
    case ReloadGate::Signal::kWaits:
      return log::info("reload_put_off", "until", "the one that is under way has ended");
    case ReloadGate::Signal::kIsServed:
      return;
  }
}

bool Reloader::hold() { return gate_.hold(); }

/// The fingerprint is that of files. It is unknown once the list of added zones has changed.
void Reloader::adopt(RuntimePtr runtime, ZoneNames zones, Adopted done) {
  auto reload = std::make_shared<Reload>();
  reload->adopted = std::move(done);
  reload->only = std::move(zones);
  reload->reads_files_only = runtime == parts_.configuration.runtime;
  if (reload->reads_files_only) reload->fingerprint = parts_.configuration.fingerprint;
  reload->runtime = std::move(runtime);
  release_secondaries(reload);
}

void Reloader::release() {
  gate_.release();
  if (waiting_) start(std::exchange(waiting_, nullptr));
}

void Reloader::allow() {
  gate_.allow();
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
  const config::Settings& before = parts_.configuration.runtime->settings;
  WantedConfiguration wanted = read_wanted(parts_.configuration.path, before);
  if (wanted.runtime) {
    auto made = make_session_keys(wanted.runtime->settings, std::nullopt);
    if (made && *made) wanted = read_wanted(parts_.configuration.path, before);
    if (!made) {
      wanted.runtime = nullptr;
      wanted.problem = pass(made);
    }
  }
  if (wanted.runtime) {
    if (const auto stays = check_signed_zones(native_files(), wanted.runtime->settings); !stays) {
      wanted.runtime = nullptr;
      wanted.problem = stays;
    }
  }
  if (wanted.runtime) make_missing_catalogs(wanted.runtime->settings);
  pause_point("configuration-read");
  reload->result.warnings = std::move(wanted.warnings);
  reload->fingerprint = wanted.fingerprint;
  reload->lost_list = wanted.lost_list;
  reload->runtime = std::move(wanted.runtime);
  reload->problem = std::move(wanted.problem);
  asio::post(io_, [this, reload] {
    if (!reload->runtime) return end(reload, reload->problem);
    release_secondaries(reload);
  });
}

/// The order of a reload: zones and rules as versions of the store, then the parts outside the
/// store, then the zone files.
void Reloader::release_secondaries(const ReloadPtr& reload) {
  SecondaryZones& secondaries = *parts_.zones.secondaries;
  if (reload->only && secondaries.let_go_of(*reload->only, reload->runtime)) {
    reload->all_secondaries = false;
    return sync_zones(reload);
  }
  reload->result.restart_needed =
      config::restart_needed(parts_.configuration.runtime->settings, reload->runtime->settings);
  secondaries.let_go(reload->runtime, [this, reload] { sync_zones(reload); });
}

void Reloader::note_configuration(std::uint64_t fingerprint) {
  if (parts_.services.checkpointer) parts_.services.checkpointer->set_configuration(fingerprint);
}

void Reloader::sync_zones(const ReloadPtr& reload) {
  if (reload->fingerprint != parts_.configuration.fingerprint) note_configuration(0);
  auto done = [this, reload](const Status& status, ZoneTableSync::Counts&& counts) {
    end_sync(reload, status, std::move(counts));
  };
  shm::Store& store = *parts_.data.store;
  Committer& committer = *parts_.services.committer;
  reload->by_name = reload->only && sides_;
  if (reload->by_name)
    ZoneTableSync::run_for(store, committer, reload->runtime, reload->only,
                           std::move(*std::exchange(sides_, std::nullopt)), std::move(done));
  else
    ZoneTableSync::run(store, committer, reload->runtime, std::move(done));
}

void Reloader::end_sync(const ReloadPtr& reload, const Status& status,
                        ZoneTableSync::Counts&& counts) {
  sides_.reset();
  if (status) sides_ = std::move(counts.sides);
  reload->counted = std::make_shared<const std::vector<bool>>(std::move(counts.counted));
  if (!status && !counts.but_for_some) return keep_old(reload, status);
  take_new(reload, status, counts);
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
  ZoneFileLoads& loads = *parts_.zones.loads;
  loads.recounted(reload->by_name ? loads.loaded() - std::min(loads.loaded(), counts.unloaded)
                                  : counts.loaded);
  reload->result.zones_added = counts.added;
  reload->result.zones_removed = counts.removed;
  reload->result.zones_changed = counts.changed;
  reload->only_added = reload->only && counts.added == reload->only->size();
  reload->problem = status;
  // A store that lacks some zones is in line with no configuration.
  configuration.fingerprint = status ? reload->fingerprint : 0;
  note_configuration(configuration.fingerprint);
  reload->before = std::exchange(configuration.runtime, reload->runtime);
  if (!same_holders(reload->before->worker_keys, reload->runtime->worker_keys) || !reload->only)
    parts_.workers.set_keys(reload->runtime->worker_keys);
  if (!reload->only) {
    configuration.read_at = unix_seconds();
    ++configuration.reads;
    configuration.list_problem.clear();
    configuration.log_level.reset();
    log::start(log_options(configuration.runtime->settings.server.log));
  }
  configure_zones(*reload);
  if (!reload->only) {
    configure_parts();
    configure_workers(*reload);
  }
  load_files(reload);
}

void Reloader::configure_secondaries(const Reload& reload) {
  if (reload.all_secondaries)
    parts_.zones.secondaries->configure(reload.runtime);
  else
    parts_.zones.secondaries->configure_released(reload.runtime);
}

/// The parts that depend on the zones alone.
void Reloader::configure_zones(const Reload& reload) {
  parts_.zones.signing->configure(reload.runtime, reload.only.get());
  parts_.zones.copies->configure(reload.runtime);
  parts_.zones.updates->set_runtime(reload.runtime);
  parts_.zones.notifier->configure(reload.runtime);
  parts_.zones.signatures->configured();
  parts_.certificates.configure({reload.runtime, &reload.runtime->settings});
  configure_secondaries(reload);
}

void Reloader::configure_parts() {
  const RuntimePtr& runtime = parts_.configuration.runtime;
  const config::StoreSettings& store = runtime->settings.store;
  StoreServices& services = parts_.services;
  parts_.lists.accept();
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
  workers.set_pin_time(settings.limits.pin_time);
  workers.set_logging(worker_logging(settings.server.log));
  workers.set_dnstap(dnstap_options(settings.server));
  workers.set_query_log(query_log_options(settings.server));
  auto change =
      parts_.listeners.set_addresses({settings.server.listen, {}});
  for (const std::string& error : change.errors) {
    log::error("listen_failed", "reason", error);
    reload.result.warnings.push_back(error);
  }
  for (std::string& error : configure_tls(settings, parts_.certificates, parts_.tls))
    reload.result.warnings.push_back(std::move(error));
  workers.sockets_changed(change);
  workers.set_xdp(xdp_options(settings.server));
  for (const ipc::XdpRow& row : workers.xdp_status())
    if (!row.problem.empty())
      reload.result.warnings.push_back(fmt::format("xdp: {}: {}", row.interface, row.problem));
  if (settings.server.workers.mode != config::Workers::Mode::kExternal)
    workers.set_count(wanted_workers(settings));
}

void Reloader::load_files(const ReloadPtr& reload) {
  reload->history = history_for(*reload);
  const auto done = [this, reload](const ZoneFileLoads::Counts& files) {
    files_loaded(reload, files);
  };
  if (reload->only)
    parts_.zones.loads->load_some(reload->runtime, *reload->only, reload->history, done);
  else
    parts_.zones.loads->load(reload->runtime, reload->history, done, std::move(reload->counted));
}

/// A zone that is new gets journal records only while the store has it, and a record when it
/// leaves. So a journal that was read before has all of a new zone, unless zones have left since.
/// Without this, zones that are added one by one would each have the whole journal read.
std::shared_ptr<HistorySource> Reloader::history_for(const Reload& reload) {
  if (!reload.only_added || may_return(reload)) return make_history(*parts_.data.journal);
  return kept_history_.get(parts_.services.committer->zone_records().gone(),
                           std::chrono::steady_clock::now(),
                           [this] { return make_history(*parts_.data.journal); });
}

void Reloader::free_retired() {
  retired_.free_unused();
  if (auto history = kept_history_.take_old(std::chrono::steady_clock::now()))
    asio::post(pool_, [history = std::move(*history)] {});
}

void Reloader::files_loaded(const ReloadPtr& reload, const ZoneFileLoads::Counts& files) {
  const RuntimePtr& runtime = parts_.configuration.runtime;
  ipc::ReloadResult& result = reload->result;
  // A zone that is new has no change that its file lacks.
  const bool may_differ = !reload->reads_files_only && (!reload->only_added || may_return(*reload));
  if (may_differ) parts_.zones.copies->keep_only(runtime);
  configure_exports(parts_.services, parts_.zones, runtime, may_differ);
  if (files.is_first) parts_.zones.notifier->tell_all();
  // The journal cannot be read for now, or it may not show that a zone has left.
  if (!parts_.zones.loads->waiting().empty() || result.zones_removed > 0) kept_history_.drop();
  result.zones_changed += files.changed;
  result.zones_failed = files.failed;
  result.problems = files.problems;
  result.zones_being_judged = files.being_judged;
  if (reload->only) reload->files = files;
  if (!reload->problem && files.failed > 0)
    reload->problem =
        fail(reload->problem.error().code, "{}; {} files failed, {}", reload->problem.error().text,
             files.failed, files.problems.empty() ? "" : files.problems.front());
  find_removed(reload);
}

/// Whether removed zones may have come back with this reload.
bool Reloader::may_return(const Reload& reload) const {
  const RemovedZones::Zones& removed = parts_.zones.removed->zones();
  if (!reload.only) return reload.result.zones_added > 0 && !removed.empty();
  return std::any_of(reload.only->begin(), reload.only->end(),
                     [&](const dns::Name& zone) { return removed.contains(zone); });
}

/// The journal is read for this only if the list of removed zones may have changed.
void Reloader::find_removed(const ReloadPtr& reload) {
  if (reload->result.zones_removed == 0 && !may_return(*reload))
    return end(reload, reload->problem);
  parts_.zones.removed->look(parts_.configuration.runtime, reload->history,
                             [this, reload](std::uint64_t added) {
                               reload->result.zones_kept = added;
                               end(reload, reload->problem);
                             });
}

void Reloader::end(const ReloadPtr& reload, const Status& status) {
  for (RuntimePtr* runtime : {&reload->before, &reload->runtime})
    if (*runtime != parts_.configuration.runtime) retired_.add(std::exchange(*runtime, nullptr));
  retired_.free_unused();
  if (reload->adopted) {
    if (status) return reload->adopted(reload->result, reload->files);
    return reload->adopted(pass(status), reload->files);
  }
  const bool again = gate_.leave();
  tell(*reload, status);
  if (again) reload_or_put_off();
}

void Reloader::tell(const Reload& reload, const Status& status) {
  for (const std::string& text : reload.result.warnings)
    log::warning("configuration", "text", text);
  for (const std::string& key : reload.result.restart_needed)
    log::warning("restart_needed", "key", key);
  const bool lists_failed = parts_.lists.state() == ZoneLists::State::kFailed;
  if (reload.lost_list) parts_.configuration.list_problem = status.error().text;
  if (!status && lists_failed) parts_.lists.set_problem(status.error().text);
  parts_.readiness.reload_ends();
  if (!status) {
    log::error("reload_failed", "reason", status.error().text);
    return reload.done(pass(status));
  }
  log::info("reload_finished", "added", reload.result.zones_added, "removed",
            reload.result.zones_removed, "changed", reload.result.zones_changed, "failed",
            reload.result.zones_failed, "being_judged", reload.result.zones_being_judged);
  reload.done(reload.result);
}

}  // namespace pando::manager
