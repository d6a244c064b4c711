#pragma once

#include "base/address.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/settings/acl.h"

namespace pando::manager {

using zone::Requester;

/// True if some rule could allow this requester anything (zone::could_allow). Checked before the
/// prerequisites, so that strangers cannot probe a zone with them.
[[nodiscard]] inline bool may_update_something(const zone::Acl& rules,
                                               const Requester& requester) noexcept {
  return zone::could_allow(rules, requester);
}

/// The first rule with matching address, key, identity, names and types decides; none = false.
[[nodiscard]] bool may_update(const zone::Acl& rules, const Requester& requester,
                              dns::NameView owner, dns::RRType type) noexcept;

/// Matches an owner with a rule's pattern. A label "*" stands for one or more labels, and a last
/// label "self" for the key's name (never matches if `key` is null). Other labels must be equal.
[[nodiscard]] bool matches_pattern(dns::NameView owner, dns::NameView pattern,
                                   const dns::Name* key) noexcept;

}  // namespace pando::manager
