#include "manager/control/zone_report.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/unix_time.h"
#include "ipc/control_json.h"
#include "shm/side_table.h"
#include "zone/dnssec/zone_verification.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// A list's row has only the beginning of a problem, as each of a page's thousand zones may have
/// one.
constexpr std::size_t kMaxProblemBytes = 200;

/// Expiry of a secondary, in seconds since 1970; 0: the zone has none.
std::uint64_t expiry(const shm::Store::SideEntry* side) {
  return side == nullptr ? 0 : side->expires_at.load(std::memory_order_relaxed);
}

std::string role_of(const config::Catalog& catalog) {
  return catalog.produces() ? "producer" : "consumer";
}

const config::Catalog* find_catalog(const config::Settings& settings, dns::NameView zone) {
  const auto found = std::ranges::find(
      settings.catalogs, zone, [](const config::Catalog& catalog) { return catalog.zone.view(); });
  return found == settings.catalogs.end() ? nullptr : &*found;
}

/// Zones share options, mostly with their neighbours: names are rarely compared.
std::uint64_t count_members(const config::ZoneTable& zones, const dns::Name& catalog) {
  std::uint64_t count = 0;
  const config::ZoneOptions* last = nullptr;
  bool is_member = false;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const config::ZoneOptions* options = zones[i].options;
    if (options != last) is_member = options->catalog == catalog || options->member_of == catalog;
    last = options;
    if (is_member) ++count;
  }
  return count;
}

}  // namespace

bool ZoneReport::is_secondary_zone(const zone::ZoneView& zone) const {
  const auto* options = parts_.configuration.runtime->settings.zones.options_of(zone.apex());
  // Until the zone lists are read, the store alone knows.
  return options != nullptr ? options->is_secondary() : is_secondary(zone);
}

bool ZoneReport::is_loading(const zone::ZoneView& zone) const {
  const ZoneLoader& loader = *parts_.zones.loader;
  if (loader.judges(zone.apex())) return true;
  return !loader.idle() && !parts_.zones.loads->has_problem(zone);
}

/// The fields that both answers have.
ipc::ZoneRow ZoneReport::row(const zone::ZoneView& zone) const {
  const ZoneServices& zones = parts_.zones;
  ipc::ZoneRow row;
  row.name = to_text(zone.apex());
  const bool secondary = is_secondary_zone(zone);
  row.kind = secondary ? "secondary" : "primary";
  const std::uint64_t expires =
      expiry(shm::known_side(parts_.data.store->window(), zone.side_index()));
  const bool expired = expires != 0 && expires <= unix_seconds();
  if (!zone.loaded())
    row.state = is_loading(zone) ? "loading" : "not-loaded";
  else
    row.state = expired ? "expired" : "ok";
  row.serial = zone.loaded() ? zone.serial().value : 0;
  row.records = zone.record_count();
  row.names = zone.name_count();
  row.history = zone.history_bytes();
  row.frozen = zones.frozen->contains(zone.apex());
  row.problem = problem_of(zone, secondary);
  return row;
}

ipc::ZoneRow ZoneReport::short_row(const zone::ZoneView& zone) const {
  ipc::ZoneRow result = row(zone);
  add_origin(zone, result);
  if (result.problem.size() > kMaxProblemBytes)
    result.problem.replace(kMaxProblemBytes, std::string::npos, "...");
  return result;
}

ipc::ZoneRow ZoneReport::full_row(const zone::ZoneView& zone) const {
  ipc::ZoneRow result = row(zone);
  if (const auto load = parts_.zones.loader->progress(zone.apex())) {
    const Progress::Seen seen = load->seen();
    result.load_phase = to_text(seen.phase);
    result.load_done = seen.done;
    result.load_total = seen.total;
  }
  add_judgement(zone.apex(), result);
  add_change(zone.apex(), result);
  result.signature_faults = parts_.zones.signatures->faults(zone.apex());
  if (zone.loaded() && zone::primary_serial(zone)) result.primary_serial = zone::primary_serial(zone)->value;
  add_settings(zone, result);
  add_origin(zone, result);
  if (!result.catalog_role.empty())
    result.catalog_members =
        count_members(parts_.configuration.runtime->settings.zones, dns::Name(zone.apex()));
  result.notified = parts_.zones.notifier->status(dns::Name(zone.apex()));
  const shm::Store::SideEntry* side =
      shm::known_side(parts_.data.store->window(), zone.side_index());
  result.expires_at = expiry(side);
  if (side != nullptr) {
    result.refresh_at = side->next_refresh.load(std::memory_order_relaxed);
    result.last_ok = side->last_ok.load(std::memory_order_relaxed);
    result.signatures_end = shm::signatures_end(*side);
  }
  const auto refresh = is_secondary_zone(zone)
                           ? parts_.zones.refresher->status(dns::Name(zone.apex()))
                           : std::nullopt;
  if (refresh) result.refresh_at = refresh->next_refresh;
  if (result.frozen) result.refresh_at = 0;
  return result;
}

/// The program that judges a new version of the zone, from its file or its primary.
void ZoneReport::add_judgement(dns::NameView zone, ipc::ZoneRow& row) const {
  if (const auto program = parts_.zones.verifiers->under_way(zone)) {
    row.judged_by = program->program;
    row.judged_since = program->since;
    row.judged_until = program->until;
  } else {
    row.judged_by = parts_.zones.loader->judge_of(zone);
  }
}

void ZoneReport::add_change(dns::NameView zone, ipc::ZoneRow& row) const {
  const auto change = parts_.services.road->under_way(zone);
  if (!change) return;
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - change->since);
  row.change_from = to_text(change->source);
  row.change_step = to_text(change->step);
  row.change_since = unix_seconds() - static_cast<std::uint64_t>(age.count());
}

/// The file and the primaries that the configuration names.
void ZoneReport::add_settings(const zone::ZoneView& zone, ipc::ZoneRow& row) const {
  const config::Settings& settings = parts_.configuration.runtime->settings;
  const auto index = settings.zones.find(zone.apex());
  if (!index) return;
  row.file = settings.zones.path(*index);
  const config::ZoneOptions& options = *settings.zones[*index].options;
  row.dnssec = options.dnssec;
  row.ds = ds_records(parts_.zones.signing->zones(), zone);
  if (!options.is_secondary()) return;
  for (const std::string& name : options.primaries)
    if (const config::Remote* remote = settings.find_remote(name))
      for (const Endpoint& address : remote->address)
        row.primaries.push_back(pando::to_text(address));
}

/// The problem of the zone's primaries, its file or its export. A zone with a problem may be served
/// all the same.
std::string ZoneReport::problem_of(const zone::ZoneView& zone, bool secondary) const {
  std::string text;
  if (secondary) text = parts_.zones.refresher->problem(dns::Name(zone.apex()));
  if (text.empty()) text = parts_.zones.loads->problem(zone);
  if (text.empty()) text = parts_.zones.signing->problem(zone.apex());
  if (text.empty()) text = parts_.zones.exports->problem(zone.apex());
  if (text.empty()) text = parts_.zones.signatures->problem(zone.apex());
  if (text.empty()) text = catalog_problem(zone.apex());
  if (text.empty()) text = delegation_problem(zone);
  return text;
}

/// Looked up anew each time: a change of either zone would outdate what was known.
std::string ZoneReport::delegation_problem(const zone::ZoneView& zone) const {
  const dns::NameView apex = zone.apex();
  if (apex.is_root() || !zone.loaded()) return {};
  const zone::ZoneView parent = parts_.services.committer->current().find_zone(apex.parent());
  return parent ? zone::delegation_problem(parent, zone) : std::string();
}

std::string ZoneReport::catalog_problem(dns::NameView zone) const {
  if (parts_.configuration.runtime->settings.produces(zone)) return producer_.problem();
  return catalogs_.problem(zone);
}

std::vector<ipc::CatalogRow> ZoneReport::catalogs() const {
  std::vector<ipc::CatalogRow> rows;
  for (const config::Catalog& catalog : parts_.configuration.runtime->settings.catalogs)
    rows.push_back({to_text(catalog.zone), role_of(catalog), catalog_problem(catalog.zone)});
  return rows;
}

/// Whether a command added the zone, the catalog to which it belongs, and its own part as a
/// catalog.
void ZoneReport::add_origin(const zone::ZoneView& zone, ipc::ZoneRow& row) const {
  const config::Settings& settings = parts_.configuration.runtime->settings;
  if (const auto index = settings.zones.find(zone.apex())) {
    row.added = settings.zones[*index].added;
    const config::ZoneOptions& options = *settings.zones[*index].options;
    if (options.catalog) row.catalog = to_text(*options.catalog);
    // Members of a catalog that left the configuration are zones like others.
    if (options.member_of && find_catalog(settings, *options.member_of) != nullptr) {
      row.catalog = to_text(*options.member_of);
      row.added = false;
    }
  }
  const config::Catalog* own = find_catalog(settings, zone.apex());
  if (own != nullptr) row.catalog_role = role_of(*own);
}

/// A zone that left the configuration and whose updates the journal keeps.
ipc::ZoneRow ZoneReport::removed_row(const RemovedZones::Zones::value_type& removed) const {
  const auto& [name, zone] = removed;
  const auto limit = parts_.configuration.runtime->settings.limits.removed_zones;
  ipc::ZoneRow row;
  row.name = to_text(name);
  row.kind = "primary";
  row.state = "removed";
  row.serial = zone.serial.value;
  row.removed_at = zone.removed_at;
  if (limit.count() != 0)
    row.kept_until = zone.removed_at + static_cast<std::uint64_t>(limit.count() / 1000);
  row.updates_kept = zone.updates ? std::to_string(*zone.updates) : "unknown";
  return row;
}

/// Zones of the store and removed zones, in one order.
Result<json> ZoneReport::list(const ipc::ControlRequest& request) const {
  ipc::ZoneListResult result;
  const zone::StoreView current = parts_.services.committer->current();
  const RemovedZones::Zones& removed = parts_.zones.removed->zones();
  zone::ZoneWalk walk(current);
  auto next = removed.begin();
  if (!request.after.empty()) {
    auto after = dns::Name::from_text(request.after);
    if (!after) return pass(after);
    walk.seek_after(*after);
    next = removed.upper_bound(*after);
  }
  const auto add = [&](const auto& make_row) {
    const bool fits = result.zones.size() < request.limit;
    if (fits)
      result.zones.push_back(make_row());
    else
      result.next = result.zones.back().name;
    return fits;
  };
  for (zone::ZoneView zone = walk.next(); result.next.empty();) {
    const bool is_removed =
        next != removed.end() && (!zone || dns::compare_canonical(next->first, zone.apex()) < 0);
    if (!zone && !is_removed) break;
    if (!add([&] { return is_removed ? removed_row(*next) : short_row(zone); })) break;
    if (is_removed)
      ++next;
    else
      zone = walk.next();
  }
  return json(result);
}

Result<json> ZoneReport::status(const ipc::ControlRequest& request) const {
  auto name = dns::Name::from_text(request.name);
  if (!name) return pass(name);
  const zone::ZoneView zone = parts_.services.committer->current().zone_at(*name);
  if (zone) return json(full_row(zone));
  const RemovedZones::Zones& removed = parts_.zones.removed->zones();
  if (const auto found = removed.find(*name); found != removed.end())
    return json(removed_row(*found));
  return fail(Errc::kNotFound, "no zone {}", to_text(*name));
}

}  // namespace pando::manager
