#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/server/server.h"

namespace pando::manager {

/// Damage is found after workers have served from the image. Store and image go, and the process
/// ends, so that the next start makes the store anew from zone files and journal. Until then
/// workers answer from the data that they have.
void Server::image_damaged(const Error& reason) {
  log::error("image_damaged", "reason", reason.text);
  const LentImage& lent = services_.copying_image->lent();
  Status left = QuarantinedImage::dispose(native_files(), lent.index_path, reason);
  crash_point("image-damaged");
  // No start attaches to a store that lacks chunks. But if the image could not be removed, the
  // store stays, because it makes the next start read the whole image before it is served.
  if (left) left = native_files().remove(lent.store_path);
  if (!left) log::error("image_not_removed", "reason", left.error().text);
  exit_code_ = 1;
  if (!begin_stop()) return;
  readiness_.stops();
  workers_.pool->abandon();
  workers_.tls->abandon();
  end_parts();
  leave(std::chrono::steady_clock::now() + kLastWork);
}

/// Ready is the server once: when the live store is served again, or when each zone of a new store
/// is served, has failed, or is being verified by a program.
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
  const auto index = zones.find(zone);
  if (!index) return;
  // The journal knows the serials of a zone that is signed here.
  const bool is_signed_here = zones[*index].options->is_signed_here();
  zones_.copies->write(zone, zones_.copies->path_of(zones, *index),
                       had_data || data_->store_was_lost || is_signed_here);
}

/// The zone is signed otherwise than before, so that a file or a transfer may do that was refused for
/// that.
void Server::load_again(const dns::Name& zone) {
  if (!zones_.refresher->problem(zone).empty()) zones_.refresher->refresh_now(zone);
  if (!zones_.loads->has_problem_of(zone)) return;
  zones_.loads->load_some(configuration_.runtime, {zone}, make_history(*data_->journal),
                          [](const ZoneFileLoads::Counts&) {});
}

/// Zones are being loaded from the journal, or wait to be. A snapshot before that would not have
/// their updates that survive damage.
bool Server::reads_journal() const {
  return zones_.loads->under_way() || !zones_.loads->waiting().empty();
}

/// Tells all who follow what is served that a version was published. Zones that a start loads from
/// files are announced together, when all files were checked.
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
    zones_.signing->published(changed.zone, changed.is_whole);
  }
}

}  // namespace pando::manager
