#include "ipc/control_results.h"

#include <nlohmann/json.hpp>

#include "ipc/json_fields.h"

namespace pando::ipc {

using nlohmann::json;

namespace {

// One list of fields per struct serves both directions: `visit` writes or reads each of them.
template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, StatusResult>
{
  visit("version", row.version);
  visit("pid", row.pid);
  visit("started", row.started);
  visit("configuration", row.configuration);
  visit("configured", row.configured);
  visit("zone_lists", row.zone_lists);
  visit("problem", row.problem);
  visit("worker_mode", row.worker_mode);
  visit("workers_wanted", row.workers_wanted);
  visit("workers_running", row.workers_running);
  visit("zones", row.zones);
  visit("zones_loaded", row.zones_loaded);
  visit("store_version", row.store_version);
  visit("store", row.store);
  visit("journal", row.journal);
  visit("image", row.image);
  visit("image_not_used", row.image_not_used);
  visit("image_quarantined", row.image_quarantined);
  visit("counters", row.counters);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, ZoneRow>
{
  visit("name", row.name);
  visit("kind", row.kind);
  visit("state", row.state);
  visit("serial", row.serial);
  visit("records", row.records);
  visit("names", row.names);
  visit("history", row.history);
  visit("file", row.file);
  visit("primaries", row.primaries);
  visit("notified", row.notified);
  visit("refresh_at", row.refresh_at);
  visit("expires_at", row.expires_at);
  visit("last_ok", row.last_ok);
  visit("problem", row.problem);
  visit("load_phase", row.load_phase);
  visit("load_done", row.load_done);
  visit("load_total", row.load_total);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, WorkerRow>
{
  visit("slot", row.slot);
  visit("pid", row.pid);
  visit("state", row.state);
  visit("started", row.started);
  visit("restarts", row.restarts);
  visit("leases", row.leases);
  visit("page_tables", row.page_tables);
  visit("counters", row.counters);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, ReloadResult>
{
  visit("zones_added", row.zones_added);
  visit("zones_removed", row.zones_removed);
  visit("zones_changed", row.zones_changed);
  visit("zones_failed", row.zones_failed);
  visit("problems", row.problems);
  visit("restart_needed", row.restart_needed);
  visit("warnings", row.warnings);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, ExportResult>
{
  visit("zone", row.zone);
  visit("serial", row.serial);
  visit("records", row.records);
  visit("file", row.file);
  visit("written", row.written);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, DumpResult>
{
  visit("zones", row.zones);
  visit("records", row.records);
  visit("differences", row.differences);
  visit("bytes", row.bytes);
  visit("position", row.position);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, SnapshotResult>
{
  visit("zone", row.zone);
  visit("label", row.label);
  visit("serial", row.serial);
  visit("in_image", row.in_image);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, SnapshotRow>
{
  visit("zone", row.zone);
  visit("label", row.label);
  visit("serial", row.serial);
  visit("taken", row.taken);
  visit("records", row.records);
  visit("lost", row.lost);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, SnapshotUsage>
{
  visit("zone", row.zone);
  visit("label", row.label);
  visit("bytes", row.bytes);
}

template <class Visitor, class Row>
void visit_fields(Visitor& visit, Row& row)
  requires std::is_same_v<std::remove_const_t<Row>, StoreAudit>
{
  visit("version", row.version);
  visit("zones", row.zones);
  visit("names", row.names);
  visit("records", row.records);
  visit("bytes", row.bytes);
  visit("faults_found", row.faults_found);
  visit("faults", row.faults);
}

template <class Row>
json to_object(const Row& row) {
  FieldWriter writer;
  visit_fields(writer, row);
  return writer.take();
}

template <class Row>
json to_list(const std::vector<Row>& rows) {
  json list = json::array();
  for (const Row& row : rows) list.push_back(to_object(row));
  return list;
}

template <class Row>
Result<Row> read_row(const json& object) {
  Row row;
  FieldReader reader(object);
  visit_fields(reader, row);
  if (auto status = reader.status(); !status) return pass(status);
  return row;
}

/// Reads a list of rows; a bad row makes the whole result bad.
template <class Row>
Status read_rows(const json& object, const char* name, std::vector<Row>& out) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_array())
    return fail(Errc::kInvalid, "'{}' is not a list", name);
  for (const json& element : *found) {
    auto row = read_row<Row>(element);
    if (!row) return pass(row);
    out.push_back(std::move(*row));
  }
  return {};
}

}  // namespace

json to_json(const StatusResult& result) { return to_object(result); }
json to_json(const ZoneRow& row) { return to_object(row); }
json to_json(const WorkerRow& row) { return to_object(row); }
json to_json(const ReloadResult& result) { return to_object(result); }
json to_json(const ExportResult& result) { return to_object(result); }
json to_json(const DumpResult& result) { return to_object(result); }
json to_json(const SnapshotResult& result) { return to_object(result); }

json to_json(const SnapshotListResult& result) {
  return {{"snapshots", to_list(result.snapshots)}, {"next", result.next}};
}

json to_json(const StoreAudit& result) {
  json object = to_object(result);
  object["snapshots"] = to_list(result.snapshots);
  return object;
}

json to_json(const ZoneListResult& result) {
  json rows = json::array();
  for (const ZoneRow& row : result.zones) rows.push_back(to_json(row));
  return {{"zones", std::move(rows)}, {"next", result.next}};
}

json to_json(const WorkerListResult& result) {
  json rows = json::array();
  for (const WorkerRow& row : result.workers) rows.push_back(to_json(row));
  return {{"mode", result.mode}, {"workers", std::move(rows)}};
}

Result<StatusResult> status_from_json(const json& object) { return read_row<StatusResult>(object); }
Result<ZoneRow> zone_row_from_json(const json& object) { return read_row<ZoneRow>(object); }
Result<ReloadResult> reload_from_json(const json& object) { return read_row<ReloadResult>(object); }
Result<ExportResult> export_from_json(const json& object) { return read_row<ExportResult>(object); }

Result<DumpResult> dump_from_json(const json& object) { return read_row<DumpResult>(object); }
Result<SnapshotResult> snapshot_from_json(const json& object) {
  return read_row<SnapshotResult>(object);
}

Result<SnapshotListResult> snapshot_list_from_json(const json& object) {
  SnapshotListResult result;
  if (auto status = read_rows(object, "snapshots", result.snapshots); !status) return pass(status);
  FieldReader reader(object);
  reader("next", result.next);
  if (auto status = reader.status(); !status) return pass(status);
  return result;
}

Result<StoreAudit> store_audit_from_json(const json& object) {
  auto audit = read_row<StoreAudit>(object);
  if (!audit || !object.contains("snapshots")) return audit;
  if (auto status = read_rows(object, "snapshots", audit->snapshots); !status) return pass(status);
  return audit;
}

Result<ZoneListResult> zone_list_from_json(const json& object) {
  ZoneListResult result;
  if (auto status = read_rows(object, "zones", result.zones); !status) return pass(status);
  FieldReader reader(object);
  reader("next", result.next);
  if (auto status = reader.status(); !status) return pass(status);
  return result;
}

Result<WorkerListResult> worker_list_from_json(const json& object) {
  WorkerListResult result;
  if (auto status = read_rows(object, "workers", result.workers); !status) return pass(status);
  FieldReader reader(object);
  reader("mode", result.mode);
  if (auto status = reader.status(); !status) return pass(status);
  return result;
}

}  // namespace pando::ipc
