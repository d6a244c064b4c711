#include "config/import/model/match_list.h"

#include <algorithm>

#include "base/whole_number.h"

namespace pando::config {

namespace {

constexpr std::uint8_t kAddressBits = 128;
constexpr std::uint8_t kMappedBits = 96;  // IPv4 is mapped into IPv6 (base/address.h)

__extension__ using AddressNumber = unsigned __int128;

AddressNumber number_of(const IpAddress& address) {
  AddressNumber value = 0;
  for (const auto octet : address.octets) value = value << 8 | octet;
  return value;
}

IpAddress address_of(AddressNumber value) {
  IpAddress address;
  for (auto octet = address.octets.rbegin(); octet != address.octets.rend(); ++octet) {
    *octet = static_cast<std::uint8_t>(value & 0xFF);
    value >>= 8;
  }
  return address;
}

AddressNumber host_mask(std::uint8_t length) {
  return length == 0 ? ~AddressNumber{0} : (AddressNumber{1} << (kAddressBits - length)) - 1;
}

/// "10" and "192.168" with the octets that are missing.
std::string complete_ipv4(std::string_view text) {
  std::string full(text);
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return full;
  if (full.back() == '.') full.pop_back();
  for (auto dots = std::count(full.begin(), full.end(), '.'); dots < 3; ++dots) full += ".0";
  return full;
}

/// The narrower prefix of two that contain each other.
std::optional<IpPrefix> common(const IpPrefix& a, const IpPrefix& b) {
  const IpPrefix& wide = a.length <= b.length ? a : b;
  const IpPrefix& narrow = a.length <= b.length ? b : a;
  if (!wide.contains(narrow.address)) return std::nullopt;
  return narrow;
}

/// A rule that matches where both match, with the effect of `second`.
std::optional<MatchRule> both(const MatchRule& first, const MatchRule& second) {
  MatchRule result = second;
  result.unknown = first.unknown || second.unknown;
  if (first.rule.key && second.rule.key && *first.rule.key != *second.rule.key) return std::nullopt;
  if (first.rule.key) result.rule.key = first.rule.key;
  if (!first.rule.address) return result;
  if (!second.rule.address) {
    result.rule.address = first.rule.address;
    return result;
  }
  result.rule.address = common(*first.rule.address, *second.rule.address);
  if (!result.rule.address) return std::nullopt;
  return result;
}

}  // namespace

MatchRule match_any() {
  MatchRule any;
  any.rule.address = IpPrefix{address_of(0), 0};
  return any;
}

std::optional<IpPrefix> parse_match_prefix(std::string_view text) {
  const auto slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  const bool is_whole = slash == std::string_view::npos;
  const auto address = IpAddress::from_text(is_whole ? std::string(host) : complete_ipv4(host));
  if (!address) return std::nullopt;
  if (is_whole) return network_of(*address, kAddressBits);
  const std::uint8_t before = host.find(':') == std::string_view::npos ? kMappedBits : 0;
  const auto length = whole_number<std::uint8_t>(text.substr(slash + 1));
  if (!length || *length > kAddressBits - before) return std::nullopt;
  return network_of(*address, static_cast<std::uint8_t>(*length + before));
}

IpPrefix network_of(const IpAddress& address, std::uint8_t length) {
  return IpPrefix{address_of(number_of(address) & ~host_mask(length)), length};
}

std::optional<IpPrefix> masked_prefix(std::string_view address, std::string_view mask) {
  const auto at = IpAddress::from_text(address);
  const auto bits = IpAddress::from_text(mask);
  if (!at || !bits || at->is_v4() != bits->is_v4()) return std::nullopt;
  AddressNumber hosts = ~number_of(*bits);
  if (bits->is_v4()) hosts &= host_mask(kMappedBits);
  std::uint8_t length = kAddressBits;
  for (AddressNumber rest = hosts; (rest & 1) != 0; rest >>= 1) --length;
  if (hosts != host_mask(length)) return std::nullopt;
  return IpPrefix{address_of(number_of(*at) & ~hosts), length};
}

std::vector<IpPrefix> range_prefixes(std::string_view first, std::string_view last) {
  const auto from = IpAddress::from_text(first);
  const auto to = IpAddress::from_text(last);
  if (!from || !to) return {};
  AddressNumber at = number_of(*from);
  const AddressNumber end = number_of(*to);
  std::vector<IpPrefix> prefixes;
  while (at <= end) {
    std::uint8_t length = kAddressBits;
    // At most 254 steps: each prefix is the largest that begins here and fits.
    while (length > 0) {
      const AddressNumber hosts = host_mask(static_cast<std::uint8_t>(length - 1));
      if ((at & hosts) != 0 || end - at < hosts) break;
      --length;
    }
    prefixes.push_back({address_of(at), length});
    const AddressNumber hosts = host_mask(length);
    if (end - at <= hosts) break;
    at += hosts + 1;
  }
  return prefixes;
}

MatchRules match_prefix(std::string_view text) {
  const auto prefix = parse_match_prefix(text);
  if (!prefix) return {};
  MatchRules rules(1);
  rules.front().rule.address = *prefix;
  const IpPrefix ipv4 = IpPrefix::from_text("0.0.0.0/0").value();
  if (prefix->length >= kMappedBits || !prefix->contains(ipv4.address)) return rules;
  rules.emplace_back().rule = {.deny = true, .address = ipv4, .key = {}, .names = {}, .types = {}};
  return rules;
}

bool put_before(MatchRules& tail, bool negated, const MatchRules& element) {
  MatchRules added;
  for (auto match = element.rbegin(); match != element.rend(); ++match) {
    if (match->rule.deny)  // the element does not match: what follows decides
      for (auto next = tail.rbegin(); next != tail.rend(); ++next) {
        if (added.size() + tail.size() >= kMaxMatchRules) return false;
        if (auto rule = both(*match, *next)) added.push_back(std::move(*rule));
      }
    added.push_back(*match);
    added.back().rule.deny = match->rule.deny || negated;
    if (added.size() + tail.size() > kMaxMatchRules) return false;
  }
  tail.insert(tail.end(), std::make_move_iterator(added.rbegin()),
              std::make_move_iterator(added.rend()));
  return true;
}

zone::Acl finish_rules(const MatchRules& rules) {
  zone::Acl acl;
  for (auto match = rules.rbegin(); match != rules.rend(); ++match) {
    const zone::AclRule& rule = match->rule;
    if (match->unknown && rule.deny) break;
    if (match->unknown) continue;
    acl.push_back(rule);
    const bool everybody = rule.address && rule.address->length == 0 && !rule.key &&
                           rule.names.empty() && rule.types.empty();
    if (everybody) break;  // no later rule is reached
  }
  while (!acl.empty() && acl.back().deny) acl.pop_back();  // the end of a list denies as well
  return acl;
}

}  // namespace pando::config
