#pragma once

#include "zone/settings/compiled_settings.h"

/// What `allow-update` says of a client, whatever its update may be. Workers and the manager ask
/// the same, so that a worker keeps away what the manager would refuse.
namespace pando::zone {

/// An owner pattern of an allow-update rule that ends with the label "self", which stands for the
/// name of the key that signs.
[[nodiscard]] bool is_about_key(dns::NameView pattern) noexcept;
/// True when only signed requests can meet what the rule's patterns ask for.
[[nodiscard]] bool is_about_key(const AclRule& rule) noexcept;

/// True when the rule speaks of this client, which signs with `key` (null: it does not sign): by
/// address and key, and not of signers alone when it is none.
[[nodiscard]] bool concerns(const AclRule& rule, const IpAddress& client,
                            const dns::Name* key) noexcept;

/// True when some rule could allow this client something, of whatever name and type. One that only
/// denies some names or types is not the end. Of lists whose rules have neither this is allowed().
[[nodiscard]] bool could_allow(const Acl& acl, const IpAddress& client,
                               const dns::Name* key) noexcept;

}  // namespace pando::zone
