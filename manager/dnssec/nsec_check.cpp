#include <fmt/format.h>

#include "manager/dnssec/denial_check.h"

namespace pando::manager {

using dns::RRType;
using Node = ChangedZone::Node;
using RRset = ChangedZone::RRset;
using Place = ChangedZone::Place;
using Tree = ChangedZone::Tree;

Fault check_denial(ChangedZone& zone) {
  const Node& apex = zone.at(zone.apex());
  const auto has = [](const ChangedZone::RRsets& rrsets, RRType type) {
    return ChangedZone::find(rrsets, type) != nullptr;
  };
  const bool nsec = has(apex.now, RRType::kNSEC), nsec3 = has(apex.now, RRType::kNSEC3PARAM);
  if (nsec != has(apex.before, RRType::kNSEC) || nsec3 != has(apex.before, RRType::kNSEC3PARAM))
    return "a zone cannot change between NSEC and NSEC3 by update";
  if (nsec == nsec3)
    return nsec ? "the zone has both NSEC and NSEC3" : "the zone has neither NSEC nor NSEC3";
  return nsec ? NsecCheck(zone).run() : Nsec3Check(zone).run();
}

Fault NsecCheck::run() {
  for (const auto& [name, node] : zone_.changed())
    if (node->find(RRType::kNSEC3) != nullptr)
      return fmt::format("{} NSEC3 in a zone with NSEC", to_text(name));
  for (const dns::Name& name : zone_.affected()) {
    if (auto fault = check_name(name)) return fault;
    if (zone_.exhausted()) return std::nullopt;
  }
  return std::nullopt;
}

Fault NsecCheck::check_name(dns::NameView name) {
  const Node& node = zone_.at(name);
  const Place place = zone_.place_now(name);
  const bool needed = place != Place::kOccluded && !ChangedZone::own_types(node.now).empty();
  const RRset* now = node.find(RRType::kNSEC);
  const RRset* before = ChangedZone::find(node.before, RRType::kNSEC);
  if (needed && now == nullptr) return fmt::format("{} has no NSEC", to_text(name));
  if (!needed && now != nullptr)
    return fmt::format("{} NSEC has no place at a name without authoritative data", to_text(name));
  if (now != nullptr) {
    if (auto fault = check_types(node, place)) return fault;
    if (auto fault = check_link(name)) return fault;
  }
  // A name that comes or goes changes the link of the name before.
  if ((now == nullptr) == (before == nullptr) || name == zone_.apex()) return std::nullopt;
  return check_link(previous_in_chain(name));
}

/// RFC 4034 §4.1.2. At delegations only NS, DS and NSEC are listed (RFC 4035 §2.3).
Fault NsecCheck::check_types(const Node& node, Place place) {
  const RRset& set = *node.find(RRType::kNSEC);
  if (set.rdatas.size() != 1) return fmt::format("{} has more than one NSEC", to_text(node.owner));
  const auto nsec = dns::parse_nsec(set.rdatas.front());
  if (!nsec) return fmt::format("{} NSEC is cut short", to_text(node.owner));
  std::vector<RRType> types;
  for (const RRType type : ChangedZone::own_types(node.now))
    if (place != Place::kCut || type == RRType::kNS || type == RRType::kDS) types.push_back(type);
  types.push_back(RRType::kRRSIG);
  types.push_back(RRType::kNSEC);
  std::sort(types.begin(), types.end());
  if (dns::types_in_bitmap(nsec->types) == types) return std::nullopt;
  return fmt::format("{} NSEC lists other types than there are", to_text(node.owner));
}

Fault NsecCheck::check_link(dns::NameView name) {
  const dns::Name next = next_in_chain(name);
  const RRset* set = zone_.at(name).find(RRType::kNSEC);
  const auto nsec = set == nullptr ? std::nullopt : dns::parse_nsec(set->rdatas.front());
  if (zone_.exhausted() || (nsec && nsec->next == next)) return std::nullopt;
  return fmt::format("{} NSEC does not point to {}", to_text(name), to_text(next));
}

bool NsecCheck::in_chain(dns::NameView name) {
  return zone_.at(name).find(RRType::kNSEC) != nullptr && zone_.place_now(name) != Place::kOccluded;
}

dns::Name NsecCheck::next_in_chain(dns::NameView name) {
  const auto next = forward_.find(
      zone_.next(Tree::kNames, name),
      [this](dns::NameView from) { return zone_.next(Tree::kNames, from); },
      [this](dns::NameView at) { return in_chain(at); });
  return next ? *next : dns::Name(zone_.apex());  // the last NSEC points to the apex
}

dns::Name NsecCheck::previous_in_chain(dns::NameView name) {
  const auto previous = backward_.find(
      zone_.previous(Tree::kNames, name),
      [this](dns::NameView from) { return zone_.previous(Tree::kNames, from); },
      [this](dns::NameView at) { return in_chain(at); });
  return previous ? *previous : dns::Name(zone_.apex());
}

}  // namespace pando::manager
