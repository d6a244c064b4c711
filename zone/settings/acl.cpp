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

bool concerns(const AclRule& rule, const IpAddress& client, const dns::Name* key) noexcept {
  if (rule.address && !rule.address->contains(client)) return false;
  if (rule.key && (key == nullptr || !(*rule.key == *key))) return false;
  return key != nullptr || !is_about_key(rule);
}

bool could_allow(const Acl& acl, const IpAddress& client, const dns::Name* key) noexcept {
  for (const AclRule& rule : acl) {
    if (!concerns(rule, client, key)) continue;
    if (!rule.deny) return true;
    if (rule.names.empty() && rule.types.empty()) return false;  // denies all remaining requests
  }
  return false;
}

}  // namespace pando::zone
