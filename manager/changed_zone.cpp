#include "manager/changed_zone.h"

#include <algorithm>
#include <iterator>

#include "dns/rdata.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Node = ChangedZone::Node;
using RRsets = ChangedZone::RRsets;

bool differs(const Node& node) {
  return !std::equal(node.before.begin(), node.before.end(), node.now.begin(), node.now.end(),
                     [](const auto& a, const auto& b) {
                       return a.first == b.first && a.second.rdatas == b.second.rdatas &&
                              ZoneOverlay::same_ttl(a.first, a.second, b.second);
                     });
}

/// Signatures of NSEC3 records stand beside them, in the other tree.
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

}  // namespace

ChangedZone::ChangedZone(const zone::ZoneView& before, ZoneOverlay& overlay, std::size_t looks)
    : before_(before), overlay_(overlay), looks_(looks) {
  for (const auto& [key, node] : overlay.nodes())
    if (differs(node)) changed_.emplace(node.owner, &node);
  find_affected();
}

bool ChangedZone::look(std::size_t looks) noexcept {
  exhausted_ = exhausted_ || looks > looks_;
  if (!exhausted_) looks_ -= looks;
  return !exhausted_;
}

const Node& ChangedZone::at(dns::NameView name) {
  look();
  return overlay_.at(name);
}

const ZoneOverlay::RRset* ChangedZone::find(const RRsets& rrsets, RRType type) noexcept {
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

/// What stands between names below it and authoritative data: NS, but for the apex's own, or a
/// DNAME (RFC 6672 §2.4).
bool ChangedZone::is_barrier(dns::NameView name, const RRsets& rrsets) const noexcept {
  return rrsets.contains(RRType::kDNAME) || (rrsets.contains(RRType::kNS) && !(name == apex()));
}

void ChangedZone::find_affected() {
  for (const auto& [name, node] : changed_) {
    if (!has_more_than_nsec3(node->before) && !has_more_than_nsec3(node->now)) continue;
    affected_.insert(name);
    if (is_barrier(name, node->before) == is_barrier(name, node->now)) continue;
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

/// The owner of `record`, or of the next one in that direction that the update leaves there.
std::optional<dns::Name> ChangedZone::unchanged_from(Tree tree, zone::RecordView record,
                                                     bool forward) {
  while (record && look()) {
    const dns::Name owner = before_.owner_of(record);
    const auto changed = changed_.find(owner);
    if (changed == changed_.end() || is_in(tree, changed->second->now)) return owner;
    record = forward ? before_.record_after(tree, owner) : before_.record_before(tree, owner);
  }
  return std::nullopt;
}

std::optional<dns::Name> ChangedZone::next(Tree tree, dns::NameView name) {
  auto nearest = unchanged_from(tree, before_.record_after(tree, name), true);
  auto changed = changed_.upper_bound(name);
  while (changed != changed_.end() && !is_in(tree, changed->second->now) && look()) ++changed;
  if (changed != changed_.end() && !exhausted_ &&
      (!nearest || compare_canonical(changed->first, *nearest) < 0))
    nearest = changed->first;
  return nearest;
}

std::optional<dns::Name> ChangedZone::previous(Tree tree, dns::NameView name) {
  auto nearest = unchanged_from(tree, before_.record_before(tree, name), false);
  auto changed = std::make_reverse_iterator(changed_.lower_bound(name));
  while (changed != changed_.rend() && !is_in(tree, changed->second->now) && look()) ++changed;
  if (changed != changed_.rend() && !exhausted_ && !(changed->first == apex()) &&
      (!nearest || compare_canonical(*nearest, changed->first) < 0))
    nearest = changed->first;
  return nearest;
}

std::optional<dns::Name> ChangedZone::last(Tree tree) {
  auto nearest = unchanged_from(tree, before_.last_record(tree), false);
  auto changed = changed_.rbegin();
  while (changed != changed_.rend() && !is_in(tree, changed->second->now) && look()) ++changed;
  if (changed != changed_.rend() && !exhausted_ && !(changed->first == apex()) &&
      (!nearest || compare_canonical(*nearest, changed->first) < 0))
    nearest = changed->first;
  return nearest;
}

}  // namespace pando::manager
