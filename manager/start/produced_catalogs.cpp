#include "manager/start/produced_catalogs.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "base/content_hash.h"
#include "config/files.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/io/store_file.h"

namespace pando::manager {

namespace {

/// RFC 9432 §4.1: no server looks names up in the zone, so its SOA and NS are those of no host. The
/// serial is the zone's own: a file never moves it back.
constexpr std::string_view kApex =
    "@ 0 SOA invalid. invalid. 1 3600 600 2147483646 0\n"
    "@ 0 NS invalid.\n"
    "version 0 TXT \"2\"\n";

/// A label that no other zone has (RFC 9432 §4.4.1): 128 bits of hash.
std::string label_of(dns::NameView zone) {
  const std::string key = dns::folded_key(zone);
  std::string label;
  for (const char part : {'a', 'b'}) {
    ContentHash hash;
    hash.add(&part, 1);
    hash.add(key.data(), key.size());
    label += fmt::format("{:016x}", hash.value());
  }
  return label;
}

std::string character_string(std::string_view text) {
  std::string result = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\') result += '\\';
    result += one;
  }
  return result + '"';
}

void append_member(const config::ZoneRef& zone, std::string& text) {
  const std::string label = label_of(zone.name);
  fmt::format_to(std::back_inserter(text), "{}.zones 0 PTR {}\n", label, dns::to_text(zone.name));
  if (!zone.options->catalog_group.empty())
    fmt::format_to(std::back_inserter(text), "group.{}.zones 0 TXT {}\n", label,
                   character_string(zone.options->catalog_group));
}

Status write_catalog(const config::Settings& settings, const config::Catalog& catalog,
                     std::string_view text) {
  return write_text_atomically(
      native_files(), config::produced_catalog_path(settings.store.journal, catalog.zone), text);
}

}  // namespace

std::string catalog_text(const config::Catalog& catalog, const config::ZoneTable& zones) {
  std::string text = fmt::format("$ORIGIN {}\n{}", dns::to_text(catalog.zone), kApex);
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const config::ZoneRef zone = zones[i];
    if (zone.options->catalog == catalog.zone) append_member(zone, text);
  }
  return text;
}

void make_missing_catalogs(const config::Settings& settings) {
  for (const config::Catalog& catalog : settings.catalogs) {
    if (!catalog.produces()) continue;
    std::error_code error;
    if (std::filesystem::exists(
            config::produced_catalog_path(settings.store.journal, catalog.zone), error))
      continue;
    const std::string text = catalog_text(catalog, settings.zones);
    if (auto written = write_catalog(settings, catalog, text); !written)
      log::warning("catalog_not_produced", "reason", written.error().text);
  }
}

WrittenCatalogs write_catalogs(const config::Settings& settings) {
  WrittenCatalogs result;
  for (const config::Catalog& catalog : settings.catalogs) {
    if (!catalog.produces()) continue;
    const std::string text = catalog_text(catalog, settings.zones);
    const auto there = config::read_regular_file(
        config::produced_catalog_path(settings.store.journal, catalog.zone));
    if (there && *there == text) continue;
    if (auto written = write_catalog(settings, catalog, text); written)
      result.changed.push_back(catalog.zone);
    else if (result.status)
      result.status = std::move(written);
  }
  return result;
}

}  // namespace pando::manager
