#include "zone/settings/acl.h"

#include <algorithm>

namespace pando::zone {

bool is_about_key(dns::NameView pattern) noexcept {
  constexpr std::uint8_t kSelf[] = {4, 's', 'e', 'l', 'f', 0};
  const std::size_t labels = pattern.label_count();
  return labels > 0 && pattern.ancestor(labels - 1) == dns::NameView(kSelf, sizeof kSelf);
}

bool is_about_key(const AclRule& rule) noexcept {
  return !rule.names.empty() &&
         std::all_of(rule.names.begin(), rule.names.end(),
                     [](const dns::Name& name) { return is_about_key(name.view()); });
}

bool concerns_with_some_key(const AclRule& rule, const Requester& client) noexcept {
  if (rule.address && !rule.address->contains(client.address)) return false;
  return !rule.tls || (client.peer != nullptr && client.peer->is(*rule.tls));
}

bool concerns(const AclRule& rule, const Requester& client) noexcept {
  if (!concerns_with_some_key(rule, client)) return false;
  if (rule.key && (client.key == nullptr || !(*rule.key == *client.key))) return false;
  return client.key != nullptr || !is_about_key(rule);
}

bool could_allow(const Acl& acl, const Requester& client) noexcept {
  for (const AclRule& rule : acl) {
    if (!concerns(rule, client)) continue;
    if (!rule.deny) return true;
    if (rule.names.empty() && rule.types.empty()) return false;  // denies all remaining requests
  }
  return false;
}

}  // namespace pando::zone
