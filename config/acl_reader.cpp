#include "config/acl_reader.h"

#include "config/readers.h"

namespace pando::config {

namespace {

using zone::AclRule;

constexpr Field<AclRule> kRuleFields[] = {
    field<&AclRule::key, read_key_reference>("key"),
    field<&AclRule::address, read_prefix>("address"),
    field<&AclRule::deny, read_bool>("deny"),
};
constexpr Field<AclRule> kUpdateRuleFields[] = {
    field<&AclRule::names, read_names>("names"),
    field<&AclRule::types, read_types>("types"),
};

template <class ReadRule>
void read_rules(const Value& value, zone::Acl& out, ReadRule read_rule) {
  out.clear();
  value.for_each([&](const Value& element) {
    if (element.node().is_scalar()) return read_prefix(element, out.emplace_back().address);
    if (!element.is_mapping()) return;
    Members members(element);
    AclRule& rule = out.emplace_back();
    const std::size_t errors_before = element.context().problems.error_count();
    read_rule(element, members, rule);
    members.finish();
    // A rule without a condition would match everybody: a hole, not a default.
    if (!rule.key && !rule.address && element.context().problems.error_count() == errors_before)
      element.fail("a rule needs 'key', 'address' or both");
  });
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
