#pragma once

#include "config/field.h"
#include "zone/settings.h"

namespace pando::config {

/// Keys of one rule; `names` and `types` are for allow-update only.
[[nodiscard]] std::vector<KeyInfo> list_rule_fields();

/// An `allow-…` list: [{key: …, address: …, deny: true}, …].
void read_acl(const Value& value, zone::Acl& out);
void read_update_acl(const Value& value, zone::Acl& out);

/// An owner pattern of an allow-update rule that ends with the label "self", which stands for the
/// name of the key that signs.
[[nodiscard]] bool is_about_key(dns::NameView pattern) noexcept;
/// True when only signed requests can meet what the rule's patterns ask for.
[[nodiscard]] bool is_about_key(const zone::AclRule& rule) noexcept;

}  // namespace pando::config
