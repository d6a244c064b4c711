#include "manager/control/control_commands.h"

#include <asio/post.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control_json.h"

namespace pando::manager {

using nlohmann::json;

namespace {

Result<RunTimeChange> addition_of(const ipc::ControlRequest& request, const std::string& journal,
                                  const RemovedZones::Zones& removed) {
  RunTimeChange change;
  change.add = request.zones;
  for (std::string& zone : change.add) {
    auto created = take_content(zone, journal);
    if (!created) return pass(created);
    if (!*created) continue;
    // They would come on top of the new content.
    if (removed.contains((*created)->zone))
      return fail(Errc::kExists, "updates of {} are kept from before: purge it first",
                  to_text((*created)->zone));
    change.create.push_back(std::move(**created));
  }
  return change;
}

/// The change that a command about zones asks for; `zone-add` has a function of its own.
Result<RunTimeChange> change_of(const ipc::ControlRequest& request) {
  RunTimeChange change;
  if (request.verb == ipc::verb::kZoneConfigure) {
    auto name = dns::Name::from_text(request.name);
    if (!name) return pass(name);
    change.set = {*name, request.key, request.value};
    return change;
  }
  auto names = names_from_text(request.names);
  if (!names) return pass(names);
  (request.verb == ipc::verb::kZoneReload ? change.reread : change.remove) = std::move(*names);
  return change;
}

}  // namespace

ControlCommands::ControlCommands(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
                                 Reloader& reloader, RunTimeZones& run_time_zones,
                                 const Catalogs& catalogs, Hooks hooks, std::uint64_t started)
    : configuration_(parts.configuration),
      removed_(*parts.zones.removed),
      lists_(parts.lists),
      reloader_(reloader),
      status_(parts, started),
      run_time_zones_(run_time_zones),
      zone_report_(parts, catalogs.consumer(), catalogs.producer()),
      store_(io, pool, parts, std::move(hooks.handed_over)),
      zone_(parts),
      records_(io, pool, parts),
      dnssec_(io, pool, parts),
      tls_(parts),
      workers_(io, parts),
      config_(io, pool, parts.configuration, parts.workers) {
  using Request = ipc::ControlRequest;
  using Reply = CommandTable::Reply;
  store_.add_to(table_);
  zone_.add_to(table_);
  records_.add_to(table_);
  dnssec_.add_to(table_);
  tls_.add_to(table_);
  workers_.add_to(table_);
  config_.add_to(table_);
  table_.add_query(ipc::verb::kStatus, [this](const Request&) -> Result<json> {
    ipc::StatusResult result = status_.make();
    result.catalogs = zone_report_.catalogs();
    return json(result);
  });
  table_.add_query(ipc::verb::kZoneList, std::bind_front(&ZoneReport::list, &zone_report_));
  table_.add_query(ipc::verb::kZoneStatus, std::bind_front(&ZoneReport::status, &zone_report_));
  for (const std::string_view verb :
       {ipc::verb::kZoneAdd, ipc::verb::kZoneRemove, ipc::verb::kZoneConfigure,
        ipc::verb::kZoneReload})
    table_.add(verb, std::bind_front(&ControlCommands::change_zones, this));
  table_.add(ipc::verb::kReload, [this](const Request&, const Reply& reply) {
    reloader_.reload([reply](const Result<ipc::ReloadResult>& result) { reply(as_json(result)); });
  });
  table_.add(ipc::verb::kStop,
             [&io, stop = std::move(hooks.stop)](const Request&, const Reply& reply) {
               reply(json::object());
               asio::post(io, stop);
             });
}

void ControlCommands::run(const ipc::ControlRequest& request, const CommandTable::Reply& reply) {
  records_.forget_gone_zones();
  if (request.verb == ipc::verb::kZonePurge) {
    const auto zone = dns::Name::from_text(request.name);
    if (zone && run_time_zones_.creates(*zone))
      return reply(fail(Errc::kExists, "{} is being added", to_text(*zone)));
  }
  if (lists_.state() == ZoneLists::State::kRead) return table_.run(request, reply);
  const auto again = [this, request, reply] { run(request, reply); };
  if (!lists_.put_off(request.verb, again, reply)) table_.run(request, reply);
}

void ControlCommands::change_zones(const ipc::ControlRequest& request,
                                   const CommandTable::Reply& reply) {
  auto change = request.verb == ipc::verb::kZoneAdd
                    ? addition_of(request, configuration_.runtime->settings.store.journal,
                                  removed_.zones())
                    : change_of(request);
  if (!change) return reply(pass(change));
  run_time_zones_.submit(std::move(*change), [this, reply](const Result<ipc::ReloadResult>& result) {
    records_.forget_gone_zones();
    reply(as_json(result));
  });
}

}  // namespace pando::manager
