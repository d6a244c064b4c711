#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/commit/zone_table_sync.h"
#include "manager/launch/adopted_worker.h"
#include "manager/server/server.h"

namespace pando::manager {

namespace {

/// A zone whose file failed, or whose program hangs, must not keep the server from being ready.
std::string loaded_text(std::uint64_t loaded, std::uint64_t zones, std::uint64_t being_judged) {
  const std::string judged =
      being_judged == 0 ? "" : fmt::format(", {} being judged", being_judged);
  if (loaded >= zones) return "all zones loaded" + judged;
  return fmt::format("{} of {} zones loaded{}", loaded, zones, judged);
}

/// Whether a zone is still to be loaded, of which another store may have the data.
bool lacks_data(const OpenedData& data, const zone::StoreView& view) {
  if (!data.serves_first && !data.restored) return true;
  zone::ZoneWalk walk(view);
  while (const zone::ZoneView zone = walk.next())
    if (!zone.loaded()) return true;
  return false;
}

}  // namespace

/// A live store is served at once, as it is, and the zone lists are read then. The same holds for a
/// store from an image of this configuration. Any other store gets its list of zones first, so that
/// zones still loading answer SERVFAIL rather than REFUSED.
void Server::begin_serving() {
  services_.upkeep->start();
  workers_.may_start = data_->serves_first;
  keep_previous_store();
  if (data_->serves_first) {
    if (!workers_.wait_for_zones) start_workers();
    readiness_.announce(data_->restored ? "serving what the store was made from"
                                        : "serving the live store");
  }
  if (lists_->has_unread()) return lists_->read_later(configuration_.runtime);
  bring_in_line();
}

/// Workers that outlived the last manager have all zones. Those of another build go when ours have
/// all zones, too. Those of this build get our store then.
void Server::keep_previous_store() {
  workers_.wait_for_zones = workers_.pool->has_previous_layout_workers();
  const WorkerSearch search{configuration_.runtime->settings.server.run_directory,
                            host_.worker_uid};
  const bool may_differ = workers_.wait_for_zones || may_read_another_store(*data_->slots, search);
  const bool lacks = may_differ && lacks_data(*data_, services_.committer->current());
  if (lacks) workers_.pool->keep_previous_store();
  if (lacks || workers_.wait_for_zones) workers_.previous_store->keep();
}

void Server::leave_previous_store() {
  if (std::exchange(workers_.wait_for_zones, false) && workers_.may_start) start_workers();
  workers_.pool->leave_previous_store();
}

void Server::start_workers() {
  workers_.wait_for_zones = false;
  if (auto started = workers_.pool->start(wanted_workers(configuration_.runtime->settings));
      !started)
    log::error("listen_failed", "reason", started.error().text);
  // Workers start before the image is read, as the reading takes the disk for itself.
  if (services_.copying_image)
    services_.copying_image->start([this](const Status& status) { image_copied(status); });
}

/// From here on the store is like a store without an image to copy.
void Server::image_copied(const Status& status) {
  if (!status) return leave_damaged_image(status.error());
  // Destroyed later: the copying is our caller.
  asio::post(io_, [done = std::shared_ptr<ImageCopying>(std::move(services_.copying_image))] {});
  workers_.pool->store_copied();
  zones_.loads->release_copies();
  zones_.signatures->release();
  if (services_.checkpointer) services_.checkpointer->resume();
  if (zones_.loads->settled()) configure_exports(services_, zones_, configuration_.runtime);
}

/// Damage is found after workers have served from the image. Store and image go, and the process
/// ends, so that the next start makes the store anew from zone files and journal. Until then
/// workers answer from the data that they have.
void Server::leave_damaged_image(const Error& reason) {
  log::error("image_damaged", "reason", reason.text);
  const LentImage& lent = services_.copying_image->lent();
  Status left = QuarantinedImage::dispose(native_files(), lent.index_path, reason);
  crash_point("image-damaged");
  // No start attaches to a store that lacks chunks. But if the image could not be removed, the
  // store stays: it tells the next start to read the whole image before it is served.
  if (left) left = native_files().remove(lent.store_path);
  if (!left) log::error("image_not_removed", "reason", left.error().text);
  exit_code_ = 1;
  if (!begin_stop()) return;
  readiness_.stops();
  workers_.pool->abandon();
  end_parts();
  leave(std::chrono::steady_clock::now() + kLastWork);
}

void Server::lists_read(const RuntimePtr& complete) {
  configuration_.runtime = complete;
  configuration_.read_at = unix_seconds();
  ++configuration_.reads;
  zones_.updates->set_runtime(complete);
  lists_->accept();
  bring_in_line();
}

/// Nobody brings the store in line: workers and reloads that wait for that go on.
void Server::lists_failed() {
  lists_->refuse_updates();
  readiness_.announce(ZoneLists::kNotRead);
  count_loaded();
  workers_.previous_store->leave(ZoneLists::kNotRead);
  lists_->run_waiting();
  control_.reloader->allow();
}

/// Counts zones with data, as no comparison of the store's zones with the configuration does so.
void Server::count_loaded() {
  const zone::StoreView now = services_.committer->current();
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(data_->slots->pin_own(now.version()));
  asio::post(background_.pool(), [this, now, pin = std::move(pin)]() mutable {
    std::uint64_t count = 0;
    zone::ZoneWalk walk(now);
    while (const zone::ZoneView zone = walk.next()) count += zone.loaded() ? 1 : 0;
    pin.reset();
    asio::post(io_, [this, count] {
      if (lists_->state() == ZoneLists::State::kFailed) zones_.loads->recounted(count);
    });
  });
}

void Server::bring_in_line() {
  zones_.signed_zones->configure(configuration_.runtime);
  zones_.notifier->configure(configuration_.runtime);
  ZoneTableSync::run(*data_->store, *services_.committer, configuration_.runtime,
                     [this](const Status& status, const ZoneTableSync::Counts& counts) {
                       in_line(status, counts.loaded);
                     });
}

void Server::in_line(const Status& status, std::uint64_t zones_with_data) {
  zones_.loads->recounted(zones_with_data);
  if (!status) log::error("zone_table_failed", "reason", status.error().text);
  if (status && services_.checkpointer)
    services_.checkpointer->set_configuration(configuration_.fingerprint);
  if (!std::exchange(workers_.may_start, true) && !workers_.wait_for_zones) start_workers();
  if (data_->restored) readiness_.announce("serving what the store was made from");
  zones_.secondaries->configure(configuration_.runtime);
  const auto history = make_history(*data_->journal);
  zones_.loads->load(configuration_.runtime, history,
                     [this, history](const ZoneFileLoads::Counts& counts) {
                       workers_.previous_store->loaded(counts.failed);
                       zones_.copies->keep_only(configuration_.runtime);
                       configure_exports(services_, zones_, configuration_.runtime);
                       zones_.removed->look(configuration_.runtime, history, [](std::uint64_t) {});
                       if (counts.is_first) zones_.notifier->tell_all();
                       if (counts.is_first) services_.journal_upkeep->examine();
                       readiness_.announce(loaded_text(zones_.loads->loaded(),
                                                       services_.committer->current().zone_count(),
                                                       counts.being_judged));
                     });
  control_.reloader->allow();
}

/// Ready is the server once: when the live store is served again, or when each zone of a new store
/// is served, has failed, or is judged by a program.
systemd::Readiness::Hooks Server::readiness_hooks() {
  systemd::Readiness::Hooks hooks;
  hooks.closed = [this]() -> std::optional<systemd::Readiness::Closed> {
    const auto addresses = workers_.listeners->addresses();
    const auto is_open = [](const auto& one) { return one.second.empty(); };
    if (addresses.empty() || std::any_of(addresses.begin(), addresses.end(), is_open))
      return std::nullopt;
    return systemd::Readiness::Closed{addresses.size(), addresses.begin()->second};
  };
  hooks.status = [this] {
    return lists_->state() == ZoneLists::State::kFailed
               ? std::string(ZoneLists::kNotRead)
               : fmt::format("{} zones", services_.committer->current().zone_count());
  };
  hooks.ready = [this](const std::string& reason) {
    const zone::StoreView current = services_.committer->current();
    log::info("manager_ready", "reason", reason, "zones", current.zone_count(), "version",
              current.version());
  };
  return hooks;
}

config::SignaturePolicy Server::signature_policy(const dns::Name& zone) const {
  const auto* options = configuration_.runtime->settings.zones.options_of(zone);
  // Our own signatures were checked before they were served, and are renewed before they end.
  if (options == nullptr || options->is_signed_here()) return config::SignaturePolicy::kOff;
  return options->verify;
}

ZoneVerifierPtr Server::verifier_of(const dns::Name& zone) {
  const auto* options = configuration_.runtime->settings.zones.options_of(zone);
  return options != nullptr ? zones_.verifiers->of(*options) : nullptr;
}

void Server::zone_transferred(const dns::Name& zone, bool had_data) {
  zones_.loads->transferred(zone, had_data);
  const config::ZoneTable& zones = configuration_.runtime->settings.zones;
  // A zone without data may have had some before the store was lost.
  if (const auto index = zones.find(zone))
    zones_.copies->write(zone, zones_.copies->path_of(zones, *index),
                         had_data || data_->store_was_lost);
}

/// A zone that could not be loaded for want of its keys is loaded now. One that is served, and has
/// a policy since then, is signed.
void Server::keys_ready(const dns::Name& zone) {
  zones_.whole_signing->check(zone);
  zones_.renewal->check_zone(zone);
  if (zones_.loads->has_problem_of(zone))
    zones_.loads->load_some(configuration_.runtime, {zone}, make_history(*data_->journal),
                            [](const ZoneFileLoads::Counts&) {});
}

/// Zones are being loaded from the journal, or wait to be. A snapshot before that would not have
/// what damage has left of their updates.
bool Server::reads_journal() const {
  return zones_.loads->under_way() || !zones_.loads->waiting().empty();
}

/// Tells all who follow what is served that a version was published. Zones that a start loads from
/// files are announced all at once, when all files were checked.
void Server::follow_up(const PublishedVersion& version) {
  for (const JournalEntry& record : version.records) zones_.exports->journalled(record);
  services_.journal_upkeep->check(reads_journal());
  services_.snapshots->tell_losses();
  if (zones_.loads->settled() && !stopping_) check_pinned();
  for (const PublishedZone& changed : version.changed) {
    const bool is_transfer = changed.source == ChangeSource::kTransfer;
    if (is_transfer && changed.is_whole) zone_transferred(changed.zone, changed.had_data);
    if (is_transfer || changed.verdict)
      zones_.signatures->served(changed.zone, changed.verdict.get());
    if (!changed.is_whole || zones_.loads->settled()) zones_.notifier->zone_changed(changed.zone);
    if (!zones_.signed_zones->empty()) zones_.whole_signing->check(changed.zone);
  }
}

}  // namespace pando::manager
