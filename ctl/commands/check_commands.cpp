#include "ctl/commands/check_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/address.h"
#include "base/progress.h"
#include "base/unix_time.h"
#include "config/files.h"
#include "config/load.h"
#include "ctl/commands/program_rights.h"
#include "ctl/commands/scratch_zone.h"
#include "ctl/commands/zone_lint.h"
#include "ctl/view/host_addresses.h"
#include "ctl/view/json_text.h"
#include "ctl/view/progress_bar.h"
#include "dns/zonefile/zone_scanner.h"
#include "ipc/privileges.h"
#include "shm/store.h"
#include "zone/builder/zone_builder.h"
#include "zone/dnssec/zone_verification.h"
#include "zone/draft/draft.h"

namespace pando::ctl {

using nlohmann::json;

namespace {

bool has_right(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

struct ZoneFacts {
  std::uint32_t serial = 0;
  std::uint64_t records = 0;
  std::uint64_t names = 0;
  std::vector<std::string> doubts;
  zone::Verification verified{};
};

/// Finishes the zone as the manager would, and reads it as a worker would.
Result<ZoneFacts> facts_of(const dns::Name& apex, zone::ZoneBuilder& builder,
                           shm::Transaction& transaction, bool verify) {
  auto built = builder.finish();
  if (!built) return pass(built);
  zone::Draft draft(transaction, {}, 1);
  if (auto put = draft.put_zone_settings(apex, {}, 0); !put) return pass(put);
  if (auto put = draft.put_zone(apex, **built, {}); !put) return pass(put);
  const zone::StoreView snapshot = draft.view();
  const zone::ZoneView zone = snapshot.zone_at(apex);
  ZoneFacts facts{zone.serial().value, zone.record_count(), zone.name_count(), lint_zone(zone)};
  if (verify)
    facts.verified = zone::verify_zone(zone, {unix_seconds(), std::thread::hardware_concurrency()});
  return facts;
}

/// Faults of the signatures, as lines of the report.
std::vector<std::string> lines_of(const std::string& path, const zone::Verification& verified) {
  std::vector<std::string> lines;
  for (const std::string& fault : verified.faults)
    lines.push_back(fmt::format("{}: {}", path, fault));
  if (verified.fault_count > lines.size())
    lines.push_back(fmt::format("{}: {} more faults of signatures and denial", path,
                                verified.fault_count - lines.size()));
  return lines;
}

/// "signed until 2026-12-24T00:00:00Z", or nothing for an unsigned zone.
std::string signed_text(const zone::Verification& verified) {
  if (!verified.is_signed || !verified.first_end) return {};
  return fmt::format(", signed until {}", time_text(verified.first_end->at));
}

void print_lines(const std::vector<std::string>& lines, std::string_view prefix,
                 std::ostream& out) {
  for (const std::string& line : lines) out << prefix << line << '\n';
}

void print_json(const json& value, std::ostream& out) { out << json_text(value) << '\n'; }

int report(const dns::Name& name, dns::ScanReport scan, const ZoneFacts& facts, Output output) {
  scan.warnings.insert(scan.warnings.end(), facts.doubts.begin(), facts.doubts.end());
  if (output.json) {
    print_json({{"ok", scan.ok()},
                {"zone", dns::to_text(name)},
                {"errors", scan.errors},
                {"warnings", scan.warnings},
                {"serial", facts.serial},
                {"records", facts.records},
                {"names", facts.names},
                {"signed", facts.verified.is_signed},
                {"signatures_end", facts.verified.first_end ? facts.verified.first_end->at : 0}},
               output.out);
  } else {
    print_lines(scan.errors, "", output.err);
    print_lines(scan.warnings, "warning: ", output.err);
    if (scan.ok())
      output.out << fmt::format("{}: ok, serial {}, {} at {}{}\n", dns::to_text(name), facts.serial,
                                counted(facts.records, "record"), counted(facts.names, "name"),
                                signed_text(facts.verified));
  }
  return scan.ok() ? kDone : kFailed;
}

struct ZoneCheck {
  dns::ScanReport scan;
  ZoneFacts facts;
};

/// Reads the file, finishes the zone and collects its facts, or the problems.
ZoneCheck check(const dns::Name& apex, const std::string& path, shm::Store& store,
                const Output& output, SignatureFaults verify) {
  Progress progress;
  const Progress::Scope scope(&progress);
  const ProgressWatch watch(output.err, !output.json && stderr_is_terminal(), progress);
  shm::Transaction transaction = store.begin();
  zone::ZoneBuilder builder(apex, transaction);
  dns::ScanOptions options;
  options.origin = apex;
  ZoneCheck checked{read_zone_file(path, options, builder, progress), {}};
  dns::ScanReport& scan = checked.scan;
  if (!scan.ok()) return checked;  // half a zone would only give consequential errors
  auto built = facts_of(apex, builder, transaction, verify != SignatureFaults::kOff);
  if (built) {
    checked.facts = std::move(*built);
    auto& lines = verify == SignatureFaults::kErrors ? scan.errors : scan.warnings;
    for (std::string& line : lines_of(path, checked.facts.verified))
      lines.push_back(std::move(line));
    return checked;
  }
  scan.errors = lines_about(path, options, built.error(), progress);
  return checked;
}

/// A list of problems that prints the first ones and counts the others.
class Problems {
 public:
  explicit Problems(std::vector<std::string>& lines) : lines_(lines) {}
  ~Problems() {
    if (count_ > kMax) lines_.push_back(fmt::format("{} more of this kind", count_ - kMax));
  }
  Problems(const Problems&) = delete;
  Problems& operator=(const Problems&) = delete;
  void add(std::string line) {
    if (++count_ <= kMax) lines_.push_back(std::move(line));
  }

 private:
  static constexpr std::size_t kMax = 20;
  std::vector<std::string>& lines_;
  std::size_t count_ = 0;
};

/// An address may appear on the host later, so its absence is no error.
void check_addresses(const config::Settings& settings, std::vector<std::string>& warnings) {
  const std::set<std::string> own = own_addresses();
  Problems problems(warnings);
  for (const Endpoint& local : settings.server.listen)
    if (!is_any(local.address) && !own.contains(to_text(local.address.resolved())))
      problems.add(
          fmt::format("server.listen: {} is no address of this host now", to_text(local.address)));
}

template <class Visit>
void for_each_primary_file(const config::Settings& settings, Visit&& visit) {
  const config::ZoneTable& zones = settings.zones;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const config::ZoneRef zone = zones[i];
    // The file of a produced catalog is the manager's, and may not be made yet.
    if (!zone.options->is_secondary() && !zone.file.empty() && !settings.produces(zone.name))
      visit(dns::Name(zone.name), zones.path(i));
  }
}

/// Why the manager's user may not read a zone's file; empty: it may, or the file is not there.
std::string refusal(const dns::Name& zone, const std::string& path, const ipc::ActingUser& manager) {
  if (!manager.acts() || has_right(path, R_OK) || errno != EACCES) return {};
  return fmt::format("zone {}: user {} cannot read {}: {}", dns::to_text(zone), manager.user(),
                     path, std::strerror(EACCES));
}

/// A zone whose file cannot be read is served from the data that the server has, or not at all.
void check_files(const config::Settings& settings, const ipc::ActingUser& manager,
                 config::LoadResult& result) {
  Problems refused(result.errors);
  Problems problems(result.warnings);
  for_each_primary_file(settings, [&](const dns::Name& name, const std::string& path) {
    if (const std::string text = refusal(name, path, manager); !text.empty())
      refused.add(text);
    else if (!has_right(path, R_OK))
      problems.add(fmt::format("zone {}: cannot read {}: {}", dns::to_text(name), path,
                               std::strerror(errno)));
  });
}

/// Root can read what the manager's user cannot: secrets, zone lists, the configuration itself.
void check_as_manager(const std::string& path, const ipc::ActingUser& manager,
                      config::LoadResult& result) {
  if (!manager.acts()) return;
  for (const std::string& error : config::load(path).errors)
    result.errors.push_back(fmt::format("{} (user {})", error, manager.user()));
  const config::StoreSettings& store = result.settings.store;
  const auto image_folder = std::filesystem::path(store.image).parent_path().string();
  for (const auto& [key, folder] :
       {std::pair("store.journal", store.journal), std::pair("store.image", image_folder)})
    if (!folder.empty() && !has_right(folder, W_OK | X_OK) && errno != ENOENT)
      result.errors.push_back(fmt::format("{}: user {} cannot write to {}: {}", key, manager.user(),
                                          folder, std::strerror(errno)));
}

/// The user as whom programs run: the workers', or the manager's where there is no such user.
/// Nullopt: this host knows neither.
std::optional<FileUser> user_of_programs(const config::Server& server) {
  for (const std::string& name : {server.worker_user, server.user}) {
    const auto user = ipc::user_id(name);
    auto groups = ipc::groups_of(name);
    if (user && groups) return FileUser{*user, std::move(*groups)};
  }
  return std::nullopt;
}

/// Without its program a zone gets no new version. A manager without the right to change users may
/// have programs run as itself, so the rights of the workers' user are a warning.
void check_programs(const config::Settings& settings, std::vector<std::string>& errors,
                    std::vector<std::string>& warnings) {
  Problems problems(errors);
  Problems doubts(warnings);
  const auto runner = user_of_programs(settings.server);
  const auto user = ipc::user_id(settings.server.user);
  std::set<std::string> checked;
  for (const config::ZoneOptions& options : settings.zones.options()) {
    if (options.verify_command.empty()) continue;
    const std::string& program = options.verify_command.front();
    if (!checked.insert(program).second) continue;
    if (const auto problem = config::program_problem(program, user ? *user : ::geteuid());
        !problem.empty())
      problems.add(fmt::format("verify-command: {}", problem));
    else if (const std::string doubt = runner ? rights_problem(program, *runner) : std::string();
             !doubt.empty())
      doubts.add(fmt::format("verify-command: {} (user {})", doubt, runner->user));
  }
}

void check_all_zones(const config::Settings& settings, const Output& output,
                     const ipc::ActingUser& manager, std::vector<std::string>& errors) {
  Problems problems(errors);
  for_each_primary_file(settings, [&](const dns::Name& name, const std::string& path) {
    if (const std::string text = refusal(name, path, manager); !text.empty())
      return problems.add(text);
    auto store = scratch_store();
    if (!store) return problems.add(store.error().text);
    const ZoneCheck checked = check(name, path, *store, output, SignatureFaults::kErrors);
    for (const std::string& error : checked.scan.errors)
      problems.add(fmt::format("zone {}: {}", dns::to_text(name), error));
  });
}

}  // namespace

int check_config(const std::string& path, Output output, bool zones) {
  config::LoadResult result = config::load(path);
  const config::ZoneTable& table = result.settings.zones;
  if (result.ok()) {
    check_addresses(result.settings, result.warnings);
    check_programs(result.settings, result.errors, result.warnings);
    const ipc::ActingUser manager(result.settings.server.user);
    check_as_manager(path, manager, result);
    if (zones)
      check_all_zones(result.settings, output, manager, result.errors);
    else
      check_files(result.settings, manager, result);
  }
  if (output.json) {
    print_json({{"ok", result.ok()},
                {"errors", result.errors},
                {"warnings", result.warnings},
                {"zones", table.size()}},
               output.out);
  } else {
    print_lines(result.errors, "", output.err);
    print_lines(result.warnings, "warning: ", output.err);
    if (result.ok()) output.out << fmt::format("{}: ok, {}\n", path, counted(table.size(), "zone"));
  }
  return result.ok() ? kDone : kFailed;
}

int check_zone(const std::string& name, const std::string& path, Output output,
               SignatureFaults verify) {
  const auto apex = dns::Name::from_text(name);
  if (!apex) return refuse(output, apex.error(), kUsage);
  auto store = scratch_store();
  if (!store) return refuse(output, store.error());
  ZoneCheck checked = check(*apex, path, *store, output, verify);
  return report(*apex, std::move(checked.scan), checked.facts, output);
}

}  // namespace pando::ctl
