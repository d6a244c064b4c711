#include <fmt/format.h>

#include "dns/encoding.h"
#include "dns/rdata/rdata.h"
#include "manager/dnssec/denial_check.h"

namespace pando::manager {

namespace {

using dns::Nsec3Fields;
using dns::RRType;
using Node = ChangedZone::Node;
using RRset = ChangedZone::RRset;
using RRsets = ChangedZone::RRsets;
using Place = ChangedZone::Place;
using Tree = ChangedZone::Tree;

/// The owner name of a hash: the label of RFC 5155 §3.3, then the apex; nullopt if the name is too
/// long.
std::optional<dns::Name> owner_of_hash(ByteView hash, dns::NameView apex) {
  std::string text;
  dns::append_base32hex(text, hash);
  Bytes label = {static_cast<std::uint8_t>(text.size())};
  label.insert(label.end(), text.begin(), text.end());
  if (text.empty() || text.size() > dns::kMaxLabelOctets) return std::nullopt;
  const auto name = dns::Name::join(label, apex);
  return name ? std::optional<dns::Name>(*name) : std::nullopt;
}

}  // namespace

Fault Nsec3Check::run() {
  if (auto fault = read_parameters()) return fault;
  if (auto fault = check_names()) return fault;
  for (const auto& [owner, node] : zone_.changed()) {
    if (node->find(RRType::kNSEC) != nullptr)
      return fmt::format("{} NSEC in a zone with NSEC3", to_text(owner));
    if (auto fault = check_record(owner, *node)) return fault;
    if (zone_.exhausted()) return std::nullopt;
  }
  return std::nullopt;
}

/// RFC 5155 §4.1: requires one chain, the same as before. A new chain would have to be complete
/// before NSEC3PARAM names that chain. Completeness cannot be checked without a walk over the zone.
Fault Nsec3Check::read_parameters() {
  const Node& apex = zone_.at(zone_.apex());
  const RRset* now = apex.find(RRType::kNSEC3PARAM);
  const RRset* before = ChangedZone::find(apex.before, RRType::kNSEC3PARAM);
  if (now == nullptr || before == nullptr || now->rdatas != before->rdatas)
    return "NSEC3PARAM cannot change by update";
  const auto parameters = dns::parse_nsec3param(now->rdatas.front());
  if (now->rdatas.size() != 1 || !parameters || parameters->hash != 1 || parameters->flags != 0)
    return "NSEC3PARAM does not name exactly one chain";
  if (parameters->iterations > dns::kMaxNsec3Iterations)
    return "NSEC3PARAM has too many iterations";
  parameters_ = *parameters;
  return std::nullopt;
}

// Names -----------------------------------------------------------------------------------------

/// Checks the affected names and all names above them, which may become empty non-terminals or
/// cease to be.
Fault Nsec3Check::check_names() {
  NameSet names = zone_.affected();
  for (const dns::Name& name : zone_.affected()) {
    const bool secure = need_of(name) == Need::kRecord;
    for (dns::NameView above = name.view(); !(above == zone_.apex());) {
      above = above.parent();
      names.emplace(above);
      if (secure) above_secure_.emplace(above);
    }
  }
  for (const dns::Name& name : names) {
    if (auto fault = check_name(name)) return fault;
    if (zone_.exhausted()) return std::nullopt;
  }
  return std::nullopt;
}

Nsec3Check::Need Nsec3Check::need_of(dns::NameView name) {
  const Place place = zone_.place_now(name);
  if (place == Place::kOccluded) return Need::kNothing;
  const RRsets& rrsets = zone_.at(name).now;
  if (!ChangedZone::own_types(rrsets).empty())
    return place == Place::kCut && !rrsets.contains(RRType::kDS) ? Need::kOptional : Need::kRecord;
  const auto below = zone_.next(Tree::kNames, name);
  return below && below->view().is_at_or_below(name) ? Need::kEmpty : Need::kNothing;
}

Fault Nsec3Check::check_name(dns::NameView name) {
  const auto hashed = hash(name);
  if (!hashed) return zone_.exhausted() ? Fault() : to_text(name) + " has no hash";
  checked_.emplace(hashed->owner, hashed->hash);
  const Need need = need_of(name);
  const auto record = record_now(hashed->owner);
  if (!record) return check_absence(name, need, *hashed);
  if (need == Need::kNothing)
    return fmt::format("{} has an NSEC3 ({}) but no authoritative data", to_text(name),
                       to_text(hashed->owner));
  return check_types(name, *record);
}

/// RFC 5155 §7.1: only delegations without DS, and empty non-terminals above nothing else, may lack
/// a record. The record before them must then have the opt-out flag (§6).
Fault Nsec3Check::check_absence(dns::NameView name, Need need, const Hashed& hashed) {
  if (need == Need::kNothing) return std::nullopt;
  const bool had = record_of(zone_.at(hashed.owner).before).has_value();
  const bool missing =
      need == Need::kRecord ||
      (need == Need::kEmpty && (above_secure_.contains(name) || (had && is_above_secure(name))));
  const auto covering = missing ? std::nullopt : record_now(previous_in_chain(hashed.owner));
  if (zone_.exhausted() || (covering && covering->is_opt_out())) return std::nullopt;
  return fmt::format("{} has no NSEC3 ({})", to_text(name), to_text(hashed.owner));
}

/// True if any name below an empty non-terminal must have a record.
bool Nsec3Check::is_above_secure(dns::NameView name) {
  for (auto below = zone_.next(Tree::kNames, name); below && below->view().is_at_or_below(name);
       below = zone_.next(Tree::kNames, *below))
    if (need_of(*below) == Need::kRecord) return true;
  return false;
}

/// RFC 5155 §7.1: the bitmap is the same as NSEC's, with RRSIG only if any set is signed.
Fault Nsec3Check::check_types(dns::NameView name, const Nsec3Fields& record) {
  const Place place = zone_.place_now(name);
  std::vector<RRType> types;
  bool is_signed = false;
  for (const RRType type : ChangedZone::own_types(zone_.at(name).now)) {
    const bool authoritative = place == Place::kAuthoritative || type == RRType::kDS;
    if (authoritative || type == RRType::kNS) types.push_back(type);
    is_signed = is_signed || authoritative;
  }
  if (is_signed) types.push_back(RRType::kRRSIG);
  std::sort(types.begin(), types.end());
  if (dns::types_in_bitmap(record.types) == types) return std::nullopt;
  return fmt::format("the NSEC3 of {} lists other types than there are", to_text(name));
}

// Records ---------------------------------------------------------------------------------------

Fault Nsec3Check::check_record(dns::NameView owner, const Node& node) {
  const RRset* set = node.find(RRType::kNSEC3);
  const RRset* had = ChangedZone::find(node.before, RRType::kNSEC3);
  if (set != nullptr && had != nullptr && set->rdatas == had->rdatas) return std::nullopt;
  const auto before = record_of(node.before), now = record_of(node.now);
  if (set != nullptr && (set->rdatas.size() != 1 || !now))
    return fmt::format("{} NSEC3 is not one record of the chain that NSEC3PARAM names",
                       to_text(owner));
  if (now && now->flags > 1) return fmt::format("{} NSEC3 has unknown flags", to_text(owner));
  if (!before && !now) return std::nullopt;  // only an unused chain's record goes
  return check_change(owner, before ? &*before : nullptr, now ? &*now : nullptr);
}

Fault Nsec3Check::check_change(dns::NameView owner, const Nsec3Fields* before,
                               const Nsec3Fields* now) {
  const bool same_types =
      before != nullptr && now != nullptr && std::ranges::equal(before->types, now->types);
  if (!same_types && checked_.find(owner) == checked_.end())
    return fmt::format("{} NSEC3 is of no name that the update changes", to_text(owner));
  if (auto fault = check_opt_out(owner, before, now)) return fault;
  if (now != nullptr)
    if (auto fault = check_link(owner)) return fault;
  return before != nullptr && now != nullptr ? std::nullopt : check_link(previous_in_chain(owner));
}

/// RFC 5155 §6: names covered by a record with the opt-out flag may lack records, so the flag must
/// stay for the whole range. If a record goes, the record before it must have the flag. If a record
/// comes into such a range, the new record must have the flag, too.
Fault Nsec3Check::check_opt_out(dns::NameView owner, const Nsec3Fields* before,
                                const Nsec3Fields* now) {
  bool was = before != nullptr && before->is_opt_out();
  if (before == nullptr) {
    bool exact = false;
    const auto cover = zone_.before().nsec3_match_or_cover(checked_.find(owner)->second, exact);
    const auto fields = dns::parse_nsec3(cover.find(RRType::kNSEC3).first_rdata());
    was = fields && fields->is_opt_out();
  }
  const auto covering = now != nullptr ? std::nullopt : record_now(previous_in_chain(owner));
  const bool is = now != nullptr ? now->is_opt_out() : covering && covering->is_opt_out();
  if (!was || is || zone_.exhausted()) return std::nullopt;
  return fmt::format("{} NSEC3: the opt-out flag of its range cannot be taken back",
                     to_text(owner));
}

Fault Nsec3Check::check_link(dns::NameView owner) {
  const dns::Name next = next_in_chain(owner);
  const auto record = record_now(owner);
  const auto told = record ? owner_of_hash(record->next, zone_.apex()) : std::nullopt;
  if (zone_.exhausted() || (told && *told == next)) return std::nullopt;
  return fmt::format("{} NSEC3 does not point to {}", to_text(owner), to_text(next));
}

// The chain -------------------------------------------------------------------------------------

std::optional<Nsec3Check::Hashed> Nsec3Check::hash(dns::NameView name) {
  // RFC 9276 §3.1 wants neither iterations nor salt. SHA-1 hashes blocks of 64 octets, with 9
  // octets of padding per message: 55 ns for each block.
  constexpr std::size_t kBlocksPerLook = 5, kBlock = 64, kPadding = 9;
  const std::size_t octets = dns::kNsec3HashOctets + parameters_.salt.size() + kPadding;
  const std::size_t blocks = parameters_.iterations * ((octets + kBlock - 1) / kBlock);
  if (!zone_.look(1 + blocks / kBlocksPerLook)) return std::nullopt;
  Hashed hashed;
  if (!hasher_.hash(name, parameters_.iterations, parameters_.salt, hashed.hash))
    return std::nullopt;
  const auto owner = owner_of_hash(hashed.hash, zone_.apex());
  if (!owner) return std::nullopt;
  hashed.owner = *owner;
  return hashed;
}

/// The record of the chain. An owner may also have records of other chains.
std::optional<Nsec3Fields> Nsec3Check::record_of(const RRsets& rrsets) const {
  if (const RRset* set = ChangedZone::find(rrsets, RRType::kNSEC3))
    for (const Bytes& rdata : set->rdatas)
      if (const auto fields = dns::parse_nsec3(rdata);
          fields && fields->has_next() && fields->same_chain(parameters_))
        return fields;
  return std::nullopt;
}

std::optional<Nsec3Fields> Nsec3Check::record_now(dns::NameView owner) {
  return record_of(zone_.at(owner).now);
}

std::optional<dns::Name> Nsec3Check::first_from(std::optional<dns::Name> owner) {
  return forward_.find(
      std::move(owner), [this](dns::NameView from) { return zone_.next(Tree::kNsec3, from); },
      [this](dns::NameView at) { return record_now(at).has_value(); });
}

std::optional<dns::Name> Nsec3Check::last_until(std::optional<dns::Name> owner) {
  return backward_.find(
      std::move(owner), [this](dns::NameView from) { return zone_.previous(Tree::kNsec3, from); },
      [this](dns::NameView at) { return record_now(at).has_value(); });
}

dns::Name Nsec3Check::next_in_chain(dns::NameView owner) {
  auto next = first_from(zone_.next(Tree::kNsec3, owner));
  // The last record points to the first.
  if (!next) next = first_from(zone_.next(Tree::kNsec3, zone_.apex()));
  return next ? *next : dns::Name(owner);
}

dns::Name Nsec3Check::previous_in_chain(dns::NameView owner) {
  auto previous = last_until(zone_.previous(Tree::kNsec3, owner));
  if (!previous) previous = last_until(zone_.last(Tree::kNsec3));
  return previous ? *previous : dns::Name(owner);
}

}  // namespace pando::manager
