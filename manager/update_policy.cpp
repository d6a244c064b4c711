#include "manager/update_policy.h"

#include <algorithm>

namespace pando::manager {

namespace {

bool concerns(const zone::AclRule& rule, const Requester& requester) noexcept {
  if (rule.address && !rule.address->contains(requester.address)) return false;
  if (rule.key && (requester.key == nullptr || !(*rule.key == *requester.key))) return false;
  return true;
}

bool covers(const zone::AclRule& rule, dns::NameView owner, dns::RRType type) noexcept {
  const bool name = rule.names.empty() ||
                    std::any_of(rule.names.begin(), rule.names.end(),
                                [&](const dns::Name& n) { return matches_pattern(owner, n); });
  return name && (rule.types.empty() ||
                  std::find(rule.types.begin(), rule.types.end(), type) != rule.types.end());
}

}  // namespace

bool may_update_something(const zone::Acl& rules, const Requester& requester) noexcept {
  for (const zone::AclRule& rule : rules) {
    if (!concerns(rule, requester)) continue;
    if (!rule.deny) return true;
    if (rule.names.empty() && rule.types.empty()) return false;  // denies all that is left
  }
  return false;
}

bool may_update(const zone::Acl& rules, const Requester& requester, dns::NameView owner,
                dns::RRType type) noexcept {
  for (const zone::AclRule& rule : rules)
    if (concerns(rule, requester) && covers(rule, owner, type)) return !rule.deny;
  return false;
}

bool matches_pattern(dns::NameView owner, dns::NameView pattern) noexcept {
  if (!pattern.is_wildcard()) return owner == pattern;
  const dns::NameView base = pattern.parent();
  return owner.size() > base.size() && owner.is_at_or_below(base);
}

}  // namespace pando::manager
