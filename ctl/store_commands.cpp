#include "ctl/store_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ctl/progress.h"
#include "shm/inspection.h"
#include "zone/audit.h"
#include "zone/draft.h"

namespace pando::ctl {

namespace {

void print_snapshots(const ipc::StoreAudit& audit, std::ostream& out) {
  if (audit.snapshots.empty()) return;
  Table snapshots({{"OCTETS", true}, {"SNAPSHOT"}, {"ZONE"}});
  for (const ipc::SnapshotUsage& one : audit.snapshots)
    snapshots.add({number(one.octets), one.label, one.zone});
  snapshots.flush(out);
}

/// On a terminal with a bar: a walk over gigabytes takes a while.
zone::Audit audit_file(const shm::Inspection& file, Output output) {
  const auto occupied = shm::occupancy(file.window());
  const auto octets = std::accumulate(occupied.begin(), occupied.end(), std::uint64_t{0});
  ProgressBar bar(output.err, !output.json && stderr_is_terminal(), octets);
  zone::Audit audit =
      zone::audit(file.window(), file.version().root, [&bar](std::uint64_t met) { bar.at(met); });
  zone::compare_chunks(audit, occupied);
  return audit;
}

}  // namespace

void print_usage(const ipc::StoreAudit& audit, std::ostream& out) {
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  std::uint64_t total = 0;
  for (const auto& [name, octets] : audit.octets) {
    rows.emplace_back(octets, name);
    total += octets;
  }
  std::sort(rows.begin(), rows.end(), std::greater<>());
  const auto per_record = [&](std::uint64_t octets) {
    return audit.records == 0 ? std::string("-")
                              : fmt::format("{:.2f}", static_cast<double>(octets) /
                                                          static_cast<double>(audit.records));
  };
  Table table({{"OCTETS", true}, {"PER RECORD", true}, {"FOR"}});
  for (const auto& [octets, name] : rows)
    if (octets != 0) table.add({number(octets), per_record(octets), name});
  table.add({number(total), per_record(total), "all"});
  table.flush(out);
  out << fmt::format("{}, {}, {}\n", counted(audit.zones, "zone"), counted(audit.names, "name"),
                     counted(audit.records, "record"));
  print_snapshots(audit, out);
}

int print_verdict(const ipc::StoreAudit& audit, const std::string& what, Output output) {
  for (const std::string& fault : audit.faults) output.err << "error: " << fault << '\n';
  const auto shown = audit.faults.size();
  if (audit.faults_found > shown)
    output.err << fmt::format("error: {} more\n", audit.faults_found - shown);
  if (!output.json)
    output.out << fmt::format(
        "{}: version {} with {}, {}, {}: {}\n", what, audit.version, counted(audit.zones, "zone"),
        counted(audit.names, "name"), counted(audit.records, "record"),
        audit.faults_found == 0 ? "no faults" : counted(audit.faults_found, "fault"));
  return audit.faults_found == 0 ? kDone : kFailed;
}

int check_store_file(const std::string& path, Output output) {
  auto file = shm::Inspection::open(path, zone::layout_fingerprint());
  if (!file) {
    output.err << "pandoctl: " << file.error().text << '\n';
    return kFailed;
  }
  zone::Audit audit = audit_file(*file, output);
  ipc::StoreAudit result;
  result.version = file->version().number;
  result.zones = audit.zones;
  result.names = audit.names;
  result.records = audit.records;
  result.octets = audit.usage.by_name();
  result.faults_found = audit.fault_count;
  result.faults = std::move(audit.faults);
  for (zone::SavedUsage& one : audit.saved)
    result.snapshots.push_back({std::move(one.zone), std::move(one.label), one.octets});
  if (output.json) output.out << ipc::to_json(result).dump() << '\n';
  const int code = print_verdict(result, path, output);
  if (!output.json) print_snapshots(result, output.out);
  return code;
}

}  // namespace pando::ctl
