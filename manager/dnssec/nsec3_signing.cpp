#include "manager/dnssec/nsec3_signing.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "dns/dnssec/denial_fields.h"
#include "dns/encoding.h"

namespace pando::manager {

using dns::RRType;
using Node = TouchedNames::Node;
using RRset = TouchedNames::RRset;
using Place = ChangedZone::Place;
using Tree = ChangedZone::Tree;

namespace {

dns::Nsec3Hash hash_in(const dns::Name& owner) {
  const ByteView wire = owner.view().bytes();
  const std::string_view label(reinterpret_cast<const char*>(wire.data() + 1), wire[0]);
  Bytes octets;
  dns::Nsec3Hash hash{};
  if (dns::append_base32hex_decoded(label, octets) && octets.size() == hash.size())
    std::ranges::copy(octets, hash.begin());
  return hash;
}

/// Adds `from` and the names above it, up to the apex, which is left out.
void add_upwards(NameSet& names, dns::NameView from, dns::NameView apex) {
  for (dns::NameView name = from; !(name == apex); name = name.parent())
    if (!names.insert(dns::Name(name)).second) return;  // so those above it are there, too
}

}  // namespace

Result<bool> Nsec3Signing::run(const NameSet& names) {
  for (const dns::Name& name : names)
    if (auto taken = take_name(name); !taken) return pass(taken);
  for (const dns::Name& name : maybe_empty_)
    if (!linked_.contains(name))
      if (auto taken = take_empty(name, names); !taken) return pass(taken);
  if (names_read_ > max_names_) return false;
  if (auto put = put_records(names); !put) return pass(put);
  return true;
}

// Names -----------------------------------------------------------------------------------------

Status Nsec3Signing::take_name(const dns::Name& name) {
  const dns::NameView apex = zone_.apex();
  const auto types = types_in_chain(name);
  if (!(name == apex)) add_upwards(maybe_empty_, types ? name.view().parent() : name.view(), apex);
  if (!types) {
    if (was_linked(owner_of(name))) add_upwards(above_unlinked_, name, apex);
    return {};
  }
  linked_.insert(name);
  if (!(name == apex)) add_upwards(above_linked_, name.view().parent(), apex);
  return link(name, *types);
}

/// Takes a name that is no link by data of its own: perhaps it is an empty non-terminal.
Status Nsec3Signing::take_empty(const dns::Name& name, const NameSet& names) {
  const bool has_data = !ChangedZone::own_types(zone_.at(name).now).empty();
  if (has_data && !names.contains(name)) return {};  // it is as it was
  const bool is_needed = !has_data && zone_.place_now(name) != Place::kOccluded &&
                         (above_linked_.contains(name) || keeps_record(name, names));
  if (is_needed) return link(name, {});
  unlink(name);
  return {};
}

/// The types of a name with data (RFC 5155 §7.1), in order; nullopt: it has no record of its own.
/// RRSIG is among them if a set is signed, which is at a delegation DS alone.
std::optional<std::vector<RRType>> Nsec3Signing::types_in_chain(const dns::Name& name) {
  std::vector<RRType> types = ChangedZone::own_types(zone_.at(name).now);
  const Place place = zone_.place_now(name);
  if (types.empty() || place == Place::kOccluded) return std::nullopt;
  if (place == Place::kCut) {
    std::erase_if(types, [](RRType type) { return type != RRType::kNS && type != RRType::kDS; });
    const bool has_ds = types.size() == 2;
    if (!has_ds && denial_.is_opt_out) return std::nullopt;
    if (!has_ds) return types;
  }
  types.push_back(RRType::kRRSIG);
  std::ranges::sort(types);
  return types;
}

Status Nsec3Signing::link(const dns::Name& name, const std::vector<RRType>& types) {
  const dns::Name owner = owner_of(name);
  Bytes bitmap;
  dns::append_type_bitmap(types, bitmap);
  const bool was_there = was_linked(owner);
  if (!records_.try_emplace(owner, std::move(bitmap)).second || (was_there && had_no_record(name)))
    return fail(Errc::kInvalid, "{} has the same NSEC3 hash as another name", to_text(name));
  if (!was_there) come_.insert(owner);
  return {};
}

/// A record that cannot have been the name's is another name's.
void Nsec3Signing::unlink(const dns::Name& name) {
  const dns::Name owner = owner_of(name);
  if (was_linked(owner) && !had_no_record(name)) gone_.insert(owner);
}

/// Whether an empty non-terminal that is above no changed name with a record keeps its own: it has
/// one, and a name below needs it.
bool Nsec3Signing::keeps_record(const dns::Name& name, const NameSet& names) {
  if (!was_linked(owner_of(name))) return false;
  if (!above_unlinked_.contains(name)) return true;
  for (auto below = zone_.next(Tree::kNames, name); below && below->view().is_at_or_below(name);
       below = zone_.next(Tree::kNames, *below)) {
    if (++names_read_ > max_names_) return true;  // another thread does all of it again
    if (names.contains(*below) ? linked_.contains(*below) : was_linked(owner_of(*below)))
      return true;
  }
  return false;
}

/// Whether the name had certainly no record before: it was not there, or not authoritative.
bool Nsec3Signing::had_no_record(const dns::Name& name) {
  const zone::Match match = zone_.before().lookup(name);
  return match.barrier || (!match.exact && !match.empty_non_terminal);
}

dns::Name Nsec3Signing::owner_of(dns::NameView name) {
  dns::Nsec3Hash hash{};
  // The zone was signed with these parameters, so they are within the hasher's limits.
  static_cast<void>(hasher_.hash(name, denial_.iterations, denial_.salt, hash));
  return zone::nsec3_owner(hash, zone_.apex());
}

bool Nsec3Signing::was_linked(dns::NameView owner) const {
  return static_cast<bool>(zone_.before().nsec3_record_at(owner));
}

// Records ---------------------------------------------------------------------------------------

Status Nsec3Signing::put_records(const NameSet& names) {
  NameSet others;  // records of other names that get another next hash, or another signature
  for (const NameSet* owners : {&come_, &gone_})
    for (const dns::Name& owner : *owners) others.insert(previous_in_chain(owner));
  for (const dns::Name& name : names)
    if (was_linked(name)) others.insert(name);
  for (const auto& [owner, type_bitmap] : records_)
    if (auto done = put(owner, type_bitmap); !done) return done;
  for (const dns::Name& owner : others)
    if (!records_.contains(owner) && !gone_.contains(owner))
      if (auto done = put_same_types(owner); !done) return done;
  for (const dns::Name& owner : gone_) ChangedSets::remove(touched_.at(owner), RRType::kNSEC3);
  return {};
}

Status Nsec3Signing::put(const dns::Name& owner, ByteView type_bitmap) {
  RRset set;
  set.ttl = ttl_;
  set.rdatas.push_back(zone::nsec3_rdata(denial_, hash_in(next_in_chain(owner)), type_bitmap));
  return sets_.replace(touched_.at(owner), RRType::kNSEC3, std::move(set));
}

Status Nsec3Signing::put_same_types(const dns::Name& owner) {
  const RRset* set = zone_.at(owner).find(RRType::kNSEC3);
  const auto fields = set == nullptr ? std::nullopt : dns::parse_nsec3(set->rdatas.front());
  if (!fields) return fail(Errc::kCorrupt, "{} has no NSEC3", to_text(owner));
  const Bytes type_bitmap(fields->types.begin(), fields->types.end());
  return put(owner, type_bitmap);
}

dns::Name Nsec3Signing::next_in_chain(const dns::Name& owner) {
  const auto nearer_of = [this](std::optional<dns::Name> staying, NameSet::const_iterator come) {
    if (come != come_.end() && (!staying || compare_canonical(*come, *staying) < 0))
      staying = *come;
    return staying;
  };
  const zone::ZoneView& before = zone_.before();
  auto next =
      nearer_of(first_staying(before.record_after(Tree::kNsec3, owner)), come_.upper_bound(owner));
  if (!next)  // the last record points to the first
    next = nearer_of(first_staying(before.record_after(Tree::kNsec3, zone_.apex())), come_.begin());
  return next ? *next : owner;
}

dns::Name Nsec3Signing::previous_in_chain(const dns::Name& owner) {
  const auto nearer_of = [this](std::optional<dns::Name> staying, NameSet::const_iterator end) {
    if (end != come_.begin() && (!staying || compare_canonical(*std::prev(end), *staying) > 0))
      staying = *std::prev(end);
    return staying;
  };
  const zone::ZoneView& before = zone_.before();
  auto previous =
      nearer_of(last_staying(before.record_before(Tree::kNsec3, owner)), come_.lower_bound(owner));
  if (!previous) previous = nearer_of(last_staying(before.last_record(Tree::kNsec3)), come_.end());
  return previous ? *previous : owner;
}

std::optional<dns::Name> Nsec3Signing::first_staying(zone::RecordView from) {
  const zone::ZoneView& before = zone_.before();
  const auto owner = [&](zone::RecordView record) {
    return record ? std::optional(before.owner_of(record)) : std::nullopt;
  };
  return forward_.find(
      owner(from), [&](dns::NameView at) { return owner(before.record_after(Tree::kNsec3, at)); },
      [this](dns::NameView at) { return !gone_.contains(at); });
}

std::optional<dns::Name> Nsec3Signing::last_staying(zone::RecordView from) {
  const zone::ZoneView& before = zone_.before();
  const auto owner = [&](zone::RecordView record) {
    return record ? std::optional(before.owner_of(record)) : std::nullopt;
  };
  return backward_.find(
      owner(from), [&](dns::NameView at) { return owner(before.record_before(Tree::kNsec3, at)); },
      [this](dns::NameView at) { return !gone_.contains(at); });
}

}  // namespace pando::manager
