#include "manager/runtime.h"

#include <algorithm>
#include <set>

namespace pando::manager {

namespace {

/// Folded names of the keys that any allow-update rule names: these stay in the manager.
std::set<std::string> update_keys(const config::ZoneTable& zones) {
  std::set<std::string> names;
  for (const config::ZoneOptions& options : zones.options())
    for (const zone::AclRule& rule : options.allow_update)
      if (rule.key) names.insert(to_text(rule.key->folded()));
  return names;
}

}  // namespace

Result<RuntimePtr> make_runtime(config::Settings settings) {
  auto runtime = std::make_shared<Runtime>();
  runtime->settings = std::move(settings);
  const std::set<std::string> held = update_keys(runtime->settings.zones);
  for (const config::Key& key : runtime->settings.keys) {
    dns::TsigKey secret{key.name, key.algorithm, key.secret, 0};
    if (auto added = runtime->keys.add(secret); !added)
      return fail(added.error().code, "key {}: {}", to_text(key.name), added.error().text);
    if (held.contains(to_text(key.name.folded())))
      runtime->worker_keys.held.push_back({key.name, key.algorithm});
    else
      runtime->worker_keys.shared.push_back(std::move(secret));
  }
  for (const Bytes& secret : runtime->settings.server.cookies.secrets) {
    ipc::CookieSecret& own = runtime->worker_keys.cookie_secrets.emplace_back();
    PANDO_ASSERT(secret.size() == own.size());  // the configuration has no others
    std::copy(secret.begin(), secret.end(), own.begin());
  }
  const config::Limits& limits = runtime->settings.limits;
  runtime->limits = {limits.rrset_records, limits.name_types, limits.zone_records, limits.history,
                     limits.history_total.of(runtime->settings.store.size_limit)};
  return RuntimePtr(std::move(runtime));
}

}  // namespace pando::manager
