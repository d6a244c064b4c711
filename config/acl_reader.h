#pragma once

#include "config/field.h"
#include "zone/settings/compiled_settings.h"

namespace pando::config {

/// Keys of one rule; `names` and `types` are for allow-update only.
[[nodiscard]] std::vector<KeyInfo> list_rule_fields();

/// An `allow-…` list: [{key: …, address: …, tls: …, deny: true}, …].
void read_acl(const Value& value, zone::Acl& out);
void read_update_acl(const Value& value, zone::Acl& out);

}  // namespace pando::config
