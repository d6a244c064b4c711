#include "ctl/commands/zone_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_depth.h"
#include "config/files.h"
#include "ctl/view/json_text.h"
#include "dns/name.h"
#include "dns/text.h"

namespace pando::ctl {

using ipc::ControlRequest;
using nlohmann::json;

namespace {

/// Room for the request around its zones.
constexpr std::size_t kMaxBytes = ipc::kMaxRequestBytes - 4096;
/// Bytes that standard input is read by.
constexpr std::size_t kInputStep = std::size_t{1} << 16;

/// Levels of a JSON array of zones: the array, a zone, and a value of eight levels, which is the
/// most that the manager takes. Deeper values would make json_text() recurse as deep as they are.
constexpr int kMaxLevels = 10;

/// Discarded: no JSON, or nested deeper than kMaxLevels.
json parse_shallow(const std::string& text) {
  if (!is_json_shallow(text, kMaxLevels)) return json(json::value_t::discarded);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// A value of a setting: JSON where the text is JSON, or else the text itself. No setting is a text
/// that begins as a list or an object does.
Result<json> value_of(const std::string& text) {
  json value = parse_shallow(text);
  if (!value.is_discarded()) return value;
  if (text.starts_with('[') || text.starts_with('{'))
    return fail(Errc::kInvalid,
                "{} is no JSON, or nested too deep; texts in it need quotes, as in '[\"ns2\"]'",
                dns::quote_for_message(text));
  return json(text);
}

Result<std::string> read_content(const std::string& path) {
  auto content = config::read_regular_file(path);
  if (!content) return pass(content);
  if (content->size() > kMaxBytes / 2)  // JSON may need two octets for one
    return fail(Errc::kInvalid, "{}: more than {} bytes: put it where the manager can read it",
                path, kMaxBytes / 2);
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (!std::all_of(content->begin(), content->end(), is_ascii))
    return fail(Errc::kInvalid, "{}: write octets that are not ASCII as \\DDD", path);
  return content;
}

Result<json> object_of(const NewZone& zone) {
  auto name = dns::Name::from_text(zone.name);
  if (!name) return fail(name.error().code, "zone '{}': {}", zone.name, name.error().text);
  json object{{"name", dns::to_text(*name)}};
  if (!zone.file.empty()) object["file"] = zone.file;
  if (!zone.content.empty()) {
    auto content = read_content(zone.content);
    if (!content) return pass(content);
    object["content"] = std::move(*content);
  }
  if (!zone.template_name.empty()) object["template"] = zone.template_name;
  if (!zone.primaries.empty()) object["primaries"] = zone.primaries;
  for (const std::string& setting : zone.settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(Errc::kInvalid, "'{}' is not KEY=VALUE", setting);
    auto value = value_of(setting.substr(equals + 1));
    if (!value) return pass(value);
    object[setting.substr(0, equals)] = std::move(*value);
  }
  return object;
}

Result<std::string> read_all(std::istream& input) {
  std::string text;
  while (input && text.size() <= ZoneCommands::kMaxInput) {
    const std::size_t size = text.size();
    text.resize(size + kInputStep);
    input.read(text.data() + size, static_cast<std::streamsize>(kInputStep));
    text.resize(size + static_cast<std::size_t>(input.gcount()));
  }
  if (text.size() > ZoneCommands::kMaxInput)
    return fail(Errc::kFull, "standard input has more than {} bytes", ZoneCommands::kMaxInput);
  return text;
}

void add_to(ipc::ReloadResult& sum, const ipc::ReloadResult& one) {
  sum.zones_added += one.zones_added;
  sum.zones_removed += one.zones_removed;
  sum.zones_kept += one.zones_kept;
  sum.zones_changed += one.zones_changed;
  sum.zones_failed += one.zones_failed;
  sum.zones_being_judged += one.zones_being_judged;
  sum.problems.insert(sum.problems.end(), one.problems.begin(), one.problems.end());
}

void print_sum(const ipc::ReloadResult& sum, std::ostream& out, std::ostream& err) {
  if (sum.zones_added > 0) out << counted(sum.zones_added, "zone") << " added\n";
  if (sum.zones_removed > 0) out << counted(sum.zones_removed, "zone") << " removed\n";
  if (sum.zones_changed > 0) out << counted(sum.zones_changed, "zone") << " configured\n";
  if (sum.zones_kept > 0)
    out << fmt::format("{} removed with updates, which are kept: see pandoctl zone list\n",
                       counted(sum.zones_kept, "zone"));
  if (sum.zones_being_judged > 0) out << judged_text(sum.zones_being_judged);
  for (const std::string& problem : sum.problems) err << "error: " << problem << '\n';
  if (sum.zones_failed > sum.problems.size())
    err << fmt::format("error: {} in all could not be loaded\n", counted(sum.zones_failed, "zone"));
}

}  // namespace

Status ZoneCommands::send(const ControlRequest& request) {
  auto done = session_.get<ipc::ReloadResult>(request);
  if (!done) return pass(done);
  add_to(sum_, *done);
  return {};
}

/// Also reports the zones that were added before an error.
int ZoneCommands::finish(const Status& status) {
  const Output& output = session_.output();
  const bool any = sum_.zones_added + sum_.zones_removed + sum_.zones_changed > 0;
  if (output.json && (any || status)) output.out << json_text(json(sum_)) << '\n';
  if (!output.json) print_sum(sum_, output.out, output.err);
  if (!status) return session_.fail(status.error());
  return sum_.zones_failed > 0 ? kFailed : kDone;
}

int ZoneCommands::add(const NewZone& zone) {
  auto object = object_of(zone);
  if (!object) return session_.fail(object.error());
  ControlRequest request{.verb = std::string(ipc::verb::kZoneAdd)};
  request.zones.push_back(json_text(*object));
  return finish(send(request));
}

int ZoneCommands::add_from(std::istream& input) {
  const auto text = read_all(input);
  if (!text) return session_.fail(text.error());
  const json zones = parse_shallow(*text);
  if (!zones.is_array() || zones.empty())
    return session_.fail({Errc::kInvalid, "standard input is no JSON array of zones"});
  ControlRequest request{.verb = std::string(ipc::verb::kZoneAdd)};
  std::size_t bytes = 0;
  for (const json& zone : zones) {
    std::string one = json_text(zone);
    if (one.size() > kMaxBytes)
      return finish(
          fail(Errc::kInvalid, "a zone of {} bytes: {}...", one.size(), one.substr(0, 100)));
    if (!request.zones.empty() && bytes + one.size() > kMaxBytes) {
      if (auto sent = send(request); !sent) return finish(sent);
      request.zones.clear();
      bytes = 0;
    }
    bytes += one.size() + 1;
    request.zones.push_back(std::move(one));
  }
  return finish(send(request));
}

int ZoneCommands::remove(const std::vector<std::string>& zones) {
  ControlRequest request{.verb = std::string(ipc::verb::kZoneRemove)};
  request.names = zones;
  return finish(send(request));
}

int ZoneCommands::reload(const std::vector<std::string>& zones) {
  ControlRequest request{.verb = std::string(ipc::verb::kZoneReload)};
  request.names = zones;
  const Status sent = send(request);
  if (!sent) return finish(sent);
  if (!session_.output().json)
    session_.output().out << fmt::format("{} read again, {} changed\n",
                                         counted(zones.size(), "zone file"),
                                         std::exchange(sum_.zones_changed, 0));
  return finish(sent);
}

int ZoneCommands::configure(const std::string& zone, const std::string& key,
                            const std::optional<std::string>& value) {
  ControlRequest request{.verb = std::string(ipc::verb::kZoneConfigure)};
  request.name = zone;
  request.key = key;
  if (!value) return finish(send(request));
  auto read = value_of(*value);
  if (!read) return finish(pass(read));
  request.value = json_text(*read);
  return finish(send(request));
}

}  // namespace pando::ctl
