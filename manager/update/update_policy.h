#pragma once

#include "base/address.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/settings/acl.h"

namespace pando::manager {

/// Who sends an update, as rules see it: the (proxied) client and the verified key, if any.
struct Requester {
  IpAddress address;
  const dns::Name* key = nullptr;
};

/// True when some rule could allow this requester something (zone::could_allow): asked before
/// prerequisites are looked at, so that strangers cannot probe a zone with them.
[[nodiscard]] inline bool may_update_something(const zone::Acl& rules,
                                               const Requester& requester) noexcept {
  return zone::could_allow(rules, requester.address, requester.key);
}

/// First rule whose address, key, names and types all match decides; none = false.
[[nodiscard]] bool may_update(const zone::Acl& rules, const Requester& requester,
                              dns::NameView owner, dns::RRType type) noexcept;

/// Owner patterns of rules: a label "*" stands for one or more labels, a last label "self" for the
/// name of the key (null: no such pattern matches); all else is equality.
[[nodiscard]] bool matches_pattern(dns::NameView owner, dns::NameView pattern,
                                   const dns::Name* key) noexcept;

}  // namespace pando::manager
