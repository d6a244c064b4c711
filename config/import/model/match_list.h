#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "zone/settings/compiled_settings.h"

/// Address match lists of other servers as rules of ours. Rules are ordered and the first match
/// decides, here as in BIND; but a list of BIND's may have lists in it, which are negated as a
/// whole.
namespace pando::config {

/// A rule, or the place of an element that cannot be expressed here.
struct MatchRule {
  zone::AclRule rule;
  bool unknown = false;
};
/// Rules in reverse: the last one comes first, because lists are built from their ends.
using MatchRules = std::vector<MatchRule>;

/// Bounds what lists in lists can grow to.
inline constexpr std::size_t kMaxMatchRules = 4096;

/// Everybody.
[[nodiscard]] MatchRule match_any();

/// An address or prefix in the forms of BIND, NSD, Knot and PowerDNS: bits after the length are
/// cleared, octets at the end of an IPv4 prefix may be missing ("10/8").
[[nodiscard]] std::optional<IpPrefix> parse_match_prefix(std::string_view text);

/// The network of this length (of 128 bits) that has the address.
[[nodiscard]] IpPrefix network_of(const IpAddress& address, std::uint8_t length);

/// The prefix of an address and a mask such as 255.255.0.0; empty if the mask is of no prefix.
[[nodiscard]] std::optional<IpPrefix> masked_prefix(std::string_view address,
                                                    std::string_view mask);

/// A prefix as an element of a list; empty if the text is none. `::/0` of other servers does not
/// match IPv4, ours does.
[[nodiscard]] MatchRules match_prefix(std::string_view text);

/// Prefixes that cover FIRST to LAST exactly; empty if that is no range.
[[nodiscard]] std::vector<IpPrefix> range_prefixes(std::string_view first, std::string_view last);

/// Puts an element before `tail`: a list that matches by its own rules. A match of the element
/// allows, or denies if `negated`; an element that denies does not match, so `tail` decides.
/// False when the result would be too long; `tail` is unchanged then.
[[nodiscard]] bool put_before(MatchRules& tail, bool negated, const MatchRules& element);

/// The rules without the elements that cannot be expressed. An allowing one is left out; a denying
/// one ends the list, so that nobody gets access whom the other server denied.
[[nodiscard]] zone::Acl finish_rules(const MatchRules& rules);

}  // namespace pando::config
