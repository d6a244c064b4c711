#include "manager/control/report/status_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include "ipc/log.h"
#include "manager/support/found_damage.h"

namespace pando::manager {

namespace {

/// The parts of settings that restart_needed() compares. Zones would stay in memory, and secrets
/// that a reload removes must not be.
config::Settings restart_keys(const config::Settings& settings) {
  config::Settings kept;
  kept.server = settings.server;
  kept.server.cookies = {};
  kept.store = settings.store;
  kept.limits = settings.limits;
  if (settings.http) {
    config::Http& http = kept.http.emplace();
    http.user = settings.http->user;
    http.metrics_zones = settings.http->metrics_zones;
  }
  return kept;
}

std::string missing_text(const std::vector<std::string>& slots) {
  if (slots.empty()) return {};
  return fmt::format(
      "no worker in slot {}: the last one ended without an order, and its unit has started no "
      "other",
      fmt::join(slots, ", "));
}

}  // namespace

StatusReport::StatusReport(ServerParts parts, std::uint64_t started)
    : parts_(parts),
      started_(started),
      at_start_(restart_keys(parts.configuration.runtime->settings)),
      program_(own_program()),
      build_(own_build()) {}

ipc::StatusResult StatusReport::make() const {
  const zone::StoreView current = parts_.services.committer->current();
  ipc::StatusResult result;
  result.version = PANDO_VERSION;
  result.build = build_;
  result.program = program_;
  result.pid = static_cast<std::uint32_t>(::getpid());
  result.started = started_;
  result.configuration = parts_.configuration.path;
  result.configured = parts_.configuration.read_at;
  result.restart_needed =
      config::restart_needed(at_start_, parts_.configuration.runtime->settings);
  result.zone_lists = parts_.lists.state_text();
  result.problem = parts_.lists.problem();
  if (result.problem.empty()) result.problem = parts_.configuration.list_problem;
  if (result.problem.empty()) result.problem = parts_.services.journal_upkeep->problem();
  if (result.problem.empty()) result.problem = parts_.zones.loads->waiting();
  result.zones = current.zone_count();
  result.zones_loaded = parts_.zones.loads->loaded();
  result.store_version = current.version();
  add_workers(result);
  add_store(result);
  add_image(result);
  add_counters(result);
  return result;
}

void StatusReport::add_workers(ipc::StatusResult& result) const {
  const std::vector<WorkerStatus> workers = parts_.workers.status();
  const config::Settings& settings = parts_.configuration.runtime->settings;
  const bool external = settings.server.workers.mode == config::Workers::Mode::kExternal;
  result.worker_mode = external ? "external" : "managed";
  result.worker_isolation = parts_.workers.have_own_user() ? "user" : "none";
  result.workers_wanted = external ? 0 : wanted_workers(settings);
  std::vector<std::string> missing;
  for (const WorkerStatus& worker : external ? workers : std::vector<WorkerStatus>()) {
    result.workers_wanted += worker.is_wanted() ? 1 : 0;
    if (worker.is_missing()) missing.push_back(std::to_string(worker.slot));
  }
  if (result.problem.empty()) result.problem = missing_text(missing);
  result.addresses = parts_.listeners.addresses();
  result.xdp = parts_.workers.xdp_status();
  for (const WorkerStatus& worker : workers)
    if (worker.state == WorkerStatus::State::kServing) ++result.workers_running;
}

void StatusReport::add_store(ipc::StatusResult& result) const {
  const shm::StoreStats stats = parts_.data.store->stats();
  result.store = {{"memory", stats.memory_bytes},
                  {"live", stats.live_bytes},
                  {"history", parts_.services.committer->current().history_bytes()},
                  {"limit", stats.size_limit},
                  {"effective_limit", stats.limit_bytes},
                  {"chunks_in_use", stats.chunks_in_use},
                  {"chunks_peak", stats.peak_chunks},
                  {"chunks_waiting", stats.waiting_chunks},
                  {"chunks_free", stats.free_chunks},
                  {"huge_pages", stats.huge_pages}};
  result.journal = {{"position", parts_.data.journal->last_position()},
                    {"bytes", parts_.data.journal->total_bytes()},
                    {"snapshots", parts_.services.journal_upkeep->snapshots()},
                    {"in_memory", parts_.data.journal_in_memory ? 1U : 0U}};
}

void StatusReport::add_image(ipc::StatusResult& result) const {
  const Checkpointer* checkpointer = parts_.services.checkpointer.get();
  const ImageCopying* copying = parts_.services.copying_image.get();
  if (checkpointer != nullptr) {
    const Checkpointer::Counters& image = checkpointer->counters();
    result.image = {{"version", checkpointer->version()},
                    {"position", checkpointer->position()},
                    {"written_at", checkpointer->written_at()},
                    {"checkpoints", image.checkpoints},
                    {"checkpoints_failed", image.failed},
                    {"bytes_written", image.bytes},
                    {"last_bytes", image.last_bytes},
                    {"last_ms", image.last_ms},
                    {"longest_capture_us", image.longest_capture_us},
                    {"chunks_held", checkpointer->held_chunks()},
                    {"bytes_to_copy", copying != nullptr ? copying->bytes_left() : 0}};
  }
  // Once a new image is written, the quarantined one is only listed.
  const QuarantinedImage& quarantined = parts_.data.quarantined;
  if (checkpointer == nullptr || checkpointer->version() == 0)
    result.image_not_used = quarantined.unused();
  if (checkpointer == nullptr || checkpointer->has_quarantined())
    result.image_quarantined = quarantined.quarantined();
  result.damage_found = found_damage().rows();
}

void StatusReport::add_counters(ipc::StatusResult& result) const {
  const StoreServices& services = parts_.services;
  const ZoneServices& zones = parts_.zones;
  const Committer::Counters commits = services.committer->counters();
  const UpdateService::Counters& updates = zones.updates->counters();
  const Refresher::Counters transfers = zones.refresher->counters();
  const Notifier::Counters notifies = zones.notifier->counters();
  const ZoneExports::Counters exports = zones.exports->counters();
  const SignedZones::Counts signed_zones = zones.signing->zones().counts();
  const QueryLogThread::Counters query_log = parts_.workers.query_log_counters();
  result.counters = {{"zones_removed", zones.removed->zones().size()},
                     {"zones_not_valid", zones.signatures->zones_with_faults()},
                     {"zones_signed_here", signed_zones.zones},
                     {"zones_keys_unusable", signed_zones.unusable},
                     {"zones_ds_wanted", signed_zones.ds_wanted},
                     {"zones_no_ds_wanted", signed_zones.no_ds_wanted},
                     {"zones_signatures_late", zones.signing->zones_late()},
                     {"names_renewed", zones.signing->renewed()},
                     {"versions", commits.versions},
                     {"store_bytes", commits.store_bytes},
                     {"updates", updates.updates},
                     {"updates_accepted", updates.accepted},
                     {"updates_failed", updates.failed},
                     {"updates_forwarded", zones.forwarder->counters().forwarded},
                     {"updates_not_forwarded", zones.forwarder->counters().failed},
                     {"updates_repeated", updates.repeated},
                     {"notifies", updates.notifies},
                     {"transfers_in", transfers.transfers},
                     {"transfers_in_ixfr", transfers.by_ixfr},
                     {"transfers_in_failed", transfers.failures},
                     {"transfers_in_fallbacks", transfers.fallbacks},
                     {"notifies_sent", notifies.sent},
                     {"notifies_answered", notifies.answered},
                     {"notifies_failed", notifies.failed},
                     {"exports", exports.exports},
                     {"exports_failed", exports.failures},
                     {"signed_queries", updates.signed_queries},
                     {"bad_signatures", updates.bad_signatures},
                     {"upkeep_walks", services.upkeep->counters().walks},
                     {"large_changes", services.road->counters().beside},
                     {"large_changes_again", services.road->counters().again},
                     {"query_log_written", query_log.written},
                     {"query_log_unwritten", query_log.unwritten},
                     {"log_lines_dropped", log::dropped()}};
}

}  // namespace pando::manager
