#pragma once

#include <nlohmann/json_fwd.hpp>

#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"

namespace pando::manager {

/// The options of a primary zone. A secondary's data is its primary's, so commands do not change
/// it. kNotFound, kInvalid.
Result<const config::ZoneOptions*> primary_zone(const config::Settings& settings,
                                                const dns::Name& name);

/// The commands that change, export or refresh one zone, and those about its snapshots.
class ZoneControl {
 public:
  explicit ZoneControl(ServerParts parts) : parts_(parts) {}

  void add_to(CommandTable& table);

 private:
  using Request = CommandTable::Request;
  using Reply = CommandTable::Reply;
  void export_zone(const dns::Name& zone, const Request& request, const Reply& reply);
  void purge(const dns::Name& zone, const Request&, const Reply& reply);
  void refresh(const dns::Name& zone, const Request& request, const Reply& reply);
  void notify(const dns::Name& zone, const Request&, const Reply& reply);
  void freeze(const dns::Name& zone, const Request&, const Reply& reply);
  void thaw(const dns::Name& zone, const Request&, const Reply& reply);
  void roll_back(const dns::Name& zone, const Request& request, const Reply& reply);
  void take_snapshot(const dns::Name& zone, const Request& request, const Reply& reply);
  void delete_snapshot(const dns::Name& zone, const Request& request, const Reply& reply);
  [[nodiscard]] Result<nlohmann::json> list_snapshots(const Request& request) const;

  ServerParts parts_;
};

}  // namespace pando::manager
