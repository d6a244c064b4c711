#include "manager/commit/runtime.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

#include "base/secret.h"
#include "manager/io/session_key.h"
#include "zone/settings/acl.h"

namespace pando::manager {

namespace {

bool names_signer(const zone::AclRule& rule) noexcept {
  return std::any_of(rule.names.begin(), rule.names.end(),
                     [](const dns::Name& name) { return zone::is_about_key(name.view()); });
}

/// Folded names of the keys that any allow-update rule names: these keys stay in the manager. A
/// rule about any signing key (see names_signer) means all keys.
std::set<std::string> update_keys(const config::Settings& settings) {
  std::set<std::string> names;
  for (const config::ZoneOptions& options : settings.zones.options()) {
    for (const zone::AclRule& rule : options.allow_update) {
      if (rule.key) names.insert(to_text(rule.key->folded()));
      if (rule.key || !names_signer(rule)) continue;
      for (const config::Key& key : settings.keys) names.insert(to_text(key.name.folded()));
    }
  }
  return names;
}

/// Collects names in the order of their first appearance.
class NamesOnce {
 public:
  void add(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (known_.insert(name).second) names_.push_back(name);
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::unordered_set<std::string_view> known_;  // texts of the options
  std::vector<std::string> names_;
};

ZoneUses uses_of(const config::ZoneTable& zones) {
  ZoneUses uses;
  NamesOnce notified;
  NamesOnce primaries;
  for (const config::ZoneOptions& options : zones.options()) {
    notified.add(options.notify);
    primaries.add(options.primaries);
    uses.has_exports = uses.has_exports || options.export_interval.has_value();
  }
  uses.notified = notified.take();
  uses.primaries = primaries.take();
  return uses;
}

}  // namespace

Result<RuntimePtr> make_runtime(config::Settings settings) {
  const WipeFreed wipe_freed;
  auto runtime = share_secret(Runtime());
  runtime->settings = std::move(settings);
  const std::set<std::string> held = update_keys(runtime->settings);
  for (const config::Key& key : runtime->settings.keys) {
    dns::TsigKey secret{key.name, key.algorithm,
                        key.session_file.empty() ? key.secret : session_secret(key), 0};
    if (auto added = runtime->keys.add(secret); !added)
      return fail(added.error().code, "key {}: {}", to_text(key.name), added.error().text);
    if (held.contains(to_text(key.name.folded())))
      runtime->worker_keys.held.push_back({key.name, key.algorithm});
    else
      runtime->worker_keys.shared.push_back(std::move(secret));
  }
  for (const Bytes& secret : runtime->settings.server.cookies.secrets) {
    ipc::CookieSecret& own = runtime->worker_keys.cookie_secrets.emplace_back();
    PANDO_ASSERT(secret.size() == own.size());  // ensured by the configuration
    std::copy(secret.begin(), secret.end(), own.begin());
  }
  const config::Limits& limits = runtime->settings.limits;
  runtime->limits = {limits.rrset_records,
                     limits.name_types,
                     limits.zone_records,
                     limits.history,
                     limits.history_total.of(runtime->settings.store.size_limit),
                     limits.snapshots};
  const config::ZoneTable& zones = runtime->settings.zones;
  for (std::size_t i = 0; i < zones.size(); ++i)
    if (zones[i].options->is_secondary())
      runtime->secondaries.push_back(static_cast<std::uint32_t>(i));
  runtime->uses = uses_of(zones);
  return RuntimePtr(std::move(runtime));
}

}  // namespace pando::manager
