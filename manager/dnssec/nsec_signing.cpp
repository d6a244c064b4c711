#include "manager/dnssec/nsec_signing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dns/dnssec/denial_fields.h"

namespace pando::manager {

using dns::RRType;
using Node = TouchedNames::Node;
using RRset = TouchedNames::RRset;
using Place = ChangedZone::Place;
using Tree = ChangedZone::Tree;

Status NsecSigning::run(const NameSet& names) {
  for (const dns::Name& name : names)
    if (auto done = sign_name(name); !done) return done;
  for (const dns::Name& name : before_changed_)
    if (!names.contains(name))
      if (auto done = sign_name(name); !done) return done;
  return {};
}

Status NsecSigning::sign_name(const dns::Name& name) {
  Node& node = touched_.at(name);
  const bool is_linked = in_chain(name);
  if (!is_linked)
    ChangedSets::remove(node, RRType::kNSEC);
  else if (auto done = sets_.replace(node, RRType::kNSEC, nsec_of(name)); !done)
    return done;
  const bool was_linked = node.before.contains(RRType::kNSEC);
  if (was_linked != is_linked && !(name == zone_.apex()))
    before_changed_.insert(previous_in_chain(name));
  return {};
}

RRset NsecSigning::nsec_of(dns::NameView name) {
  std::vector<RRType> types{RRType::kRRSIG, RRType::kNSEC};
  const bool is_cut = zone_.place_now(name) == Place::kCut;
  for (const RRType type : ChangedZone::own_types(zone_.at(name).now))
    if (!is_cut || type == RRType::kDS || type == RRType::kNS) types.push_back(type);
  std::ranges::sort(types);
  const dns::Name next = next_in_chain(name).folded();
  Bytes rdata(next.view().bytes().begin(), next.view().bytes().end());
  dns::append_type_bitmap(types, rdata);
  RRset set;
  set.ttl = ttl_;
  set.rdatas.push_back(std::move(rdata));
  return set;
}

/// Whether the name is to have an NSEC record: it has data of this zone, or is a delegation.
bool NsecSigning::in_chain(dns::NameView name) {
  return !ChangedZone::own_types(zone_.at(name).now).empty() &&
         zone_.place_now(name) != Place::kOccluded;
}

dns::Name NsecSigning::next_in_chain(dns::NameView name) {
  const auto next = forward_.find(
      zone_.next(Tree::kNames, name),
      [this](dns::NameView from) { return zone_.next(Tree::kNames, from); },
      [this](dns::NameView at) { return in_chain(at); });
  return next ? *next : dns::Name(zone_.apex());
}

dns::Name NsecSigning::previous_in_chain(dns::NameView name) {
  const auto previous = backward_.find(
      zone_.previous(Tree::kNames, name),
      [this](dns::NameView from) { return zone_.previous(Tree::kNames, from); },
      [this](dns::NameView at) { return in_chain(at); });
  return previous ? *previous : dns::Name(zone_.apex());
}

}  // namespace pando::manager
