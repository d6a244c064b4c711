#include "manager/control/zone_control.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/unix_time.h"
#include "ipc/control_json.h"
#include "ipc/log.h"
#include "manager/commit/rollback.h"
#include "manager/support/request_author.h"

namespace pando::manager {

using nlohmann::json;

Result<const config::ZoneOptions*> primary_zone(const config::Settings& settings,
                                                const dns::Name& name) {
  const auto* options = settings.zones.options_of(name);
  if (options == nullptr) return fail(Errc::kNotFound, "no zone {}", to_text(name));
  if (options->is_secondary())
    return fail(Errc::kInvalid, "{}: what its primary sends is served", to_text(name));
  if (settings.produces(name))
    return fail(Errc::kInvalid, "{}: a produced catalog has what its members' settings say",
                to_text(name));
  return options;
}

void ZoneControl::add_to(CommandTable& table) {
  namespace verb = ipc::verb;
  const auto add = [&](std::string_view name, auto method) {
    table.add_for_zone(name, std::bind_front(method, this));
  };
  add(verb::kZoneExport, &ZoneControl::export_zone);
  add(verb::kZoneRollback, &ZoneControl::roll_back);
  add(verb::kZonePurge, &ZoneControl::purge);
  add(verb::kZoneFreeze, &ZoneControl::freeze);
  add(verb::kZoneThaw, &ZoneControl::thaw);
  add(verb::kZoneSnapshot, &ZoneControl::take_snapshot);
  add(verb::kZoneSnapshotDelete, &ZoneControl::delete_snapshot);
  add(verb::kZoneRefresh, &ZoneControl::refresh);
  add(verb::kZoneRetransfer, &ZoneControl::refresh);
  add(verb::kZoneNotify, &ZoneControl::notify);
  table.add_query(verb::kZoneSnapshots, std::bind_front(&ZoneControl::list_snapshots, this));
}

void ZoneControl::export_zone(const dns::Name& zone, const Request& request, const Reply& reply) {
  if (!parts_.zones.loads->settled())
    return reply(fail(Errc::kExists, "the zones are still being loaded"));
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  const auto done = [reply, zone](const Result<ZoneExports::Exported>& exported) {
    if (!exported) return reply(pass(exported));
    reply(json(ipc::ExportResult{to_text(zone), exported->serial.value, exported->records,
                                 exported->path, exported->written}));
  };
  ZoneExports& exports = *parts_.zones.exports;
  if (request.to.empty()) return exports.write_own(zone, done);
  if (!request.descriptor) return exports.write_to(zone, request.to, done);
  auto file = open_given(*request.descriptor);
  if (!file) return reply(pass(file));
  exports.write_into(zone, request.to, std::move(*file), done);
}

void ZoneControl::purge(const dns::Name& zone, const Request&, const Reply& reply) {
  parts_.zones.removed->purge(zone, [reply](const Status& status) { reply(empty_result(status)); });
}

/// `zone-refresh` takes newer data, `zone-retransfer` any.
void ZoneControl::refresh(const dns::Name& zone, const Request& request, const Reply& reply) {
  if (auto thawed = parts_.zones.frozen->check(zone); !thawed) return reply(pass(thawed));
  using Take = Refresher::Take;
  const bool is_whole = request.verb == ipc::verb::kZoneRetransfer;
  if (parts_.zones.refresher->refresh_now(zone, is_whole ? Take::kAny : Take::kNewer))
    return reply(json::object());
  if (!parts_.configuration.runtime->settings.zones.find(zone))
    return reply(fail(Errc::kNotFound, "no zone {}", to_text(zone)));
  reply(fail(Errc::kInvalid, "{} is a primary zone: it has no primaries to ask", to_text(zone)));
}

void ZoneControl::notify(const dns::Name& zone, const Request&, const Reply& reply) {
  const auto* options = parts_.configuration.runtime->settings.zones.options_of(zone);
  if (options == nullptr) return reply(fail(Errc::kNotFound, "no zone {}", to_text(zone)));
  if (options->notify.empty())
    return reply(fail(Errc::kInvalid, "{} has no remotes to notify", to_text(zone)));
  if (!parts_.services.committer->current().zone_at(zone).loaded())
    return reply(fail(Errc::kNotFound, "{} is not loaded", to_text(zone)));
  parts_.zones.notifier->zone_changed(zone);
  reply(json::object());
}

/// Changes that were accepted before are published before the answer.
void ZoneControl::freeze(const dns::Name& zone, const Request&, const Reply& reply) {
  if (!parts_.configuration.runtime->settings.zones.find(zone))
    return reply(fail(Errc::kNotFound, "no zone {}", to_text(zone)));
  parts_.zones.frozen->freeze(zone, [this, reply, zone](const Status& status) {
    if (!status) return reply(empty_result(status));
    log::info("zone_frozen", "zone", to_text(zone));
    parts_.services.committer->edit([](zone::Draft&) { return Status(); },
                                    [reply](const Status& done) { reply(empty_result(done)); });
  });
}

/// The zone may have left the configuration. A secondary zone asks its primaries immediately.
void ZoneControl::thaw(const dns::Name& zone, const Request&, const Reply& reply) {
  parts_.zones.frozen->thaw(zone, [this, reply, zone](const Status& status) {
    if (status) {
      log::info("zone_thawed", "zone", to_text(zone));
      parts_.zones.refresher->refresh_now(zone);
    }
    reply(empty_result(status));
  });
}

/// A rollback is an update like any other: it is journalled, goes to the secondaries and wins over
/// the zone file. Data served once may be served again, so that only the limits of the history
/// apply.
void ZoneControl::roll_back(const dns::Name& zone, const Request& request, const Reply& reply) {
  const RuntimePtr& current = parts_.configuration.runtime;
  Committer& committer = *parts_.services.committer;
  auto options = primary_zone(current->settings, zone);
  if (!options) return reply(pass(options));
  if (auto thawed = parts_.zones.frozen->check(zone); !thawed) return reply(pass(thawed));
  const RollbackTarget target{{request.serial}, request.label, author_of(request)};
  ZoneChange change;
  change.zone = zone;
  change.source = ChangeSource::kRollback;
  change.records = target.records(committer.current().zone_at(zone));
  change.limits = current->limits.of_history();
  change.check = [&frozen = *parts_.zones.frozen, zone](const zone::StoreView&) {
    return frozen.check(zone);
  };
  change.content = [zone, target, policy = (*options)->serial_policy,
                    now = unix_seconds()](const zone::StoreView& version) {
    return ComputedChange::of(rollback_of(version, zone, target, policy, now));
  };
  change.done = [&committer, reply, zone,
                 author = target.author.name](const Result<ChangeOutcome>& outcome) {
    if (!outcome) return reply(pass(outcome));
    const dns::Serial serial = committer.current().zone_at(zone).serial();
    log::info("zone_rolled_back", "zone", to_text(zone), "serial", serial.value, "by", author);
    reply(json{{"serial", serial.value}});
  };
  parts_.services.road->submit(std::move(change));
}

/// With an image a checkpoint begins, so that a host that restarts has the snapshot.
void ZoneControl::take_snapshot(const dns::Name& zone, const Request& request, const Reply& reply) {
  const RuntimePtr& current = parts_.configuration.runtime;
  auto options = primary_zone(current->settings, zone);
  if (!options) return reply(pass(options));
  // A snapshot is in no journal: it would be lost with a store that is made anew.
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  const auto done = [this, reply, zone, label = request.label](const Result<dns::Serial>& serial) {
    if (!serial) return reply(pass(serial));
    Checkpointer* checkpointer = parts_.services.checkpointer.get();
    if (checkpointer != nullptr) checkpointer->write_now([](const Status&) {});
    reply(json(ipc::SnapshotResult{to_text(zone), label, serial->value, checkpointer != nullptr}));
  };
  parts_.services.snapshots->take(zone, request.label, unix_seconds(), current->limits, done);
}

void ZoneControl::delete_snapshot(const dns::Name& zone, const Request& request,
                                  const Reply& reply) {
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  parts_.services.snapshots->forget(zone, request.label, parts_.configuration.runtime->limits,
                                    [reply](const Status& status) { reply(empty_result(status)); });
}

Result<json> ZoneControl::list_snapshots(const Request& request) const {
  const ZoneSnapshots& snapshots = *parts_.services.snapshots;
  const std::string& text = request.name.empty() ? request.after : request.name;
  if (text.empty()) return json(snapshots.list_behind(nullptr, request.limit));
  auto name = dns::Name::from_text(text);
  if (!name) return pass(name);
  if (request.name.empty()) return json(snapshots.list_behind(&*name, request.limit));
  return as_json(snapshots.list(*name));
}

}  // namespace pando::manager
