#include "manager/control/zone_control.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/unix_time.h"
#include "ipc/control_json.h"
#include "ipc/log.h"
#include "manager/commit/rollback.h"

namespace pando::manager {

using nlohmann::json;

Result<const config::ZoneOptions*> primary_zone(const config::Settings& settings,
                                                const dns::Name& name) {
  const auto index = settings.zones.find(name);
  if (!index) return fail(Errc::kNotFound, "no zone {}", to_text(name));
  const config::ZoneOptions& options = *settings.zones[*index].options;
  if (options.is_secondary())
    return fail(Errc::kInvalid, "{}: what its primary sends is served", to_text(name));
  if (settings.produces(name))
    return fail(Errc::kInvalid, "{}: a produced catalog has what its members' settings say",
                to_text(name));
  return &options;
}

void ZoneControl::add_to(CommandTable& table) {
  using Request = ipc::ControlRequest;
  table.add(ipc::verb::kZoneExport,
            [this](const Request& request, const Reply& reply) { export_zone(request, reply); });
  table.add(ipc::verb::kZoneRollback,
            [this](const Request& request, const Reply& reply) { roll_back(request, reply); });
  table.add(ipc::verb::kZonePurge,
            [this](const Request& request, const Reply& reply) { purge(request, reply); });
  table.add(ipc::verb::kZoneFreeze,
            [this](const Request& request, const Reply& reply) { freeze(request, reply); });
  table.add(ipc::verb::kZoneThaw,
            [this](const Request& request, const Reply& reply) { thaw(request, reply); });
  table.add(ipc::verb::kZoneSnapshot,
            [this](const Request& request, const Reply& reply) { take_snapshot(request, reply); });
  table.add(ipc::verb::kZoneSnapshotDelete, [this](const Request& request, const Reply& reply) {
    delete_snapshot(request, reply);
  });
  table.add_query(ipc::verb::kZoneRefresh,
                  [this](const Request& request) { return refresh(request, false); });
  table.add_query(ipc::verb::kZoneRetransfer,
                  [this](const Request& request) { return refresh(request, true); });
  table.add_query(ipc::verb::kZoneNotify,
                  [this](const Request& request) { return notify(request); });
  table.add_query(ipc::verb::kZoneSnapshots,
                  [this](const Request& request) { return list_snapshots(request); });
}

void ZoneControl::export_zone(const ipc::ControlRequest& request, const Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  if (!parts_.zones.loads->settled())
    return reply(fail(Errc::kExists, "the zones are still being loaded"));
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  const auto done = [reply, zone = *name](const Result<ZoneExports::Exported>& exported) {
    if (!exported) return reply(pass(exported));
    reply(json(ipc::ExportResult{to_text(zone), exported->serial.value, exported->records,
                                 exported->path, exported->written}));
  };
  if (request.to.empty())
    parts_.zones.exports->write_own(*name, done);
  else
    parts_.zones.exports->write_to(*name, request.to, done);
}

void ZoneControl::purge(const ipc::ControlRequest& request, const Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  parts_.zones.removed->purge(*name,
                              [reply](const Status& status) { reply(empty_result(status)); });
}

Result<json> ZoneControl::refresh(const ipc::ControlRequest& request, bool whole) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return pass(name);
  if (auto thawed = parts_.zones.frozen->check(*name); !thawed) return pass(thawed);
  using Take = Refresher::Take;
  if (parts_.zones.refresher->refresh_now(*name, whole ? Take::kAny : Take::kNewer))
    return json::object();
  const bool known = parts_.configuration.runtime->settings.zones.find(*name).has_value();
  if (!known) return fail(Errc::kNotFound, "no zone {}", to_text(*name));
  return fail(Errc::kInvalid, "{} is a primary zone: it has no primaries to ask", to_text(*name));
}

Result<json> ZoneControl::notify(const ipc::ControlRequest& request) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return pass(name);
  const config::Settings& settings = parts_.configuration.runtime->settings;
  const auto index = settings.zones.find(*name);
  if (!index) return fail(Errc::kNotFound, "no zone {}", to_text(*name));
  if (settings.zones[*index].options->notify.empty())
    return fail(Errc::kInvalid, "{} has no remotes to notify", to_text(*name));
  if (!parts_.services.committer->current().zone_at(*name).loaded())
    return fail(Errc::kNotFound, "{} is not loaded", to_text(*name));
  parts_.zones.notifier->zone_changed(*name);
  return json::object();
}

/// Changes that were accepted before are published before the answer.
void ZoneControl::freeze(const ipc::ControlRequest& request, const Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  if (!parts_.configuration.runtime->settings.zones.find(*name))
    return reply(fail(Errc::kNotFound, "no zone {}", to_text(*name)));
  parts_.zones.frozen->freeze(*name, [this, reply, zone = *name](const Status& status) {
    if (!status) return reply(empty_result(status));
    log::info("zone_frozen", "zone", to_text(zone));
    parts_.services.committer->edit([](zone::Draft&) { return Status(); },
                                    [reply](const Status& done) { reply(empty_result(done)); });
  });
}

/// The zone may have left the configuration. A secondary zone asks its primaries at once.
void ZoneControl::thaw(const ipc::ControlRequest& request, const Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  parts_.zones.frozen->thaw(*name, [this, reply, zone = *name](const Status& status) {
    if (status) {
      log::info("zone_thawed", "zone", to_text(zone));
      parts_.zones.refresher->refresh_now(zone);
    }
    reply(empty_result(status));
  });
}

/// A rollback is an update like any other: it is journalled, goes to the secondaries and wins over
/// the zone file.
void ZoneControl::roll_back(const ipc::ControlRequest& request, const Reply& reply) {
  const RuntimePtr& current = parts_.configuration.runtime;
  Committer& committer = *parts_.services.committer;
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  auto options = primary_zone(current->settings, *name);
  if (!options) return reply(pass(options));
  if (auto thawed = parts_.zones.frozen->check(*name); !thawed) return reply(pass(thawed));
  const RollbackTarget target{{request.serial}, request.label};
  ZoneChange change;
  change.zone = *name;
  change.records = target.records(committer.current().zone_at(*name));
  change.check = [&frozen = *parts_.zones.frozen, zone = *name] { return frozen.check(zone); };
  change.stage = [&committer, &journal = *parts_.data.journal, zone = *name, target,
                  runtime = current, policy = (*options)->serial_policy,
                  now = unix_seconds()](Stage& stage) {
    return stage_rollback(committer, journal, stage, zone, target, policy, now, runtime->limits);
  };
  change.done = [&committer, reply, zone = *name](const Result<std::uint64_t>& version) {
    if (!version) return reply(pass(version));
    const dns::Serial serial = committer.current().zone_at(zone).serial();
    log::info("zone_rolled_back", "zone", to_text(zone), "serial", serial.value);
    reply(json{{"serial", serial.value}});
  };
  parts_.services.changes->submit(std::move(change));
}

/// With an image a checkpoint begins, so that a host that restarts has the snapshot.
void ZoneControl::take_snapshot(const ipc::ControlRequest& request, const Reply& reply) {
  const RuntimePtr& current = parts_.configuration.runtime;
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  auto options = primary_zone(current->settings, *name);
  if (!options) return reply(pass(options));
  // A snapshot is in no journal: it would be lost with a store that is made anew.
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  const auto done = [this, reply, zone = *name,
                     label = request.label](const Result<dns::Serial>& serial) {
    if (!serial) return reply(pass(serial));
    Checkpointer* checkpointer = parts_.services.checkpointer.get();
    if (checkpointer != nullptr) checkpointer->write_now([](const Status&) {});
    reply(json(ipc::SnapshotResult{to_text(zone), label, serial->value, checkpointer != nullptr}));
  };
  parts_.services.snapshots->take(*name, request.label, unix_seconds(), current->limits, done);
}

void ZoneControl::delete_snapshot(const ipc::ControlRequest& request, const Reply& reply) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return reply(pass(name));
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  parts_.services.snapshots->forget(*name, request.label, parts_.configuration.runtime->limits,
                                    [reply](const Status& status) { reply(empty_result(status)); });
}

Result<json> ZoneControl::list_snapshots(const ipc::ControlRequest& request) const {
  const ZoneSnapshots& snapshots = *parts_.services.snapshots;
  const std::string& text = request.name.empty() ? request.after : request.name;
  if (text.empty()) return json(snapshots.list_behind(nullptr, request.limit));
  auto name = dns::Name::from_text(text);
  if (!name) return pass(name);
  if (request.name.empty()) return json(snapshots.list_behind(&*name, request.limit));
  auto rows = snapshots.list(*name);
  if (!rows) return pass(rows);
  return json(*rows);
}

}  // namespace pando::manager
