#include "zone/dnssec/denial_verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/progress.h"
#include "dns/encoding.h"

namespace pando::zone {

using dns::RRType;

namespace {

/// A place after those of all names, for faults of the zone as a whole.
constexpr std::uint64_t kLastPlace = UINT64_MAX;

bool makes_exist(const RRsetView& set) noexcept {
  return set.count() != 0 && set.type() != RRType::kNSEC && set.type() != RRType::kNSEC3 &&
         set.type() != RRType::kRRSIG;
}

/// Types of the name that denial lists (RFC 4034 §4.1.2, RFC 4035 §2.3); true if one is signed.
bool list_types(const PlacedName& name, std::vector<RRType>& types) {
  bool is_signed = false;
  if (name.record) {
    name.record.for_each_rrset([&](const RRsetView& set) {
      if (!makes_exist(set)) return;
      const bool authoritative = name.place == Place::kAuthoritative || set.type() == RRType::kDS;
      if (authoritative || set.type() == RRType::kNS) types.push_back(set.type());
      is_signed = is_signed || authoritative;
    });
  }
  return is_signed;
}

bool same_types(std::vector<RRType>& types, ByteView bitmap) {
  std::sort(types.begin(), types.end());
  return dns::types_in_bitmap(bitmap) == types;
}

/// The NSEC3 record of the chain at an owner, which may have records of other chains.
std::optional<dns::Nsec3Fields> record_of_chain(const RecordView& record,
                                                const dns::Nsec3Fields& chain, Bytes& memory) {
  std::optional<dns::Nsec3Fields> found;
  record.find(RRType::kNSEC3).for_each_rdata([&](ByteView rdata) {
    const auto fields = dns::parse_nsec3(rdata);
    if (found || !fields || !fields->has_next() || !fields->same_chain(chain)) return;
    memory.assign(rdata.begin(), rdata.end());
    found = dns::parse_nsec3(memory);
  });
  return found;
}

dns::Nsec3Fields chain_of(const ZoneView& zone) {
  const Nsec3Parameters parameters = zone.nsec3_parameters();
  dns::Nsec3Fields fields;
  fields.hash = parameters.hash;
  fields.iterations = parameters.iterations;
  fields.salt = parameters.salt;
  return fields;
}

std::string hash_text(ByteView hash) {
  std::string text;
  dns::append_base32hex(text, hash);
  return text;
}

/// The hash in an owner's first label; empty for another label.
Bytes hash_of(const dns::Name& owner) {
  Bytes hash;
  const ByteView wire = owner.view().bytes();
  const std::string_view label(reinterpret_cast<const char*>(wire.data() + 1), wire[0]);
  if (!dns::append_base32hex_decoded(label, hash) || hash.size() != dns::kNsec3HashOctets)
    hash.clear();
  return hash;
}

}  // namespace

bool exists(const PlacedName& name) {
  if (name.place == Place::kOccluded) return false;
  if (name.place == Place::kEmpty) return true;
  bool found = false;
  name.record.for_each_rrset([&](const RRsetView& set) { found = found || makes_exist(set); });
  return found;
}

bool is_insecure_cut(const PlacedName& name) {
  return name.place == Place::kCut && name.record.find(RRType::kDS).count() == 0;
}

// NSEC ------------------------------------------------------------------------------------------

void NsecChain::take(const PlacedName& name, std::uint64_t place) {
  const RRsetView set = name.record.find(RRType::kNSEC);
  const bool has_nsec = set.count() != 0;
  if (!exists(name)) {
    if (has_nsec)
      faults_.add(place, fmt::format("{} NSEC has no place at a name without authoritative data",
                                     to_text(name.owner)));
    return;
  }
  end_link(name.owner);
  last_ = name.owner;
  last_place_ = place;
  promised_.reset();
  if (set.count() != 1)
    return faults_.add(place, fmt::format("{} has {} NSEC", to_text(name.owner),
                                          has_nsec ? "more than one" : "no"));
  set.for_each_rdata([&](ByteView rdata) {
    const auto nsec = dns::parse_nsec(rdata);
    if (!nsec) return faults_.add(place, fmt::format("{} NSEC is cut short", to_text(name.owner)));
    promised_ = dns::Name(nsec->next);
    if (std::string fault = fault_of_types(name, *nsec); !fault.empty())
      faults_.add(place, std::move(fault));
  });
}

std::string NsecChain::fault_of_types(const PlacedName& name, const dns::NsecFields& nsec) {
  std::vector<RRType> types{RRType::kRRSIG, RRType::kNSEC};
  list_types(name, types);
  if (same_types(types, nsec.types)) return {};
  return fmt::format("{} NSEC lists other types than there are", to_text(name.owner));
}

void NsecChain::end_link(const dns::Name& next) {
  if (!last_ || !promised_ || *promised_ == next) return;
  faults_.add(last_place_, fmt::format("{} NSEC points to {} instead of {}", to_text(*last_),
                                       to_text(*promised_), to_text(next)));
}

void NsecChain::finish() { end_link(apex_); }

// NSEC3 -----------------------------------------------------------------------------------------

Nsec3Links::Nsec3Links(const ZoneView& zone, FaultList& faults)
    : parameters_(chain_of(zone)), faults_(faults) {}

void Nsec3Links::take(const dns::Name& owner, const RecordView& record, std::uint64_t place) {
  Bytes memory;
  const auto fields = record_of_chain(record, parameters_, memory);
  if (!fields) return;
  ++count_;
  if (fields->flags > 1)
    faults_.add(place, fmt::format("{} NSEC3 has unknown flags", to_text(owner)));
  const Bytes hash = hash_of(owner);
  if (hash.empty())
    return faults_.add(place, fmt::format("{} NSEC3: the owner is no hash", to_text(owner)));
  if (first_.empty())
    first_ = hash;
  else
    end_link(hash);
  last_ = hash;
  last_owner_ = owner;
  last_place_ = place;
  promised_.assign(fields->next.begin(), fields->next.end());
}

void Nsec3Links::end_link(const Bytes& next) {
  if (promised_ == next) return;
  faults_.add(last_place_, fmt::format("{} NSEC3 points to {} instead of {}", to_text(last_owner_),
                                       hash_text(promised_), hash_text(next)));
}

void Nsec3Links::finish() {
  if (!first_.empty()) end_link(first_);  // RFC 5155 §7.1: the last points to the first
}

std::string Nsec3Names::check(const PlacedName& name) {
  const Nsec3Parameters parameters = zone_.nsec3_parameters();
  dns::Nsec3Hash hash;
  if (!hasher_.hash(name.owner, parameters.iterations, parameters.salt, hash))
    return fmt::format("{} has no hash", to_text(name.owner));
  const RecordView record = zone_.nsec3_at(hash);
  if (!record) return check_absence(name, hash);
  found_.push_back(hash);
  Bytes memory;
  const auto fields = record_of_chain(record, chain_of(zone_), memory);
  std::vector<RRType> types;
  // RFC 5155 §7.1: the bitmap is the same as NSEC's, with RRSIG only if any set is signed.
  if (list_types(name, types)) types.push_back(RRType::kRRSIG);
  if (fields && same_types(types, fields->types)) return {};
  return fmt::format("the NSEC3 of {} ({}) lists other types than there are", to_text(name.owner),
                     hash_text(hash));
}

/// RFC 5155 §7.1: only delegations without DS, and empty non-terminals above nothing else, may lack
/// a record. The record before them must then have the opt-out flag (§6).
std::string Nsec3Names::check_absence(const PlacedName& name, const dns::Nsec3Hash& hash) const {
  const bool may_lack =
      is_insecure_cut(name) || (name.place == Place::kEmpty && !name.above_secure);
  if (may_lack) {
    bool exact = false;
    const RecordView covering = zone_.nsec3_match_or_cover(hash, exact);
    Bytes memory;
    const auto fields = record_of_chain(covering, chain_of(zone_), memory);
    if (fields && fields->is_opt_out()) return {};
  }
  return fmt::format("{} has no NSEC3 ({})", to_text(name.owner), hash_text(hash));
}

void find_surplus_nsec3(const ZoneView& zone, std::vector<dns::Nsec3Hash> found,
                        std::uint64_t in_chain, FaultList& faults) {
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() == in_chain) return;
  const dns::Nsec3Fields chain = chain_of(zone);
  Bytes memory;
  ProgressCount progress(Progress::Phase::kChecking, in_chain);
  RecordView record = zone.record_after(ZoneView::Tree::kNsec3, zone.apex());
  while (record && !progress.is_given_up()) {
    progress.add();
    const dns::Name owner = zone.owner_of(record);
    const Bytes hash = hash_of(owner);
    dns::Nsec3Hash sought{};
    std::copy(hash.begin(), hash.end(), sought.begin());
    if (!hash.empty() && record_of_chain(record, chain, memory) &&
        !std::binary_search(found.begin(), found.end(), sought))
      faults.add(kLastPlace, fmt::format("{} NSEC3 is of no name of the zone", to_text(owner)));
    record = zone.record_after(ZoneView::Tree::kNsec3, owner);
  }
}

}  // namespace pando::zone
