#include "manager/control/http_settings.h"

#include <algorithm>

#include "config/settings/values.h"
#include "ipc/control_json.h"
#include "ipc/secret_digest.h"

namespace pando::manager {

using nlohmann::json;

namespace {

std::string_view word_of(config::HttpKey::Role role) {
  return std::ranges::find(config::kHttpRoles, role, [](const auto& row) { return row.second; })
      ->first;
}

}  // namespace

ipc::HttpSettingsResult http_settings(const config::Settings& settings) {
  ipc::HttpSettingsResult result;
  if (!settings.http) return result;
  for (const config::HttpKey& key : settings.http->keys) {
    ipc::HttpKeyRow& row = result.keys.emplace_back();
    row.name = key.name;
    row.digest = ipc::secret_digest(key.secret);
    row.role = word_of(key.role);
    for (const dns::Name& zone : key.zones) row.zones.push_back(dns::to_text(zone));
  }
  result.hosts = settings.http->hosts;
  result.template_name = settings.http->template_name;
  for (const config::Remote& remote : settings.remotes) {
    ipc::HttpRemoteRow& row = result.remotes.emplace_back();
    row.name = remote.name;
    for (const Endpoint& at : remote.address) row.addresses.push_back(to_text(at));
  }
  for (const config::Key& key : settings.keys)
    result.tsig_keys.push_back({dns::to_text(key.name), std::string(dns::to_text(key.algorithm))});
  return result;
}

Result<json> HttpSettings::answer(const RuntimePtr& runtime, const ipc::ControlRequest& request) {
  if (!runtime->settings.http)
    return fail(Errc::kNotFound, "the configuration has no section http");
  if (of_.lock() != runtime) {
    ipc::HttpSettingsResult result = http_settings(runtime->settings);
    label_ = ipc::secret_digest(json(result).dump(-1, ' ', false, json::error_handler_t::replace));
    result.label = label_;
    all_ = result;
    of_ = runtime;
  }
  return request.label == label_ ? json{{"label", label_}} : all_;
}

}  // namespace pando::manager
