#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ipc/control.h"
#include "ipc/control_results.h"
#include "manager/catalog/catalog_consumer.h"
#include "manager/catalog/catalog_producer.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"

namespace pando::manager {

/// The answers to `zone-list` and `zone-status`.
class ZoneReport {
 public:
  /// References outlive the object.
  ZoneReport(ServerParts parts, const CatalogConsumer& catalogs, const CatalogProducer& producer)
      : parts_(parts), catalogs_(catalogs), producer_(producer) {}

  /// One page of zones after `request.after`.
  [[nodiscard]] Result<nlohmann::json> list(const ipc::ControlRequest& request) const;
  [[nodiscard]] Result<nlohmann::json> status(const ipc::ControlRequest& request) const;
  /// The catalog zones of the configuration, in its order.
  [[nodiscard]] std::vector<ipc::CatalogRow> catalogs() const;

 private:
  [[nodiscard]] ipc::ZoneRow removed_row(const RemovedZones::Zones::value_type& removed) const;
  [[nodiscard]] ipc::ZoneRow short_row(const zone::ZoneView& zone) const;
  [[nodiscard]] ipc::ZoneRow full_row(const zone::ZoneView& zone) const;
  [[nodiscard]] ipc::ZoneRow row(const zone::ZoneView& zone) const;
  [[nodiscard]] bool is_secondary_zone(const zone::ZoneView& zone) const;
  [[nodiscard]] bool is_loading(const zone::ZoneView& zone) const;
  void add_judgement(dns::NameView zone, ipc::ZoneRow& row) const;
  void add_change(dns::NameView zone, ipc::ZoneRow& row) const;
  void add_settings(const zone::ZoneView& zone, ipc::ZoneRow& row) const;
  void add_origin(const zone::ZoneView& zone, ipc::ZoneRow& row) const;
  [[nodiscard]] std::string catalog_problem(dns::NameView zone) const;
  [[nodiscard]] std::string delegation_problem(const zone::ZoneView& zone) const;
  [[nodiscard]] std::string problem_of(const zone::ZoneView& zone, bool secondary) const;

  ServerParts parts_;
  const CatalogConsumer& catalogs_;
  const CatalogProducer& producer_;
};

}  // namespace pando::manager
