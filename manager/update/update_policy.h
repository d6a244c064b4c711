#pragma once

#include "base/address.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/settings/acl.h"

namespace pando::manager {

/// The sender of an update as rules see it: the (proxied) client and the verified key, if any.
struct Requester {
  IpAddress address;
  const dns::Name* key = nullptr;
};

/// True if some rule could allow this requester anything (zone::could_allow). Checked before the
/// prerequisites, so that strangers cannot probe a zone with them.
[[nodiscard]] inline bool may_update_something(const zone::Acl& rules,
                                               const Requester& requester) noexcept {
  return zone::could_allow(rules, requester.address, requester.key);
}

/// The first rule with matching address, key, names and types decides; none = false.
[[nodiscard]] bool may_update(const zone::Acl& rules, const Requester& requester,
                              dns::NameView owner, dns::RRType type) noexcept;

/// Matches an owner with a rule's pattern. A label "*" stands for one or more labels, and a last
/// label "self" for the key's name (never matches if `key` is null). Other labels must be equal.
[[nodiscard]] bool matches_pattern(dns::NameView owner, dns::NameView pattern,
                                   const dns::Name* key) noexcept;

}  // namespace pando::manager
