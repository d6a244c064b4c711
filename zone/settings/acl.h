#pragma once

#include "zone/settings/compiled_settings.h"
#include "zone/settings/requester.h"

/// The part of `allow-update` that depends on the client alone, not on the content of its update.
/// Workers and the manager use the same check, so a worker refuses requests itself that the manager
/// would refuse.
namespace pando::zone {

/// Whether an owner pattern of an allow-update rule ends with the label "self", which stands for
/// the name of the signing key.
[[nodiscard]] bool is_about_key(dns::NameView pattern) noexcept;
/// True when only signed requests can match the rule's patterns.
[[nodiscard]] bool is_about_key(const AclRule& rule) noexcept;

/// True when the rule applies to this client. Address, key and TLS identity must all match; a rule
/// for signers alone does not apply to a client that does not sign.
[[nodiscard]] bool concerns(const AclRule& rule, const Requester& client) noexcept;
/// concerns(), whatever key the client signs with.
[[nodiscard]] bool concerns_with_some_key(const AclRule& rule, const Requester& client) noexcept;

/// True when some rule could allow this client an update of some name and type. A rule that denies
/// only some names or types does not end the search. For lists without names and types this equals
/// allowed().
[[nodiscard]] bool could_allow(const Acl& acl, const Requester& client) noexcept;

}  // namespace pando::zone
