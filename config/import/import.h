#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/import/model/import_files.h"
#include "config/import/model/import_yaml.h"
#include "config/import/pdns/pdns_listing.h"

/// Configurations of BIND, NSD, Knot and PowerDNS as one of ours, and zones that PowerDNS lists or
/// has in a database.
namespace pando::config {

enum class ImportKind : std::uint8_t { kBind, kNsd, kKnot, kPdns, kPdnsListing, kPdnsDump };

/// "bind", "nsd", "knot", "pdns", "pdnsutil" or "pdns-dump".
[[nodiscard]] std::string_view to_text(ImportKind kind) noexcept;

/// The kind by the file's name, else by the look of its text.
[[nodiscard]] std::optional<ImportKind> guess_import_kind(std::string_view path,
                                                          std::string_view text);

struct ImportOptions {
  std::optional<ImportKind> kind;  ///< absent: guessed
  bool with_secrets = false;       ///< secrets stand in the YAML, else in files of their own
  bool with_includes = true;       ///< false: included files are reported
};

/// A zone that the other server signs, and what gives the manager its keys.
struct KeyImport {
  std::string zone;
  std::string policy;
  std::string command;  ///< for a shell; `key_files` are relative to the configuration's folder
};

struct ImportOutcome {
  ImportKind kind = ImportKind::kBind;
  std::string yaml;  ///< passes load(), once the secrets' files are there
  std::vector<Omission> omissions;       ///< changes of answers come first
  std::vector<SecretFile> secrets;       ///< that `yaml` names as files
  std::vector<ZoneFileText> zone_files;  ///< the same, of a listing or dump
  std::vector<ZoneFileText> key_files;   ///< of signed zones of a dump, with private keys
  std::vector<KeyImport> key_imports;    ///< for each signed zone
  std::size_t zones = 0;
  std::size_t keys = 0;
  std::size_t remotes = 0;
  /// Omissions that change answers; they come first.
  [[nodiscard]] std::size_t changes() const noexcept;
};

/// Imports the file. Errors (`file:line: reason`) are faults of the syntax, files that cannot be
/// read, and kinds that cannot be guessed. Statements that are not taken over are no errors.
Result<ImportOutcome> import_configuration(const std::string& path, const ImportOptions& options);

/// Imports a text in memory; `path` is its name for messages and relative includes.
Result<ImportOutcome> import_text(std::string text, const std::string& path,
                                  const ImportOptions& options);

}  // namespace pando::config
