#include "http/page/zone_rows.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/unix_time.h"
#include "http/api/pdns_json.h"
#include "http/api/search_data.h"
#include "http/api/seen_zones.h"
#include "ipc/control_json.h"

namespace pando::http {

using nlohmann::json;

namespace {

/// Rows of one page: the manager is asked about each.
constexpr std::size_t kRowsOfPage = 50;
/// Zones examined for one page, some 20 ms.
constexpr std::size_t kZonesLookedAt = 20'000;
/// A whole name in presentation format, if all of its octets are escaped.
constexpr std::size_t kMaxSearchBytes = 1024;
/// Beginning of a problem in a list, as the manager's own list has it.
constexpr std::size_t kProblemBytes = 200;
constexpr std::size_t kChangesetsShown = 30;

bool has_problem(const ipc::ZoneRow& row) { return row.state != "ok" || !row.problem.empty(); }

bool is_searched(const ZoneQuery& query, std::string_view name) {
  return query.pattern.empty() || fits_search(query.pattern, name);
}

json list_row(const ipc::ZoneRow& row) {
  std::string problem = row.problem;
  if (problem.size() > kProblemBytes) problem.replace(kProblemBytes, std::string::npos, "...");
  return {{"name", row.name},     {"kind", row.kind},       {"state", row.state},
          {"serial", row.serial}, {"records", row.records}, {"frozen", row.frozen},
          {"problem", problem}};
}

json rows_json(const std::vector<ipc::ZoneRow>& rows, const std::string& next, std::size_t looked,
               bool manager) {
  json list = json::array();
  for (const ipc::ZoneRow& row : rows) list.push_back(list_row(row));
  return {{"zones", std::move(list)}, {"next", next}, {"looked", looked}, {"manager", manager}};
}

/// Pages of the manager's list, from which the zones without a problem are left out. A page has
/// 1,000 rows, which cost the commit thread some 10 ms; it does other work between two pages.
Result<json> problem_rows(Collector& collector, const ZoneQuery& query) {
  const auto deadline = std::chrono::steady_clock::now() + collector.list_time();
  std::vector<ipc::ZoneRow> rows;
  std::size_t looked = 0;
  std::string next = query.after ? to_text(*query.after) : std::string();
  do {
    auto list = collector.ask_zone_list(next);
    if (!list && looked == 0) return pass(list);
    if (!list) break;  // the next request reports that the manager does not answer
    for (ipc::ZoneRow& row : list->zones) {
      ++looked;
      if (!has_problem(row) || !is_searched(query, row.name)) continue;
      rows.push_back(std::move(row));
      if (rows.size() >= kRowsOfPage) return rows_json(rows, rows.back().name, looked, true);
    }
    next = list->next;
  } while (!next.empty() && looked < kZonesLookedAt &&
           std::chrono::steady_clock::now() < deadline);
  return rows_json(rows, next, looked, true);
}

/// Replaces the store's rows by the manager's. False: the manager does not answer.
bool add_managers_rows(Collector& collector, std::vector<ipc::ZoneRow>& rows) {
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const ipc::ZoneRow& row : rows) names.push_back(row.name);
  auto answered = collector.ask_zones(names);
  if (!answered) return false;
  std::map<std::string, ipc::ZoneRow> by_name;
  for (ipc::ZoneRow& row : *answered) by_name[row.name] = std::move(row);
  for (ipc::ZoneRow& row : rows)
    if (const auto found = by_name.find(row.name); found != by_name.end()) row = found->second;
  return true;
}

json snapshot_json(const SnapshotFacts& snapshot) {
  return {{"label", snapshot.label},
          {"serial", snapshot.serial},
          {"taken", snapshot.taken},
          {"records", snapshot.records},
          {"lost", snapshot.lost}};
}

json changeset_json(const ChangesetFacts& changeset) {
  json row = {{"from", changeset.from}, {"to", changeset.to}, {"records", changeset.records}};
  if (changeset.added) {
    row["added"] = *changeset.added;
    row["removed"] = changeset.records - std::min(changeset.records, *changeset.added);
  }
  return row;
}

void add_past(const ZonePast& past, json& zone) {
  json changesets = json::array();
  for (const ChangesetFacts& one : past.changesets) changesets.push_back(changeset_json(one));
  json snapshots = json::array();
  for (const SnapshotFacts& one : past.snapshots) snapshots.push_back(snapshot_json(one));
  zone["changesets"] = std::move(changesets);
  zone["older_changesets"] = past.older;
  zone["changesets_known"] = past.known;
  zone["snapshots"] = std::move(snapshots);
}

}  // namespace

Result<ZoneQuery> read_zone_query(std::string_view query) {
  ZoneQuery wanted;
  const std::string search = query_value(query, "search");
  if (search.size() > kMaxSearchBytes)
    return fail(Errc::kInvalid, "a search has at most {} bytes", kMaxSearchBytes);
  if (!search.empty()) wanted.pattern = "*" + search + "*";
  if (const std::string after = query_value(query, "after"); !after.empty()) {
    auto name = dns::Name::from_text(after);
    if (!name) return pass(name);
    wanted.after = *name;
  }
  wanted.problems = query_value(query, "problems") == "1";
  return wanted;
}

ipc::ZoneRow row_of(const ZoneFacts& facts, std::uint64_t now) {
  ipc::ZoneRow row;
  row.name = facts.name;
  row.kind = facts.secondary ? "secondary" : "primary";
  const bool expired = facts.expires_at != 0 && facts.expires_at <= now;
  row.state = !facts.loaded ? "not-loaded" : expired ? "expired" : "ok";
  row.serial = facts.serial;
  row.records = facts.records;
  row.names = facts.names;
  row.history = facts.history_bytes;
  row.refresh_at = facts.refresh_at;
  row.last_ok = facts.last_ok;
  row.expires_at = facts.expires_at;
  row.signatures_end = facts.signatures_end;
  return row;
}

Result<json> zone_rows_json(Collector& collector, const ZoneQuery& query,
                            const AccessKey& client) {
  const bool whole = client.zones.empty();
  bool manager = true;
  if (whole && query.problems) {
    auto rows = problem_rows(collector, query);
    if (rows) return rows;
    manager = false;  // the store knows some problems, too
  }
  const std::uint64_t now = unix_seconds();
  ZonePageRequest request;
  request.after = query.after;
  request.ranges = ranges_of(client);
  request.most_found = kRowsOfPage;
  request.most_looked = kZonesLookedAt;
  request.fits = [&](const ZoneFacts& facts) {
    const bool wanted = manager || !query.problems || has_problem(row_of(facts, now));
    return wanted && is_searched(query, facts.name);
  };
  const auto page = collector.read_zone_page(request);
  if (!page) return tl::unexpected<Error>(page.error());
  std::vector<ipc::ZoneRow> rows;
  for (const ZoneFacts& facts : page->zones) rows.push_back(row_of(facts, now));
  if (manager && !rows.empty()) manager = add_managers_rows(collector, rows);
  if (query.problems)
    std::erase_if(rows, [](const ipc::ZoneRow& row) { return !has_problem(row); });
  return rows_json(rows, page->next ? to_text(*page->next) : std::string(), page->looked, manager);
}

Result<json> zone_details_json(Collector& collector, const dns::Name& name,
                               const AccessKey& client) {
  auto facts = collector.read_facts(name);
  const auto answered = collector.ask_zones({to_text(name)});
  json zone = {{"now", unix_seconds()}, {"manager", answered.has_value()}};
  if (answered && !answered->empty())
    zone["zone"] = answered->front();  // a removed zone is not in the store
  else if (facts)
    zone["zone"] = row_of(*facts, unix_seconds());
  else
    return pass(facts);
  // Paths of this host are no concern of a customer.
  if (!client.zones.empty()) zone["zone"].erase("file");
  const auto past = collector.read_zone_past(name, kChangesetsShown);
  if (past)
    add_past(*past, zone);
  else if (past.error().code != Errc::kNotFound)
    zone["past_problem"] = past.error().text;
  return zone;
}

}  // namespace pando::http
