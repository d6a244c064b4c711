#include <asio/post.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ipc/control.h"
#include "ipc/counters.h"
#include "ipc/log.h"
#include "manager/checkpoint/store_copy.h"
#include "manager/checkpoint/store_dump.h"
#include "manager/commit/rollback.h"
#include "manager/journal/journal_identity.h"
#include "manager/journal/journal_payload.h"
#include "manager/server/server.h"
#include "manager/server/store_audit.h"
#include "manager/workers/pin_watch.h"
#include "shm/side_table.h"

namespace pando::manager {

using nlohmann::json;

void Server::control(const ipc::ControlRequest& request, const ControlServer::Reply& reply) {
  if (put_off(request, reply)) return;
  if (request.verb == ipc::verb::kReload)
    return reload([reply](Result<ipc::ReloadResult> result) {
      reply(result ? Result<json>(ipc::to_json(*result))
                   : Result<json>(tl::unexpected<Error>(result.error())));
    });
  if (request.verb == ipc::verb::kZoneExport) return export_zone(request, reply);
  if (request.verb == ipc::verb::kZoneRollback) return roll_back(request, reply);
  if (request.verb == ipc::verb::kZoneSnapshot) return take_snapshot(request, reply);
  if (request.verb == ipc::verb::kZoneSnapshotDelete) return delete_snapshot(request, reply);
  if (request.verb == ipc::verb::kStoreAudit) return audit(request, reply);
  if (request.verb == ipc::verb::kStoreCheckpoint) return write_checkpoint(reply);
  if (request.verb == ipc::verb::kStoreCopy) return copy_store_to(request.to, reply);
  if (request.verb == ipc::verb::kStoreDump) return dump_store_to(request.to, reply);
  if (request.verb == ipc::verb::kHandOver) return hand_over(reply);
  if (request.verb == ipc::verb::kStop) {
    reply(json::object());
    return asio::post(io_, [this] { stop(); });
  }
  reply(query(request));
}

/// Their writers sleep most of the time, and each would keep a thread of the pool from loading.
asio::thread_pool& Server::file_writers() {
  constexpr std::size_t kCopyAndDump = 2;
  if (!file_writers_) file_writers_.emplace(kCopyAndDump);
  return file_writers_->pool();
}

/// Nothing that stays is to be written from chunks whose checksums have not been compared yet.
Status Server::check_whole() const {
  if (!copying_image_) return {};
  return fail(Errc::kExists, "the store is still being copied from its image");
}

void Server::export_zone(const ipc::ControlRequest& request, const ControlServer::Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  if (!loads_->settled()) return reply(fail(Errc::kExists, "the zones are still being loaded"));
  if (auto whole = check_whole(); !whole) return reply(pass(whole));
  const auto done = [reply, zone = *name](const Result<ZoneExports::Exported>& exported) {
    if (!exported) return reply(tl::unexpected<Error>(exported.error()));
    reply(ipc::to_json(ipc::ExportResult{to_text(zone), exported->serial.value, exported->records,
                                         exported->path, exported->written}));
  };
  if (request.to.empty())
    exports_->write_own(*name, done);
  else
    exports_->write_to(*name, request.to, done);
}

void Server::write_checkpoint(const ControlServer::Reply& reply) {
  if (!checkpointer_ && !refused_image_.text().empty())
    return reply(fail(Errc::kUnsupported, "no image is written: {}", refused_image_.text()));
  if (!checkpointer_) return reply(fail(Errc::kUnsupported, "store.image is not configured"));
  checkpointer_->write_now([reply](const Status& status) {
    reply(status ? Result<json>(json::object())
                 : Result<json>(tl::unexpected<Error>(status.error())));
  });
}

void Server::copy_store_to(const std::string& path, const ControlServer::Reply& reply) {
  if (!path.starts_with('/'))
    return reply(fail(Errc::kInvalid, "'{}': not an absolute path", path));
  const config::StoreSettings& store = runtime_->settings.store;
  auto fine = check_copy_target(native_files(), path, store.journal, {store.image, store.path});
  if (!fine) return reply(pass(fine));
  if (auto whole = check_whole(); !whole) return reply(pass(whole));
  if (std::exchange(copying_, true))
    return reply(fail(Errc::kExists, "another copy is being written"));
  if (checkpointer_) checkpointer_->doubt();
  copy_store(*store_, *slots_, *journal_, io_, file_writers(), native_files(), {path, ending_},
             [this, reply](const Status& status) {
               copying_ = false;
               reply(status ? Result<json>(json::object())
                            : Result<json>(tl::unexpected<Error>(status.error())));
             });
}

void Server::dump_store_to(const std::string& path, const ControlServer::Reply& reply) {
  if (!path.starts_with('/'))
    return reply(fail(Errc::kInvalid, "'{}': not an absolute path", path));
  const config::StoreSettings& store = runtime_->settings.store;
  auto fine = check_copy_target(native_files(), path, store.journal, {store.image, store.path},
                                zone::looks_like_dump);
  if (!fine) return reply(pass(fine));
  write_dump(path, reply);
}

void Server::write_dump(const std::string& path, const DumpDone& done) {
  if (!loads_->settled()) return done(fail(Errc::kExists, "the zones are still being loaded"));
  if (auto whole = check_whole(); !whole) return done(pass(whole));
  if (std::exchange(dumping_, true))
    return done(fail(Errc::kExists, "another dump is being written"));
  auto owner = journal_identity(native_files(), runtime_->settings.store.journal);
  if (!owner) return done(pass(owner));
  DumpRequest request{path, *owner, history(), ending_};
  dump_store(*store_, *slots_, *journal_, io_, file_writers(), native_files(), std::move(request),
             [this, done](const Result<WrittenDump>& written) {
               dumping_ = false;
               if (!written) return done(tl::unexpected<Error>(written.error()));
               done(ipc::to_json(ipc::DumpResult{written->counts.zones, written->counts.records,
                                                 written->counts.differences, written->bytes,
                                                 written->position}));
             });
}

/// All that is needed to go on is left beside the journal; what comes behind it is in the journal.
void Server::hand_over(const ControlServer::Reply& reply) {
  write_dump(PlacedDump::path_in(runtime_->settings.store.journal),
             [this, reply](Result<json> written) {
               const bool done = written.has_value();
               reply(std::move(written));
               if (done) asio::post(io_, [this] { leave_workers(); });
             });
}

namespace {

/// The options of a primary zone; what a primary sends is not ours to change.
Result<const config::ZoneOptions*> primary_zone(const config::Settings& settings,
                                                const dns::Name& name) {
  const auto index = settings.zones.find(name);
  if (!index) return fail(Errc::kNotFound, "no zone {}", to_text(name));
  const config::ZoneOptions& options = *settings.zones[*index].options;
  if (options.is_secondary())
    return fail(Errc::kInvalid, "{}: what its primary sends is served", to_text(name));
  return &options;
}

}  // namespace

/// An update like any other, so it is journalled, goes to the secondaries and wins over the file.
void Server::roll_back(const ipc::ControlRequest& request, const ControlServer::Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  auto options = primary_zone(runtime_->settings, *name);
  if (!options) return reply(pass(options));
  const RollbackTarget target{{request.serial}, request.label};
  ZoneChange change;
  change.zone = *name;
  change.records = target.records(committer_->current().zone_at(*name));
  change.stage = [this, zone = *name, target, runtime = runtime_,
                  policy = (*options)->serial_policy,
                  now = static_cast<std::uint64_t>(std::time(nullptr))](Stage& stage) {
    return stage_rollback(*committer_, *journal_, stage, zone, target, policy, now,
                          runtime->limits);
  };
  change.done = [this, reply, zone = *name](const Result<std::uint64_t>& version) {
    if (!version) return reply(tl::unexpected<Error>(version.error()));
    const dns::Serial serial = committer_->current().zone_at(zone).serial();
    log::info("zone_rolled_back", "zone", to_text(zone), "serial", serial.value);
    reply(json{{"serial", serial.value}});
  };
  changes_->submit(std::move(change));
}

/// With an image a checkpoint begins, so that a host that restarts has the snapshot.
void Server::take_snapshot(const ipc::ControlRequest& request, const ControlServer::Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  auto options = primary_zone(runtime_->settings, *name);
  if (!options) return reply(pass(options));
  // A snapshot is in no journal: it would be lost with a store that is made anew.
  if (auto whole = check_whole(); !whole) return reply(pass(whole));
  const auto done = [this, reply, zone = *name,
                     label = request.label](const Result<dns::Serial>& serial) {
    if (!serial) return reply(tl::unexpected<Error>(serial.error()));
    if (checkpointer_) checkpointer_->write_now([](const Status&) {});
    reply(ipc::to_json(
        ipc::SnapshotResult{to_text(zone), label, serial->value, checkpointer_ != nullptr}));
  };
  snapshots_->take(*name, request.label, static_cast<std::uint64_t>(std::time(nullptr)),
                   runtime_->limits, done);
}

void Server::delete_snapshot(const ipc::ControlRequest& request,
                             const ControlServer::Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  if (auto whole = check_whole(); !whole) return reply(pass(whole));
  snapshots_->forget(*name, request.label, runtime_->limits, [reply](const Status& status) {
    reply(status ? Result<json>(json::object())
                 : Result<json>(tl::unexpected<Error>(status.error())));
  });
}

Result<json> Server::list_snapshots(const ipc::ControlRequest& request) const {
  const std::string& text = request.name.empty() ? request.after : request.name;
  if (text.empty()) return ipc::to_json(snapshots_->list_behind(nullptr, request.limit));
  auto name = dns::Name::from_text(text);
  if (!name) return pass(name);
  if (request.name.empty()) return ipc::to_json(snapshots_->list_behind(&*name, request.limit));
  auto rows = snapshots_->list(*name);
  if (!rows) return pass(rows);
  return ipc::to_json(*rows);
}

void Server::audit(const ipc::ControlRequest& request, const ControlServer::Reply& reply) {
  std::optional<dns::Name> zone;
  if (!request.name.empty()) {
    auto name = dns::Name::from_text(request.name);
    if (!name) return reply(pass(name));
    zone = *name;
  }
  audit_store(*store_, *slots_, io_, pool_, zone, [reply](Result<ipc::StoreAudit> result) {
    reply(result ? Result<json>(ipc::to_json(*result))
                 : Result<json>(tl::unexpected<Error>(result.error())));
  });
}

Result<json> Server::query(const ipc::ControlRequest& request) {
  if (request.verb == ipc::verb::kStatus) return ipc::to_json(status());
  if (request.verb == ipc::verb::kZoneList) return zone_list(request);
  if (request.verb == ipc::verb::kZoneStatus) return zone_status(request);
  if (request.verb == ipc::verb::kZoneSnapshots) return list_snapshots(request);
  if (request.verb == ipc::verb::kWorkerList) return ipc::to_json(worker_list());
  if (request.verb == ipc::verb::kWorkerAdd || request.verb == ipc::verb::kWorkerRemove)
    return change_workers(request);
  return fail(Errc::kUnsupported, "unknown verb {}", request.verb);
}

ipc::StatusResult Server::status() const {
  const zone::StoreView current = committer_->current();
  ipc::StatusResult result;
  result.version = PANDO_VERSION;
  result.pid = static_cast<std::uint32_t>(::getpid());
  result.started = started_;
  result.configuration = options_.config_path;
  result.configured = configured_;
  result.zone_lists = list_state_ == ListState::kRead      ? "read"
                      : list_state_ == ListState::kReading ? "reading"
                                                           : "failed";
  result.problem = list_problem_;
  const bool external = runtime_->settings.server.workers.mode == config::Workers::Mode::kExternal;
  result.worker_mode = external ? "external" : "managed";
  result.workers_wanted = external ? 0 : worker_count();
  for (const WorkerStatus& worker : workers_->status())
    if (worker.state == WorkerStatus::State::kServing) ++result.workers_running;
  result.zones = current.zone_count();
  result.zones_loaded = loads_->loaded();
  result.store_version = current.version();
  const shm::StoreStats stats = store_->stats();
  result.store = {{"memory", stats.memory_bytes},
                  {"live", stats.live_bytes},
                  {"history", committer_->current().history_bytes()},
                  {"limit", stats.limit_bytes},
                  {"chunks_in_use", stats.chunks_in_use},
                  {"chunks_peak", stats.peak_chunks},
                  {"chunks_waiting", stats.waiting_chunks},
                  {"chunks_free", stats.free_chunks},
                  {"huge_pages", stats.huge_pages}};
  result.journal = {{"position", journal_->last_position()},
                    {"bytes", journal_->total_bytes()},
                    {"snapshots", journal_upkeep_->snapshots()}};
  if (checkpointer_) {
    const Checkpointer::Counters& image = checkpointer_->counters();
    result.image = {{"version", checkpointer_->version()},
                    {"position", checkpointer_->position()},
                    {"written_at", checkpointer_->written_at()},
                    {"checkpoints", image.checkpoints},
                    {"checkpoints_failed", image.failed},
                    {"bytes_written", image.bytes},
                    {"last_bytes", image.last_bytes},
                    {"last_ms", image.last_ms},
                    {"longest_capture_us", image.longest_capture_us},
                    {"chunks_held", checkpointer_->held_chunks()},
                    {"bytes_to_copy", copying_image_ ? copying_image_->bytes_left() : 0}};
  }
  // One that is written has what the refused one has not; that one is only named from then on.
  if (!checkpointer_ || checkpointer_->version() == 0) result.image_refused = refused_image_.text();
  if (!checkpointer_ || checkpointer_->has_refused()) result.image_kept = refused_image_.kept();
  const Committer::Counters commits = committer_->counters();
  const UpdateService::Counters& service = service_->counters();
  const Refresher::Counters transfers = visits_->counters();
  const Notifier::Counters notifies = notifier_->counters();
  const ZoneExports::Counters exports = exports_->counters();
  result.counters = {{"versions", commits.versions},
                     {"store_bytes", commits.store_bytes},
                     {"updates", service.updates},
                     {"updates_accepted", service.accepted},
                     {"updates_failed", service.failed},
                     {"updates_forwarded", forwarder_->counters().forwarded},
                     {"updates_not_forwarded", forwarder_->counters().failed},
                     {"updates_repeated", service.repeated},
                     {"notifies", service.notifies},
                     {"transfers_in", transfers.transfers},
                     {"transfers_in_ixfr", transfers.differences},
                     {"transfers_in_failed", transfers.failures},
                     {"transfers_in_fallbacks", transfers.fallbacks},
                     {"notifies_sent", notifies.sent},
                     {"notifies_answered", notifies.answered},
                     {"notifies_failed", notifies.failed},
                     {"exports", exports.exports},
                     {"exports_failed", exports.failures},
                     {"signed_queries", service.signed_queries},
                     {"bad_signatures", service.bad_signatures},
                     {"upkeep_walks", upkeep_->counters().walks},
                     {"large_changes", changes_->counters().beside},
                     {"large_changes_again", changes_->counters().again},
                     {"log_lines_dropped", log::dropped()}};
  return result;
}

namespace {
/// Of a problem's text in a list's row: of a thousand in a page each may have one.
constexpr std::size_t kMostProblemBytes = 200;
}  // namespace

ipc::ZoneRow Server::zone_row(const zone::ZoneView& zone, bool every_field) {
  ipc::ZoneRow row;
  row.name = to_text(zone.apex());
  const auto index = runtime_->settings.zones.find(zone.apex());
  // While the zone lists are not read, the store alone knows.
  const bool secondary =
      index ? runtime_->settings.zones[*index].options->is_secondary() : is_secondary(zone);
  row.kind = secondary ? "secondary" : "primary";
  const shm::Store::SideEntry* side = shm::known_side(store_->window(), zone.side_index());
  const std::uint64_t expires =
      side == nullptr ? 0 : side->expires_at.load(std::memory_order_relaxed);
  const bool expired = expires != 0 && expires <= static_cast<std::uint64_t>(std::time(nullptr));
  if (!zone.loaded())
    row.state = !loader_->idle() && !loads_->has_problem(zone) ? "loading" : "not-loaded";
  else
    row.state = expired ? "expired" : "ok";
  row.serial = zone.loaded() ? zone.serial().value : 0;
  row.records = zone.record_count();
  row.problem = problem_of(zone, secondary);
  if (!every_field) {
    if (row.problem.size() > kMostProblemBytes)
      row.problem.replace(kMostProblemBytes, std::string::npos, "...");
    return row;
  }
  if (const auto load = loader_->progress(zone.apex())) {
    const Progress::Seen seen = load->seen();
    row.load_phase = to_text(seen.phase);
    row.load_done = seen.done;
    row.load_total = seen.total;
  }
  row.names = zone.name_count();
  row.history = zone.history_bytes();
  if (index) row.file = runtime_->settings.zones.path(*index);
  if (secondary && index)
    for (const std::string& name : runtime_->settings.zones[*index].options->primaries)
      if (const config::Remote* remote = runtime_->settings.find_remote(name))
        for (const Endpoint& address : remote->address)
          row.primaries.push_back(pando::to_text(address));
  row.notified = notifier_->status(dns::Name(zone.apex()));
  row.expires_at = expires;
  if (side != nullptr) {
    row.refresh_at = side->next_refresh.load(std::memory_order_relaxed);
    row.last_ok = side->last_ok.load(std::memory_order_relaxed);
  }
  const auto refresh = secondary ? visits_->status(dns::Name(zone.apex())) : std::nullopt;
  if (refresh) row.refresh_at = refresh->next_refresh;
  return row;
}

/// Of its primaries, of its file, or of its export; a zone may have one and be served all the same.
std::string Server::problem_of(const zone::ZoneView& zone, bool secondary) const {
  std::string text;
  if (secondary) text = visits_->problem(dns::Name(zone.apex()));
  if (text.empty()) text = loads_->problem(zone);
  if (text.empty()) text = exports_->problem(zone.apex());
  return text;
}

Result<json> Server::zone_list(const ipc::ControlRequest& request) {
  ipc::ZoneListResult result;
  const zone::StoreView current = committer_->current();
  zone::ZoneWalk walk(current);
  if (!request.after.empty()) {
    auto after = dns::Name::from_text(request.after);
    if (!after) return pass(after);
    walk.seek_after(*after);
  }
  while (const zone::ZoneView zone = walk.next()) {
    if (result.zones.size() >= request.limit) {
      result.next = result.zones.back().name;
      break;
    }
    result.zones.push_back(zone_row(zone, false));
  }
  return ipc::to_json(result);
}

Result<json> Server::zone_status(const ipc::ControlRequest& request) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return pass(name);
  const zone::ZoneView zone = committer_->current().zone_at(*name);
  if (!zone) return fail(Errc::kNotFound, "no zone {}", to_text(*name));
  return ipc::to_json(zone_row(zone, true));
}

namespace {

/// What the kernel holds to map memory for a process; 0: not known, it may just have ended.
std::uint64_t page_table_bytes(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; pid > 0 && status >> word;)
    if (std::uint64_t kib = 0; word == "VmPTE:" && status >> kib) return kib << 10;
  return 0;
}

}  // namespace

ipc::WorkerListResult Server::worker_list() {
  ipc::WorkerListResult result;
  result.mode = runtime_->settings.server.workers.mode == config::Workers::Mode::kExternal
                    ? "external"
                    : "managed";
  for (const WorkerStatus& worker : workers_->status()) {
    ipc::WorkerRow row;
    row.slot = worker.slot;
    row.pid = static_cast<std::uint32_t>(std::max(worker.pid, 0));
    row.state = to_text(worker.state);
    row.restarts = worker.restarts;
    row.page_tables = page_table_bytes(worker.pid);
    if (const shm::SlotPage* page = slots_->page(worker.slot)) {
      if (worker.pid > 0) row.started = page->started;
      for (const shm::Lease& lease : page->leases) row.leases += lease.epoch.load() != 0 ? 1 : 0;
      for (std::size_t i = 0; i < ipc::kCounterNames.size(); ++i)
        row.counters[std::string(ipc::kCounterNames[i])] =
            page->counters[i].load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < ipc::kLatencies; ++i)
        row.counters["batches_below_us_" + std::to_string(std::uint64_t{1} << i)] =
            page->counters[ipc::kLatencyBase + i].load(std::memory_order_relaxed);
    }
    result.workers.push_back(std::move(row));
  }
  return result;
}

Result<json> Server::change_workers(const ipc::ControlRequest& request) {
  if (runtime_->settings.server.workers.mode == config::Workers::Mode::kExternal)
    return fail(Errc::kUnsupported, "workers are external");
  for (std::uint32_t i = 0; i < request.count; ++i) {
    if (request.verb == ipc::verb::kWorkerAdd) {
      if (auto added = workers_->add(); !added) return pass(added);
      continue;
    }
    std::optional<std::uint32_t> highest;
    for (const WorkerStatus& worker : workers_->status())
      if (worker.state != WorkerStatus::State::kDraining) highest = worker.slot;
    if (!highest) return fail(Errc::kNotFound, "no worker left");
    if (auto removed = workers_->remove(*highest); !removed) return pass(removed);
  }
  return ipc::to_json(worker_list());
}

}  // namespace pando::manager
