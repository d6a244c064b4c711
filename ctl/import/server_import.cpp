#include "ctl/import/server_import.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/import/import.h"
#include "config/load.h"
#include "ctl/import/new_files.h"
#include "ctl/view/json_text.h"

namespace pando::ctl {

namespace {

using config::ImportKind;
using config::ImportOutcome;
using nlohmann::json;

constexpr ::mode_t kPublicMode = 0644;
constexpr ::mode_t kSecretMode = 0600;

std::optional<ImportKind> kind_of(std::string_view text) {
  for (const auto kind : {ImportKind::kBind, ImportKind::kNsd, ImportKind::kKnot, ImportKind::kPdns,
                          ImportKind::kPdnsListing, ImportKind::kPdnsDump})
    if (config::to_text(kind) == text) return kind;
  return std::nullopt;
}

/// The configuration comes last, so that it is usable once it is there.
Status write_files(const ImportRequest& request, const ImportOutcome& outcome,
                   const Output& output) {
  const std::filesystem::path to(request.to);
  std::vector<std::string> secrets;
  secrets.reserve(outcome.secrets.size());
  NewFiles files(to.has_parent_path() ? to.parent_path() : ".");
  for (const config::SecretFile& secret : outcome.secrets) {
    if (secret.secret.empty()) continue;
    secrets.push_back(secret.secret + "\n");
    files.add(secret.name, secrets.back(), kSecretMode);
  }
  for (const config::ZoneFileText& file : outcome.key_files)
    files.add(file.name, file.text, kSecretMode);
  for (const config::ZoneFileText& file : outcome.zone_files)
    files.add(file.name, file.text, kPublicMode);
  files.add(to.filename().string(), outcome.yaml, request.with_secrets ? kSecretMode : kPublicMode);
  auto created = files.create();
  const auto& [removed, retained] = files.leftovers();
  if (removed > 0)
    output.err << fmt::format("{}: removed {} of an import that was killed\n", request.to,
                              counted(removed, "file"));
  for (const std::filesystem::path& path : retained)
    output.err << fmt::format("{} stays: it is not as the import that was killed made it\n",
                              path.string());
  return created;
}

/// The loader's own verdict: what it refuses is a fault of the importer.
Status check_result(const ImportOutcome& outcome) {
  const auto loaded = config::load_text(outcome.yaml, "/result",
                                        {.read_zone_lists = false, .read_key_files = false});
  if (loaded.ok()) return {};
  return fail(Errc::kInvalid, "the result does not load, please report this: {}",
              loaded.errors.front());
}

json to_json(const ImportRequest& request, const ImportOutcome& outcome) {
  json omissions = json::array();
  for (const config::Omission& omission : outcome.omissions)
    omissions.push_back({{"file", omission.file},
                         {"line", omission.line},
                         {"statement", omission.statement},
                         {"reason", omission.reason},
                         {"changes_answers", omission.effect == config::ImportEffect::kAnswers}});
  json files = json::array();
  for (const config::SecretFile& secret : outcome.secrets) files.push_back(secret.name);
  json zone_files = json::array();
  for (const config::ZoneFileText& file : outcome.zone_files) zone_files.push_back(file.name);
  json key_files = json::array();
  for (const config::ZoneFileText& file : outcome.key_files) key_files.push_back(file.name);
  json signed_zones = json::array();
  for (const config::KeyImport& key : outcome.key_imports)
    signed_zones.push_back({{"zone", key.zone}, {"policy", key.policy}, {"command", key.command}});
  return {{"from", config::to_text(outcome.kind)},
          {"zones", outcome.zones},
          {"keys", outcome.keys},
          {"remotes", outcome.remotes},
          {"secret_files", files},
          {"zone_files", zone_files},
          {"key_files", key_files},
          {"signed_zones", signed_zones},
          {"omissions", omissions},
          {"configuration", request.to.empty() ? outcome.yaml : std::string()}};
}

/// Omissions that change answers come first, under a line of their own.
void print_report(const ImportOutcome& outcome, const Output& output) {
  const std::size_t changes = outcome.changes();
  for (std::size_t i = 0; i < outcome.omissions.size(); ++i) {
    if (i == 0 && changes > 0) output.err << "Clients get other answers than before:\n";
    if (i == changes) output.err << "Clients get the same answers:\n";
    output.err << config::to_text(outcome.omissions[i]) << '\n';
  }
}

/// Commands for the keys of zones that the other server signs.
void print_key_imports(const ImportRequest& request, const ImportOutcome& outcome,
                       const Output& output) {
  if (outcome.key_imports.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(request.to).parent_path();
  output.err << "Give the running manager the keys of signed zones";
  if (!outcome.key_files.empty())
    output.err << fmt::format(", in the folder {}", folder.empty() ? "." : folder.string());
  output.err << ":\n";
  for (const config::KeyImport& key : outcome.key_imports) output.err << key.command << '\n';
}

int exit_code_of(const ImportOutcome& outcome) {
  return outcome.changes() > 0 ? kOtherAnswers : kDone;
}

}  // namespace

int import_foreign(const ImportRequest& request, Output output) {
  std::error_code none;
  if (request.to.ends_with('/') || std::filesystem::is_directory(request.to, none))
    return refuse(
        output,
        {Errc::kInvalid,
         fmt::format("{} is a folder: --to names the new configuration, such as {}", request.to,
                     (std::filesystem::path(request.to) / "imported.yaml").string())});
  const auto outcome = config::import_configuration(
      request.file, {.kind = kind_of(request.kind), .with_secrets = request.with_secrets});
  if (!outcome) return refuse(output, outcome.error());
  if (auto checked = check_result(*outcome); !checked) return refuse(output, checked.error());
  const bool has_files =
      outcome->kind == ImportKind::kPdnsListing || outcome->kind == ImportKind::kPdnsDump;
  if (has_files && request.to.empty())
    return refuse(output, {Errc::kInvalid,
                           "zones of a listing or dump go beside the configuration: use --to"});
  if (!request.to.empty())
    if (auto written = write_files(request, *outcome, output); !written)
      return refuse(output, written.error());
  if (output.json) {
    output.out << json_text(to_json(request, *outcome)) << '\n';
    return exit_code_of(*outcome);
  }
  print_report(*outcome, output);
  print_key_imports(request, *outcome, output);
  if (request.to.empty())
    output.out << outcome->yaml;
  else
    output.out << fmt::format("{}: {}, {}, {}\n", request.to, counted(outcome->zones, "zone"),
                              counted(outcome->keys, "key"), counted(outcome->remotes, "remote"));
  return exit_code_of(*outcome);
}

}  // namespace pando::ctl
