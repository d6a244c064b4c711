#include "manager/update/update_policy.h"

#include <algorithm>

namespace pando::manager {

namespace {

bool covers(const zone::AclRule& rule, const Requester& requester, dns::NameView owner,
            dns::RRType type) noexcept {
  const bool name = rule.names.empty() ||
                    std::any_of(rule.names.begin(), rule.names.end(), [&](const dns::Name& n) {
                      return matches_pattern(owner, n, requester.key);
                    });
  return name && (rule.types.empty() ||
                  std::find(rule.types.begin(), rule.types.end(), type) != rule.types.end());
}

bool same_first_label(dns::NameView a, dns::NameView b) noexcept {
  const std::size_t octets = 1U + a.data()[0];
  return a.data()[0] == b.data()[0] &&
         std::equal(a.data(), a.data() + octets, b.data(), [](std::uint8_t x, std::uint8_t y) {
           const auto fold = [](std::uint8_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
           return fold(x) == fold(y);
         });
}

/// Matches the first `owner_labels` of `owner` against the first `pattern_labels` of `pattern`. A
/// "*" takes one label, or more if the rest of the pattern needs that. Only the last "*" has to be
/// retried.
bool matches_first_labels(dns::NameView owner, std::size_t owner_labels, dns::NameView pattern,
                          std::size_t pattern_labels) noexcept {
  std::size_t at = 0, in_pattern = 0;
  std::size_t star_end = 0, behind_star = 0;  // 0: no "*" yet
  while (at < owner_labels) {
    if (in_pattern < pattern_labels && pattern.ancestor(in_pattern).is_wildcard()) {
      star_end = ++at;
      behind_star = ++in_pattern;
    } else if (in_pattern < pattern_labels &&
               same_first_label(owner.ancestor(at), pattern.ancestor(in_pattern))) {
      ++at;
      ++in_pattern;
    } else if (behind_star != 0) {
      at = ++star_end;
      in_pattern = behind_star;
    } else {
      return false;
    }
  }
  return in_pattern == pattern_labels && at == owner_labels;
}

}  // namespace

bool may_update(const zone::Acl& rules, const Requester& requester, dns::NameView owner,
                dns::RRType type) noexcept {
  for (const zone::AclRule& rule : rules)
    if (zone::concerns(rule, requester) && covers(rule, requester, owner, type))
      return !rule.deny;
  return false;
}

bool matches_pattern(dns::NameView owner, dns::NameView pattern, const dns::Name* key) noexcept {
  if (!zone::is_about_key(pattern))
    return matches_first_labels(owner, owner.label_count(), pattern, pattern.label_count());
  if (key == nullptr || !owner.is_at_or_below(*key)) return false;
  const std::size_t fixed = pattern.label_count() - 1;
  const std::size_t above = owner.label_count() - key->view().label_count();
  return matches_first_labels(owner, above, pattern, fixed);
}

}  // namespace pando::manager
