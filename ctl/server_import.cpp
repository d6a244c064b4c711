#include "ctl/server_import.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "config/import/import.h"
#include "config/load.h"

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

/// Writes a file that is not there yet.
Status write_new_file(const std::string& path, std::string_view text, ::mode_t mode) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return fail_errno("cannot create " + path);
  while (!text.empty()) {
    const auto bytes = ::write(fd.get(), text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return fail_errno("cannot write " + path);
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return {};
}

/// Writes the zones of a listing or dump. Should a file be there already, no zone is written.
Status write_zone_files(const std::filesystem::path& folder, const ImportOutcome& outcome) {
  for (const config::ZoneFileText& file : outcome.zone_files)
    if (std::error_code none; std::filesystem::exists(folder / file.name, none))
      return fail(Errc::kExists, "cannot create {}: it is there already",
                  (folder / file.name).string());
  for (const config::ZoneFileText& file : outcome.zone_files) {
    const auto path = folder / file.name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error)
      return fail(Errc::kIo, "cannot create {}: {}", path.parent_path().string(), error.message());
    if (auto done = write_new_file(path.string(), file.text, kPublicMode); !done) return done;
  }
  return {};
}

/// Writes the secrets and zones first, so that the configuration is usable once it is there.
Status write_files(const ImportRequest& request, const ImportOutcome& outcome) {
  const auto folder = std::filesystem::path(request.to).parent_path();
  for (const config::SecretFile& secret : outcome.secrets) {
    const std::string path = (folder / secret.name).string();
    if (secret.secret.empty()) continue;
    if (auto done = write_new_file(path, secret.secret + "\n", kSecretMode); !done) return done;
  }
  if (auto done = write_zone_files(folder, outcome); !done) return done;
  return write_new_file(request.to, outcome.yaml, request.with_secrets ? kSecretMode : kPublicMode);
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
                         {"reason", omission.reason}});
  json files = json::array();
  for (const config::SecretFile& secret : outcome.secrets) files.push_back(secret.name);
  json zone_files = json::array();
  for (const config::ZoneFileText& file : outcome.zone_files) zone_files.push_back(file.name);
  return {{"from", config::to_text(outcome.kind)},
          {"zones", outcome.zones},
          {"keys", outcome.keys},
          {"remotes", outcome.remotes},
          {"secret_files", files},
          {"zone_files", zone_files},
          {"omissions", omissions},
          {"configuration", request.to.empty() ? outcome.yaml : std::string()}};
}

int refuse(const Error& error, const Output& output) {
  print_error(output, error.text);
  return kFailed;
}

}  // namespace

int import_foreign(const ImportRequest& request, Output output) {
  const auto outcome = config::import_configuration(
      request.file, {.kind = kind_of(request.kind), .with_secrets = request.with_secrets});
  if (!outcome) return refuse(outcome.error(), output);
  if (auto checked = check_result(*outcome); !checked) return refuse(checked.error(), output);
  const bool has_files =
      outcome->kind == ImportKind::kPdnsListing || outcome->kind == ImportKind::kPdnsDump;
  if (has_files && request.to.empty())
    return refuse(
        {Errc::kInvalid, "zones of a listing or dump go beside the configuration: use --to"},
        output);
  if (!request.to.empty())
    if (auto written = write_files(request, *outcome); !written)
      return refuse(written.error(), output);
  if (output.json) {
    output.out << to_json(request, *outcome).dump(-1, ' ', false, json::error_handler_t::replace)
               << '\n';
    return kDone;
  }
  for (const config::Omission& omission : outcome->omissions)
    output.err << config::to_text(omission) << '\n';
  if (request.to.empty())
    output.out << outcome->yaml;
  else
    output.out << fmt::format("{}: {}, {}, {}\n", request.to, counted(outcome->zones, "zone"),
                              counted(outcome->keys, "key"), counted(outcome->remotes, "remote"));
  return kDone;
}

}  // namespace pando::ctl
