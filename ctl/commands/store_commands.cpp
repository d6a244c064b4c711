#include "ctl/commands/store_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "ctl/view/progress_bar.h"
#include "ipc/audit_result.h"
#include "ipc/control_json.h"
#include "shm/inspect/image_inspection.h"
#include "shm/inspect/inspection.h"
#include "zone/audit/audit.h"
#include "zone/draft/draft.h"

namespace pando::ctl {

namespace {

void print_snapshots(const ipc::StoreAudit& audit, std::ostream& out) {
  if (audit.snapshots.empty()) return;
  Table snapshots({{"BYTES", true}, {"SNAPSHOT"}, {"ZONE"}});
  for (const ipc::SnapshotUsage& one : audit.snapshots)
    snapshots.add({number(one.bytes), one.label, one.zone});
  snapshots.flush(out);
}

/// Shows a bar on a terminal: a walk over gigabytes takes a while.
zone::Audit audit_version(const shm::Window& window, shm::Ref<> root, Output output) {
  const auto occupied = shm::occupancy(window);
  const auto bytes = std::accumulate(occupied.begin(), occupied.end(), std::uint64_t{0});
  ProgressBar bar(output.err, !output.json && stderr_is_terminal(), bytes);
  zone::Audit audit = zone::audit(window, root, [&bar](std::uint64_t met) { bar.at(met); });
  zone::compare_chunks(audit, occupied);
  return audit;
}

int print_audit(zone::Audit&& audit, std::uint64_t version, const std::string& path,
                Output output) {
  const ipc::StoreAudit result = ipc::store_audit(std::move(audit), version);
  if (output.json) output.out << nlohmann::json(result).dump() << '\n';
  const int code = print_verdict(result, path, output);
  if (!output.json) print_snapshots(result, output.out);
  return code;
}

/// Whether the file is an image's index. False for an unreadable file: the caller that opens it
/// next reports the error.
bool is_image(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Bytes head(shm::kImageMagicBytes);
  file.read(reinterpret_cast<char*>(head.data()), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return shm::looks_like_image_index(head);
}

Result<shm::ImageInspection> open_image(const std::string& path, Output output) {
  std::optional<ProgressBar> bar;
  return shm::ImageInspection::open(
      path, zone::layout_fingerprint(), [&](std::uint64_t done, std::uint64_t total) {
        if (!bar) bar.emplace(output.err, !output.json && stderr_is_terminal(), total);
        bar->at(done);
      });
}

int check_image(const std::string& path, Output output) {
  auto image = open_image(path, output);
  if (!image) return refuse(output, image.error());
  const shm::VersionInfo& version = image->version();
  zone::Audit audit = audit_version(image->window(), version.root, output);
  if (audit.fault_count != 0 && !image->is_current())
    return refuse(output, {Errc::kExists, path + ": replaced by its manager meanwhile, try again"});
  return print_audit(std::move(audit), version.number, path, output);
}

}  // namespace

void print_usage(const ipc::StoreAudit& audit, std::ostream& out) {
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  std::uint64_t total = 0;
  for (const auto& [name, bytes] : audit.bytes) {
    rows.emplace_back(bytes, name);
    total += bytes;
  }
  std::sort(rows.begin(), rows.end(), std::greater<>());
  const auto per_record = [&](std::uint64_t bytes) {
    return audit.records == 0 ? std::string("-")
                              : fmt::format("{:.2f}", static_cast<double>(bytes) /
                                                          static_cast<double>(audit.records));
  };
  Table table({{"BYTES", true}, {"PER RECORD", true}, {"FOR"}});
  for (const auto& [bytes, name] : rows)
    if (bytes != 0) table.add({number(bytes), per_record(bytes), name});
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
  if (is_image(path)) return check_image(path, output);
  auto file = shm::Inspection::open(path, zone::layout_fingerprint());
  if (!file) return refuse(output, file.error());
  zone::Audit audit = audit_version(file->window(), file->version().root, output);
  return print_audit(std::move(audit), file->version().number, path, output);
}

}  // namespace pando::ctl
