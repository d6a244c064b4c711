#include "config/acl_reader.h"

#include "config/readers.h"

namespace pando::config {

namespace {

using zone::AclRule;

constexpr Field<AclRule> kRuleFields[] = {
    field<&AclRule::key, read_key_reference>("key"),
    field<&AclRule::address, read_prefix>("address"),
    field<&AclRule::tls, read_tls_reference>("tls"),
    field<&AclRule::deny, read_bool>("deny"),
};
constexpr Field<AclRule> kUpdateRuleFields[] = {
    field<&AclRule::names, read_names>("names"),
    field<&AclRule::types, read_types>("types"),
};

/// A bare address is a rule.
template <class ReadRule>
void read_one(const Value& value, zone::Acl& out, ReadRule read_rule) {
  if (value.node().is_scalar()) return read_prefix(value, out.emplace_back().address);
  if (!value.is_mapping()) return;
  Members members(value);
  AclRule& rule = out.emplace_back();
  const std::size_t errors_before = value.context().problems.error_count();
  read_rule(value, members, rule);
  members.finish();
  // A rule without a condition would match everybody: a hole, not a default.
  const bool is_valid = value.context().problems.error_count() == errors_before;
  if (is_valid && !rule.key && !rule.address && !rule.tls)
    value.fail("a rule needs 'key', 'address' or 'tls'");
}

/// A rule where a list is wanted is the only one of its list.
template <class ReadRule>
void read_rules(const Value& value, zone::Acl& out, ReadRule read_rule) {
  out.clear();
  if (value.node().is_scalar() || value.node().is_mapping()) return read_one(value, out, read_rule);
  value.for_each([&](const Value& element) { read_one(element, out, read_rule); });
}

}  // namespace

std::vector<KeyInfo> list_rule_fields() {
  std::vector<KeyInfo> keys;
  list_fields(kRuleFields, "rule.", keys);
  list_fields(kUpdateRuleFields, "rule.", keys);
  return keys;
}

void read_acl(const Value& value, zone::Acl& out) {
  read_rules(value, out, [](const Value& element, Members& members, AclRule& rule) {
    read_members(element, members, kRuleFields, rule);
  });
}

void read_update_acl(const Value& value, zone::Acl& out) {
  read_rules(value, out, [](const Value& element, Members& members, AclRule& rule) {
    read_members(element, members, kRuleFields, rule);
    read_members(element, members, kUpdateRuleFields, rule);
  });
}

}  // namespace pando::config
