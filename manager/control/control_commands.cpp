#include "manager/control/control_commands.h"

#include <asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control_json.h"

namespace pando::manager {

using nlohmann::json;

ControlCommands::ControlCommands(asio::io_context& io, asio::thread_pool& pool, Parts parts,
                                 Hooks hooks, std::uint64_t started)
    : lists_(parts.lists),
      reloader_(parts.reloader),
      status_({parts.configuration, parts.data, parts.services, parts.zones, parts.lists,
               parts.workers, parts.listeners},
              started),
      zone_report_({parts.configuration, *parts.data.store, parts.services, parts.zones}),
      store_(io, pool, {parts.configuration, parts.data, parts.services, parts.zones},
             std::move(hooks.handed_over)),
      zone_({parts.configuration, parts.data, parts.services, parts.zones}),
      records_(io, pool, {parts.configuration, parts.data, parts.services}),
      workers_(io, parts.configuration, *parts.data.slots, parts.workers) {
  using Request = ipc::ControlRequest;
  using Reply = CommandTable::Reply;
  store_.add_to(table_);
  zone_.add_to(table_);
  records_.add_to(table_);
  workers_.add_to(table_);
  table_.add_query(ipc::verb::kStatus,
                   [this](const Request&) -> Result<json> { return json(status_.make()); });
  table_.add_query(ipc::verb::kZoneList,
                   [this](const Request& request) { return zone_report_.list(request); });
  table_.add_query(ipc::verb::kZoneStatus,
                   [this](const Request& request) { return zone_report_.status(request); });
  table_.add(ipc::verb::kReload, [this](const Request&, const Reply& reply) { reload(reply); });
  table_.add(ipc::verb::kStop,
             [&io, stop = std::move(hooks.stop)](const Request&, const Reply& reply) {
               reply(json::object());
               asio::post(io, stop);
             });
}

void ControlCommands::run(const ipc::ControlRequest& request, const CommandTable::Reply& reply) {
  const auto again = [this, request, reply] { run(request, reply); };
  if (!lists_.put_off(request.verb, again, reply)) table_.run(request, reply);
}

void ControlCommands::reload(const CommandTable::Reply& reply) {
  reloader_.reload([reply](Result<ipc::ReloadResult> result) {
    reply(result ? Result<json>(json(*result))
                 : Result<json>(tl::unexpected<Error>(result.error())));
  });
}

}  // namespace pando::manager
