#include "manager/start/created_zones.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ipc/log.h"
#include "manager/io/store_file.h"

namespace pando::manager {

namespace {

using nlohmann::json;

/// Of clients that may add zones not all may read the manager's files. The directive is searched
/// for in the whole text: a place where it would be harmless is not worth a parser.
bool may_include(std::string_view content) {
  constexpr std::string_view kDirective = "$include";
  const auto equal = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  return std::search(content.begin(), content.end(), kDirective.begin(), kDirective.end(), equal) !=
         content.end();
}

}  // namespace

Result<std::optional<CreatedZone>> take_content(std::string& zone, const std::string& journal) {
  // Most zones have none, and ten thousand of them would take 10 ms to parse.
  if (zone.find("\"content\"") == std::string::npos) return std::optional<CreatedZone>();
  json object = json::parse(zone, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("content")) return std::optional<CreatedZone>();
  const std::string written = object.value("name", json()).is_string() ? object["name"] : "";
  const auto name = dns::Name::from_text(written);
  if (!name) return fail(name.error().code, "zone '{}': {}", written, name.error().text);
  const auto refuse = [&](std::string_view reason) {
    return fail(Errc::kInvalid, "zone {}: {}", to_text(*name), reason);
  };
  if (!object["content"].is_string()) return refuse("'content' is no text");
  for (const char* other : {"file", "primaries"})
    if (object.contains(other)) return refuse(fmt::format("it has 'content' and '{}'", other));
  std::string content = object["content"];
  if (may_include(content)) return refuse("'content' has $INCLUDE");
  auto path = config::created_zone_path(journal, *name);
  if (!path) return pass(path);
  object.erase("content");
  object["file"] = *path;
  zone = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return std::optional(CreatedZone{*name, std::move(content)});
}

Result<std::vector<dns::Name>> write_created_zones(std::span<const CreatedZone> zones,
                                                   const config::Settings& settings) {
  std::vector<dns::Name> written;
  for (const CreatedZone& zone : zones) {
    if (settings.zones.find(zone.zone)) continue;
    auto path = config::created_zone_path(settings.store.journal, zone.zone);
    auto done = path ? write_text_atomically(native_files(), *path, zone.content)
                     : Status(pass(path));
    if (done) {
      written.push_back(zone.zone);
      continue;
    }
    for (const dns::Name& name : written) remove_created_zone(settings.store.journal, name);
    return pass(done);
  }
  return written;
}

bool remove_created_zone(const std::string& journal, dns::NameView zone) {
  const auto path = config::created_zone_path(journal, zone);
  if (!path) return false;
  std::error_code error;
  const bool removed = std::filesystem::remove(*path, error);
  if (error) log::warning("zone_file_not_removed", "path", *path, "reason", error.message());
  return removed;
}

}  // namespace pando::manager
