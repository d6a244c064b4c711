#include "ctl/commands/compare_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/load.h"
#include "ctl/view/json_text.h"

namespace pando::ctl {

using nlohmann::json;

namespace {

/// A zone that updates change all the time has no whole version in pages.
constexpr int kMaxReadings = 5;

/// Each page is of the version of its moment: records of two versions are no zone.
Status read_here(Session& session, RecordSet& records) {
  const ipc::ControlRequest request{.verb = std::string(ipc::verb::kZoneRead),
                                    .name = dns::to_text(records.zone())};
  for (int reading = 1;; ++reading) {
    records.clear();
    std::optional<std::uint32_t> serial;
    bool changed = false;
    auto read = session.for_each_page<ipc::ZoneReadResult>(
        request, [&](const ipc::ZoneReadResult& page) -> Status {
          changed = serial && *serial != page.serial;
          if (changed)
            return fail(Errc::kExists, "the zone changed while it was read, {} times", reading);
          serial = page.serial;
          for (const ipc::RecordRow& row : page.records)
            if (auto added = records.add(row); !added) return added;
          return {};
        });
    if (read) records.finish();
    if (!changed || reading == kMaxReadings) return read;
  }
}

Result<ComparedZone> compare_zone(Session& session, const std::string& text,
                                  const ComparisonWords& words) {
  auto name = dns::Name::from_text(text);
  if (!name) return pass(name);
  RecordSet here(*name);
  RecordSet there(*name);
  if (auto read = read_here(session, here); !read) return pass(read);
  if (auto transferred = transfer_zone(words.server, there); !transferred)
    return fail(transferred.error().code, "{}: {}", to_text(words.server.at),
                transferred.error().text);
  return compare_sets(here, there, words.limit);
}

/// The zones that have data.
Result<std::vector<std::string>> served_zones(Session& session) {
  std::vector<std::string> names;
  auto read = session.for_each_page<ipc::ZoneListResult>(
      {.verb = std::string(ipc::verb::kZoneList)}, [&](const ipc::ZoneListResult& page) -> Status {
        for (const ipc::ZoneRow& row : page.zones)
          if (row.state != "removed") names.push_back(row.name);
        return {};
      });
  if (!read) return pass(read);
  return names;
}

void print_rows(std::ostream& out, char sign, const std::vector<ipc::RecordRow>& rows,
                std::uint64_t count) {
  for (const ipc::RecordRow& row : rows)
    out << fmt::format("{} {} {} IN {} {}\n", sign, row.owner, row.ttl, row.type, row.rdata);
  if (count > rows.size()) out << fmt::format("{} ... {} more\n", sign, count - rows.size());
}

void print(std::ostream& out, const ComparedZone& zone) {
  if (!zone.error.empty()) {
    out << fmt::format("{}: not compared: {}\n", zone.zone, zone.error);
    return;
  }
  if (zone.is_same()) {
    out << fmt::format("{}: same, {}, serial {}\n", zone.zone, counted(zone.records, "record"),
                       zone.serial);
    return;
  }
  out << fmt::format("{}: serial {} there, {} here; {} only there, {} only here\n", zone.zone,
                     zone.serial_there, zone.serial, counted(zone.missing_here, "record"),
                     zone.missing_there);
  print_rows(out, '-', zone.only_there, zone.missing_here);
  print_rows(out, '+', zone.only_here, zone.missing_there);
}

json json_of(const ComparedZone& zone) {
  if (!zone.error.empty()) return {{"zone", zone.zone}, {"same", false}, {"error", zone.error}};
  return {{"zone", zone.zone},
          {"same", zone.is_same()},
          {"serial", zone.serial},
          {"serial_there", zone.serial_there},
          {"records", zone.records},
          {"missing_here", zone.missing_here},
          {"missing_there", zone.missing_there},
          {"only_there", zone.only_there},
          {"only_here", zone.only_here}};
}

}  // namespace

ComparedZone compare_sets(const RecordSet& here, const RecordSet& there, std::size_t limit) {
  ComparedZone result;
  result.zone = dns::to_text(here.zone());
  result.serial = here.serial().value_or(0);
  result.serial_there = there.serial().value_or(0);
  result.records = here.size();
  result.missing_here = there.missing_in(here, limit, result.only_there);
  result.missing_there = here.missing_in(there, limit, result.only_here);
  return result;
}

Result<const dns::TsigKeyring::PreparedKey*> key_of_configuration(const std::string& path,
                                                                  const std::string& name,
                                                                  dns::TsigKeyring& keyring) {
  auto wanted = dns::Name::from_text(name);
  if (!wanted) return pass(wanted);
  const auto loaded = config::load(path, {.read_zone_lists = false});
  if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
  for (const config::Key& key : loaded.settings.keys) {
    if (!(key.name == *wanted)) continue;
    if (auto added = keyring.add({key.name, key.algorithm, key.secret}); !added)
      return pass(added);
    return keyring.find(key.name);
  }
  return fail(Errc::kNotFound, "{} has no key {}", path, name);
}

int compare(Session& session, const ComparisonWords& words) {
  std::vector<std::string> zones = words.zones;
  if (zones.empty()) {
    auto served = served_zones(session);
    if (!served) return session.fail(served.error());
    zones = std::move(*served);
  }
  const Output& output = session.output();
  json all = json::array();
  std::size_t same = 0;
  for (const std::string& zone : zones) {
    auto compared = compare_zone(session, zone, words);
    if (!compared) compared = ComparedZone{.zone = zone, .error = compared.error().text};
    same += compared->is_same() ? 1 : 0;
    if (output.json)
      all.push_back(json_of(*compared));
    else
      print(output.out, *compared);
  }
  if (output.json)
    output.out << json_text({{"same", same}, {"different", zones.size() - same}, {"zones", all}})
               << '\n';
  else if (words.zones.size() != 1)
    output.out << fmt::format("{} the same, {} not\n", counted(same, "zone"), zones.size() - same);
  return same == zones.size() ? kDone : kFailed;
}

}  // namespace pando::ctl
