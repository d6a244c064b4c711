#include "config/import/import.h"

#include <algorithm>
#include <filesystem>

#include "base/secret.h"
#include "config/import/knot_import.h"
#include "config/import/named/named_import.h"
#include "config/import/nsd_import.h"
#include "config/import/pdns/pdns_database.h"
#include "config/import/pdns/pdns_import.h"

namespace pando::config {

namespace {

/// Words of file names, of which the first one of each kind is its name.
constexpr std::pair<std::string_view, ImportKind> kImportKinds[] = {
    {"bind", ImportKind::kBind},
    {"named", ImportKind::kBind},
    {"nsd", ImportKind::kNsd},
    {"knot", ImportKind::kKnot},
    {"pdnsutil", ImportKind::kPdnsListing},
    {"pdns-dump", ImportKind::kPdnsDump},
    {"pdns", ImportKind::kPdns},
};

Status import_as(ImportKind kind, const ImportText& text, ImportFiles& files,
                 ImportedConfiguration& out, ImportReport& report, ImportOutcome& outcome) {
  switch (kind) {
    case ImportKind::kBind:
      return NamedImport(files, out, report).run(text);
    case ImportKind::kNsd:
      return NsdImport(files, out, report).run(text);
    case ImportKind::kKnot:
      return KnotImport(files, out, report).run(text);
    case ImportKind::kPdns:
      return PdnsImport(files, out, report).run(text);
    case ImportKind::kPdnsListing: {
      PdnsListing listing(out, report);
      listing.run(text);
      outcome.zone_files = listing.take_files();
      return {};
    }
    case ImportKind::kPdnsDump: {
      PdnsDatabase database(out, report);
      auto done = database.run(text);
      outcome.zone_files = database.take_files();
      outcome.key_files = database.take_key_files();
      return done;
    }
  }
  return {};
}

void report_secrets(const ImportedConfiguration& imported, const std::vector<SecretFile>& files,
                    ImportReport& report) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ImportedKey& key = imported.keys()[i];
    if (files[i].name.empty()) continue;  // the manager makes it
    report.note(key.at, fmt::format("key {}", dns::to_text(key.name)),
                fmt::format("its secret belongs into the file {}", files[i].name));
  }
}

Result<ImportOutcome> import_input(const ImportText& text, ImportFiles& files,
                                   const ImportOptions& options) {
  const auto kind = options.kind ? options.kind : guess_import_kind(*text.name, text.text);
  if (!kind)
    return fail(Errc::kInvalid,
                "{}: cannot tell whose this is: use --from bind, --from nsd, --from knot, --from "
                "pdns, --from pdnsutil, or --from pdns-dump for a dump of PowerDNS's database",
                *text.name);
  ImportedConfiguration imported;
  ImportReport report;
  ImportOutcome outcome;
  if (auto done = import_as(*kind, text, files, imported, report, outcome); !done)
    return pass(done);
  outcome.kind = *kind;
  const std::string name = std::filesystem::path(*text.name).filename().string();
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
  outcome.yaml = write_yaml(imported,
                            fmt::format("Made by pandoctl import --from {} {}", to_text(*kind),
                                        printable ? name : "FILE"),
                            options.with_secrets);
  if (!options.with_secrets) {
    outcome.secrets = secret_files(imported);
    report_secrets(imported, outcome.secrets, report);
    std::erase_if(outcome.secrets, [](const SecretFile& file) { return file.name.empty(); });
  }
  for (const ImportedZone& zone : imported.zones())
    if (!zone.key_import.empty())
      outcome.key_imports.push_back(
          {dns::to_text(zone.name), zone.options.dnssec, zone.key_import});
  outcome.omissions = report.omissions();
  outcome.zones = imported.zones().size();
  outcome.keys = imported.keys().size();
  outcome.remotes = imported.remotes().size();
  return outcome;
}

}  // namespace

std::size_t ImportOutcome::changes() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count(omissions, ImportEffect::kAnswers, &Omission::effect));
}

std::string_view to_text(ImportKind kind) noexcept {
  return std::ranges::find(kImportKinds, kind, &std::pair<std::string_view, ImportKind>::second)
      ->first;
}

std::optional<ImportKind> guess_import_kind(std::string_view path, std::string_view text) {
  if (text.starts_with(PdnsListing::kHeader) || text.find("\n$ORIGIN .\n") != text.npos ||
      text.find("\n$ORIGIN .\r\n") != text.npos)
    return ImportKind::kPdnsListing;
  if (SqlDump::is_dump(text)) return ImportKind::kPdnsDump;
  const std::string name = lower_case(path.substr(path.find_last_of('/') + 1));
  if (name.ends_with(".sql")) return ImportKind::kPdnsDump;
  for (const auto& [word, kind] : kImportKinds)
    if (name.find(word) != std::string::npos) return kind;
  const auto has = [text](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  if (has("{") && has(";")) return ImportKind::kBind;
  if (has("domain:") || has("listen:") || has("- id:")) return ImportKind::kKnot;
  if (has("server:") || has("zone:") || has("pattern:")) return ImportKind::kNsd;
  if (has("launch=") || has("local-address=")) return ImportKind::kPdns;
  return std::nullopt;
}

Result<ImportOutcome> import_configuration(const std::string& path, const ImportOptions& options) {
  const WipeFreed wipe_freed;  // the texts have secrets, and parsers copy them
  ImportFiles files(options.with_includes);
  auto text = files.read(path);
  if (!text) return pass(text);
  return import_input(*text, files, options);
}

Result<ImportOutcome> import_text(std::string text, const std::string& path,
                                  const ImportOptions& options) {
  const WipeFreed wipe_freed;
  ImportFiles files(options.with_includes);
  auto input = files.text_of(path, std::move(text));
  if (!input) return pass(input);
  return import_input(*input, files, options);
}

}  // namespace pando::config
