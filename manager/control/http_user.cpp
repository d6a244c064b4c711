#include "manager/control/http_user.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace pando::manager {

namespace {

using nlohmann::json;
namespace verb = ipc::verb;

/// Commands about records and copies of single zones: those of `name` and `names`.
constexpr std::array kEditing{verb::kZoneBegin,  verb::kZoneSet,    verb::kZoneUnset,
                              verb::kZoneCommit, verb::kZoneAbort,  verb::kZoneNotify,
                              verb::kZoneRefresh, verb::kZoneRetransfer};
/// Commands that make zones come and go.
constexpr std::array kAdministering{verb::kZoneAdd, verb::kZoneRemove, verb::kZonePurge};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& verbs, std::string_view verb) {
  return std::ranges::find(verbs, verb) != verbs.end();
}

/// The zone as the user may add it; its name is appended to `names`.
Result<std::string> restricted(const std::string& zone, const std::string& template_name,
                               std::vector<std::string>& names) {
  const json wanted = json::parse(zone, nullptr, /*allow_exceptions=*/false);
  json object = json::object();
  for (const char* key : {"name", "content", "primaries"})
    if (wanted.is_object() && wanted.contains(key)) object[key] = wanted[key];
  if (!object.contains("name") || !object["name"].is_string())
    return fail(Errc::kInvalid, "a zone to add is an object with a 'name'");
  // Which keys sign it, and how, is the configuration's choice.
  if (wanted.value("dnssec", json()) == config::kDefaultDnssecPolicy)
    object["dnssec"] = config::kDefaultDnssecPolicy;
  names.push_back(object["name"]);
  if (!template_name.empty()) object["template"] = template_name;
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

Status restrict_http_user(const config::Http& http, ipc::ControlRequest& request) {
  // Of a zone that was added it chooses other primaries, as it chose the first ones.
  const bool sets_primaries = request.verb == verb::kZoneConfigure &&
                              request.key == "primaries" && !request.value.empty();
  const bool signs = request.verb == verb::kZoneConfigure && request.key == "dnssec" &&
                     json::parse(request.value, nullptr, /*allow_exceptions=*/false) ==
                         config::kDefaultDnssecPolicy;
  const bool administers = sets_primaries || signs || contains(kAdministering, request.verb);
  if (!administers && !contains(kEditing, request.verb))
    return fail(Errc::kDenied, "this user may only read and edit (http.user)");
  std::vector<std::string> names = request.names;
  if (!request.name.empty()) names.push_back(request.name);
  for (std::string& zone : request.zones) {
    auto allowed = restricted(zone, http.template_name, names);
    if (!allowed) return pass(allowed);
    zone = std::move(*allowed);
  }
  for (const std::string& text : names) {
    auto zone = dns::Name::from_text(text);
    if (!zone) return pass(zone);
    if (administers ? !http.administers(*zone) : !http.writes(*zone))
      return fail(Errc::kDenied, "no key of http.keys may {} {}",
                  administers ? "add or remove" : "change", to_text(*zone));
  }
  return {};
}

}  // namespace pando::manager
