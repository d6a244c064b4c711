#include "http/live_settings.h"

#include <algorithm>

#include "config/settings/values.h"
#include "ipc/log.h"

namespace pando::http {

namespace {

Result<KnownKey> known_key(const ipc::HttpKeyRow& row) {
  const auto* const role =
      std::ranges::find(config::kHttpRoles, row.role, [](const auto& one) { return one.first; });
  if (role == std::end(config::kHttpRoles))
    return fail(Errc::kInvalid, "key {}: unknown role {}", row.name, row.role);
  KnownKey known{row.digest, {row.name, "", role->second, {}}};
  for (const std::string& zone : row.zones) {
    auto name = dns::Name::from_text(zone);
    if (!name) return pass(name);
    known.key.zones.push_back(*name);
  }
  return known;
}

Result<config::Remote> known_remote(const ipc::HttpRemoteRow& row) {
  config::Remote remote{row.name, {}, {}, {}};
  for (const std::string& address : row.addresses) {
    auto at = Endpoint::from_text(address);
    if (!at) return pass(at);
    remote.address.push_back(*at);
  }
  return remote;
}

}  // namespace

Result<ServedSettings> served_settings(const ipc::HttpSettingsResult& settings) {
  std::vector<KnownKey> keys;
  for (const ipc::HttpKeyRow& row : settings.keys) {
    auto key = known_key(row);
    if (!key) return pass(key);
    keys.push_back(std::move(*key));
  }
  ApiRoutes::Known known;
  for (const ipc::HttpRemoteRow& row : settings.remotes) {
    auto remote = known_remote(row);
    if (!remote) return pass(remote);
    known.remotes.push_back(std::move(*remote));
  }
  for (const ipc::HttpTsigKeyRow& row : settings.tsig_keys)
    known.keys.push_back({row.name, row.algorithm});
  known.zone_template = settings.template_name;
  return ServedSettings{Access(std::move(keys), settings.hosts), std::move(known)};
}

LiveSettings::LiveSettings(ServedSettings at_start, bool needs_keys, Ask ask)
    : needs_keys_(needs_keys), ask_(std::move(ask)) {
  set(std::move(at_start));
}

std::shared_ptr<const ServedSettings> LiveSettings::now() {
  const auto called = Clock::now();
  {
    const std::scoped_lock lock(asking_);
    // Requests that waited for one answer share the next one.
    if (asked_at_ <= called && ask_again_at_ <= called) refresh();
  }
  return last();
}

std::shared_ptr<const ServedSettings> LiveSettings::last() const {
  const std::scoped_lock lock(reading_);
  return settings_;
}

void LiveSettings::refresh() {
  asked_at_ = Clock::now();
  const auto answer = ask_(label_);
  const auto answered = Clock::now();
  if (!answer && answered - asked_at_ >= kSlow) ask_again_at_ = answered + kPause;
  if (!answer || answer->label == label_) return;
  auto settings = served_settings(*answer);
  label_ = answer->label;  // also of settings that cannot be used: the next ones may be better
  if (!settings) return log::warning("http_settings_unusable", "reason", settings.error().text);
  log::info("http_settings_changed", "keys", answer->keys.size());
  set(std::move(*settings));
}

void LiveSettings::set(ServedSettings settings) {
  if (needs_keys_) settings.access.close();
  auto next = std::make_shared<const ServedSettings>(std::move(settings));
  const std::scoped_lock lock(reading_);
  settings_ = std::move(next);
}

}  // namespace pando::http
