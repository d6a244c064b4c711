#include "manager/dnssec/changed_zone.h"

#include <algorithm>
#include <iterator>

#include "dns/rdata/rdata.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Node = ChangedZone::Node;
using RRsets = ChangedZone::RRsets;

bool differs(const Node& node) {
  return !std::equal(node.before.begin(), node.before.end(), node.now.begin(), node.now.end(),
                     [](const auto& a, const auto& b) {
                       return a.first == b.first && a.second.rdatas == b.second.rdatas &&
                              TouchedNames::same_ttl(a.first, a.second, b.second);
                     });
}

/// True for NSEC3 records and their signatures, which the store keeps in the other tree.
bool belongs_to_nsec3(RRType type, ByteView rdata) {
  return type == RRType::kNSEC3 || (type == RRType::kRRSIG && rdata.size() >= 2 &&
                                    dns::rrsig_covered(rdata) == RRType::kNSEC3);
}

bool has_more_than_nsec3(const RRsets& rrsets) {
  return std::any_of(rrsets.begin(), rrsets.end(), [](const auto& entry) {
    return std::any_of(entry.second.rdatas.begin(), entry.second.rdatas.end(),
                       [&](const Bytes& rdata) { return !belongs_to_nsec3(entry.first, rdata); });
  });
}

/// The later of `name` and the last name before `end`.
std::optional<dns::Name> later_of(std::optional<dns::Name> name, const NameSet& names,
                                  NameSet::const_iterator end) {
  if (end == names.begin()) return name;
  const dns::Name& other = *std::prev(end);
  return !name || compare_canonical(*name, other) < 0 ? other : name;
}

}  // namespace

ChangedZone::ChangedZone(const zone::ZoneView& before, TouchedNames& touched, std::size_t looks)
    : before_(before), touched_(touched), looks_(looks) {
  for (const auto& [key, node] : touched.nodes())
    if (differs(node)) changed_.emplace(node.owner, &node);
  for (const auto& [name, node] : changed_)
    for (const Tree tree : {Tree::kNames, Tree::kNsec3})
      if (is_in(tree, node->now) && !(name == apex()))
        present_[tree == Tree::kNsec3 ? 1 : 0].insert(present(tree).end(), name);
  find_affected();
}

bool ChangedZone::look(std::size_t looks) noexcept {
  exhausted_ = exhausted_ || looks > looks_;
  if (!exhausted_) looks_ -= looks;
  return !exhausted_;
}

const Node& ChangedZone::at(dns::NameView name) {
  look();
  return touched_.at(name);
}

const TouchedNames::RRset* ChangedZone::find(const RRsets& rrsets, RRType type) noexcept {
  const auto found = rrsets.find(type);
  return found == rrsets.end() ? nullptr : &found->second;
}

std::vector<RRType> ChangedZone::own_types(const RRsets& rrsets) {
  std::vector<RRType> types;
  for (const auto& [type, rrset] : rrsets)
    if (type != RRType::kNSEC && type != RRType::kNSEC3 && type != RRType::kRRSIG)
      types.push_back(type);
  return types;
}

std::vector<ByteView> ChangedZone::signatures(const RRsets& rrsets, RRType type) {
  std::vector<ByteView> found;
  if (const RRset* all = find(rrsets, RRType::kRRSIG))
    for (const Bytes& rdata : all->rdatas)
      if (rdata.size() >= 2 && dns::rrsig_covered(rdata) == type) found.emplace_back(rdata);
  return found;
}

/// True if names below `name` are not authoritative: an NS set, except the apex's own, or a DNAME
/// (RFC 6672 §2.4).
bool ChangedZone::is_barrier(dns::NameView name, const RRsets& rrsets) const noexcept {
  return rrsets.contains(RRType::kDNAME) || (rrsets.contains(RRType::kNS) && !(name == apex()));
}

void ChangedZone::find_affected() {
  std::optional<dns::Name> walked;  // all names below it are already in affected_
  for (const auto& [name, node] : changed_) {
    if (!has_more_than_nsec3(node->before) && !has_more_than_nsec3(node->now)) continue;
    affected_.insert(name);
    if (is_barrier(name, node->before) == is_barrier(name, node->now)) continue;
    if (walked && name.view().is_at_or_below(*walked)) continue;
    walked = name;
    for (auto below = next(Tree::kNames, name); below && below->view().is_at_or_below(name);
         below = next(Tree::kNames, *below))
      affected_.insert(*below);
  }
}

ChangedZone::Place ChangedZone::place_of(dns::NameView name, RRsets Node::* when) {
  const std::size_t depth = name.label_count() - apex().label_count();
  for (std::size_t labels = 1; labels <= depth; ++labels) {
    const dns::NameView ancestor = name.ancestor(labels);
    if (is_barrier(ancestor, at(ancestor).*when)) return Place::kOccluded;
  }
  return (at(name).*when).contains(RRType::kNS) && depth != 0 ? Place::kCut : Place::kAuthoritative;
}

bool ChangedZone::is_in(Tree tree, const RRsets& rrsets) noexcept {
  return tree == Tree::kNsec3 ? rrsets.contains(RRType::kNSEC3) : has_more_than_nsec3(rrsets);
}

/// The owner of `record`, or else the next owner in `direction` that the update leaves in the tree.
std::optional<dns::Name> ChangedZone::unchanged_from(Tree tree, zone::RecordView record,
                                                     Direction direction) {
  const auto owner_of = [&](zone::RecordView at) {
    return at && look() ? std::optional(before_.owner_of(at)) : std::nullopt;
  };
  const bool forward = direction == Direction::kForward;
  const auto step = [&](dns::NameView from) {
    return owner_of(forward ? before_.record_after(tree, from) : before_.record_before(tree, from));
  };
  const auto stays = [&](const dns::Name& owner) {
    const auto changed = changed_.find(owner);
    return changed == changed_.end() || is_in(tree, changed->second->now);
  };
  Shortcuts& known = unchanged_[(tree == Tree::kNsec3 ? 2U : 0U) + (forward ? 1U : 0U)];
  return known.find(owner_of(record), step, stays);
}

std::optional<dns::Name> ChangedZone::next(Tree tree, dns::NameView name) {
  auto nearest = unchanged_from(tree, before_.record_after(tree, name), Direction::kForward);
  const auto changed = present(tree).upper_bound(name);
  if (changed != present(tree).end() && (!nearest || compare_canonical(*changed, *nearest) < 0))
    nearest = *changed;
  return nearest;
}

std::optional<dns::Name> ChangedZone::previous(Tree tree, dns::NameView name) {
  return later_of(unchanged_from(tree, before_.record_before(tree, name), Direction::kBackward),
                  present(tree), present(tree).lower_bound(name));
}

std::optional<dns::Name> ChangedZone::last(Tree tree) {
  return later_of(unchanged_from(tree, before_.last_record(tree), Direction::kBackward),
                  present(tree), present(tree).end());
}

}  // namespace pando::manager
