#include "manager/dnssec/signature_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "dns/rdata/rdata.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Node = ChangedZone::Node;
using RRset = ChangedZone::RRset;

bool same_data(const Node& node, RRType type) {
  const RRset* before = ChangedZone::find(node.before, type);
  const RRset* now = node.find(type);
  if (before == nullptr || now == nullptr) return before == now;
  return before->ttl == now->ttl && before->rdatas == now->rdatas;
}

bool same_signatures(const Node& node, RRType type) {
  return std::ranges::equal(ChangedZone::signatures(node.before, type),
                            ChangedZone::signatures(node.now, type),
                            [](ByteView a, ByteView b) { return std::ranges::equal(a, b); });
}

/// Types with records or signatures before or after the update.
std::set<RRType> types_at(const Node& node) {
  std::set<RRType> types;
  for (const auto* rrsets : {&node.before, &node.now})
    for (const auto& [type, rrset] : *rrsets) {
      if (type != RRType::kRRSIG) types.insert(type);
      if (type != RRType::kRRSIG) continue;
      for (const Bytes& rdata : rrset.rdatas)
        if (rdata.size() >= 2) types.insert(dns::rrsig_covered(rdata));
    }
  return types;
}

}  // namespace

// Keys ------------------------------------------------------------------------------------------

ZoneKeys::ZoneKeys(const RRset* rrset, const Limits& limits) : left_(limits) {
  if (rrset == nullptr) return;
  for (const Bytes& rdata : rrset->rdatas)
    if (const auto fields = dns::parse_dnskey(rdata); fields && fields->is_zone_key())
      keys_.push_back({*fields, dns::key_tag(rdata)});
}

bool ZoneKeys::has_algorithm(std::uint8_t algorithm) const noexcept {
  return std::any_of(keys_.begin(), keys_.end(), [&](const Key& key) {
    return key.fields.algorithm == algorithm && !key.fields.is_revoked();
  });
}

ZoneKeys::Verdict ZoneKeys::verify(const dns::RrsigFields& rrsig, dns::NameView owner,
                                   const RRset& set) {
  Verdict verdict = Verdict::kNoKey;
  Bytes octets;
  for (Key& key : keys_) {
    if (key.tag != rrsig.key_tag || key.fields.algorithm != rrsig.algorithm) continue;
    if (left_.verifications == 0) return Verdict::kTooMany;
    --left_.verifications;
    if (!key.taken_apart) key.verifier = dns::SignatureVerifier::make(key.fields);
    key.taken_apart = true;
    if (octets.empty()) octets = signed_octets(rrsig, owner, set.rdatas);
    if (octets.size() > left_.octets) return Verdict::kTooMany;
    left_.octets -= octets.size();
    if (key.verifier && key.verifier->verify(octets, rrsig.signature))
      return key.fields.is_revoked() ? Verdict::kVerifiedByRevoked : Verdict::kVerified;
    verdict = Verdict::kWrong;
  }
  return verdict;
}

// Sets ------------------------------------------------------------------------------------------

SignatureCheck::SignatureCheck(ChangedZone& zone, std::uint64_t now,
                               const ZoneKeys::Limits& limits)
    : zone_(zone),
      now_(now),
      limits_(limits),
      keys_(zone.at(zone.apex()).find(RRType::kDNSKEY), limits) {}

Fault SignatureCheck::run() {
  if (auto fault = check_keys()) return fault;
  NameSet names = zone_.affected();
  for (const auto& [name, node] : zone_.changed()) names.insert(name);
  for (const dns::Name& name : names)
    if (auto fault = check_name(name)) return fault;
  return check_entry(zone_.at(zone_.apex()));
}

Fault SignatureCheck::check_keys() {
  const Node& apex = zone_.at(zone_.apex());
  if (keys_.empty()) return fmt::format("{} would have no DNSKEY", to_text(zone_.apex()));
  for (const ByteView rdata : ChangedZone::signatures(apex.before, RRType::kSOA))
    if (const auto rrsig = dns::parse_rrsig(rdata); rrsig && keys_.has_algorithm(rrsig->algorithm))
      algorithms_.insert(rrsig->algorithm);
  if (algorithms_.empty())
    return fmt::format("no DNSKEY would be left of an algorithm that signed {} SOA",
                       to_text(zone_.apex()));
  return same_data(apex, RRType::kDNSKEY) ? std::nullopt : check_rollover(apex);
}

/// Checks that validators can still enter the zone. The parent's DS is unknown here, so a key that
/// signed the DNSKEY set before must sign the new set, too. A second update may remove that key
/// after the DS names another.
Fault SignatureCheck::check_entry(const Node& apex) {
  if (same_data(apex, RRType::kDNSKEY) && same_signatures(apex, RRType::kDNSKEY))
    return std::nullopt;
  const RRset* before = ChangedZone::find(apex.before, RRType::kDNSKEY);
  const RRset* now = apex.find(RRType::kDNSKEY);
  if (before == nullptr || now == nullptr) return std::nullopt;
  std::set<std::pair<std::uint16_t, std::uint8_t>> known;
  const auto verified = [&](ByteView rdata, const RRset& set) {
    const auto rrsig = dns::parse_rrsig(rdata);
    return rrsig && keys_.verify(*rrsig, apex.owner, set) == ZoneKeys::Verdict::kVerified
               ? rrsig
               : std::nullopt;
  };
  for (const ByteView rdata : ChangedZone::signatures(apex.before, RRType::kDNSKEY))
    if (const auto rrsig = verified(rdata, *before))
      known.insert({rrsig->key_tag, rrsig->algorithm});
  for (const ByteView rdata : ChangedZone::signatures(apex.now, RRType::kDNSKEY))
    if (const auto rrsig = verified(rdata, *now);
        rrsig && known.contains({rrsig->key_tag, rrsig->algorithm}))
      return std::nullopt;
  return fmt::format("no key that signed {} DNSKEY before this update would sign it",
                     to_text(zone_.apex()));
}

/// Checks that a key does not leave before its successor has taken over. Whether every set has a
/// signature by a remaining key would need a walk over the zone. The SOA, signed anew by each
/// update, stands for all sets. Expired signatures count: new keys may be the way out.
Fault SignatureCheck::check_rollover(const Node& apex) {
  const RRset* soa = ChangedZone::find(apex.before, RRType::kSOA);
  for (const ByteView rdata : ChangedZone::signatures(apex.before, RRType::kSOA)) {
    const auto rrsig = dns::parse_rrsig(rdata);
    if (soa != nullptr && rrsig &&
        keys_.verify(*rrsig, apex.owner, *soa) == ZoneKeys::Verdict::kVerified)
      return std::nullopt;
  }
  return fmt::format("no DNSKEY would be left that signed {} SOA before this update",
                     to_text(zone_.apex()));
}

Fault SignatureCheck::check_name(dns::NameView name) {
  const Node& node = zone_.at(name);
  const Place place = zone_.place_now(name);
  const bool moved = place != zone_.place_before(name);
  for (const RRType type : types_at(node)) {
    if (!moved && same_data(node, type) && same_signatures(node, type)) continue;
    // RFC 4035 §2.2: at a delegation only DS and NSEC belong to this zone; no data below a
    // delegation does.
    const bool must_be_signed =
        type == RRType::kNSEC3 || place == Place::kAuthoritative ||
        (place == Place::kCut && (type == RRType::kDS || type == RRType::kNSEC));
    if (auto fault = check_set(node, type, must_be_signed)) return fault;
  }
  return std::nullopt;
}

Fault SignatureCheck::check_set(const Node& node, RRType type, bool must_be_signed) {
  const auto signatures = ChangedZone::signatures(node.now, type);
  const std::string set = fmt::format("{} {}", to_text(node.owner), to_text(type));
  if (type == RRType::kRRSIG || node.find(type) == nullptr)
    return signatures.empty() ? Fault()
                              : fmt::format("an RRSIG covers {}, which is not there", set);
  if (!must_be_signed)
    return signatures.empty() ? Fault()
                              : fmt::format("an RRSIG covers {}, which is not authoritative", set);
  std::set<std::uint8_t> signed_by;
  for (const ByteView rdata : signatures)
    if (auto fault = check_signature(node, type, rdata, signed_by)) return fault;
  for (const std::uint8_t algorithm : algorithms_)
    if (!signed_by.contains(algorithm))
      return fmt::format("{} has no RRSIG of algorithm {}", set, algorithm);
  return std::nullopt;
}

Fault SignatureCheck::check_signature(const Node& node, RRType type, ByteView rdata,
                                      std::set<std::uint8_t>& signed_by) {
  using enum ZoneKeys::Verdict;
  const RRset& set = *node.find(type);
  const std::string what = fmt::format("RRSIG of {} {}", to_text(node.owner), to_text(type));
  const auto rrsig = dns::parse_rrsig(rdata);
  if (!rrsig) return what + " is cut short";
  const std::string by =
      fmt::format("{} by key {}, algorithm {},", what, rrsig->key_tag, rrsig->algorithm);
  if (std::string problem = problem_of(node, *rrsig, set); !problem.empty())
    return fmt::format("{} {}", by, problem);
  switch (keys_.verify(*rrsig, node.owner, set)) {
    case kVerified:
      signed_by.insert(rrsig->algorithm);
      return std::nullopt;
    case kVerifiedByRevoked:
      // RFC 5011 §2.1: a revoked key may sign the DNSKEY set, but its signature does not count.
      if (type == RRType::kDNSKEY) return std::nullopt;
      return by + " is by a revoked key";
    case kNoKey:
      // RFC 6781 §4.1.4: signatures of an algorithm without keys are allowed while the algorithm's
      // keys come or go.
      if (!keys_.has_algorithm(rrsig->algorithm)) return std::nullopt;
      return by + " is by no key of the zone";
    case kWrong:
      return by + " does not verify";
    case kTooMany:
      return fmt::format("more than {} signatures to verify, or {} octets",
                         limits_.verifications, limits_.octets);
  }
  return std::nullopt;
}

/// All checks of RFC 4035 §5.3.1 except the key; empty = no problem.
std::string SignatureCheck::problem_of(const Node& node, const dns::RrsigFields& rrsig,
                                       const RRset& set) const {
  if (!(rrsig.signer == zone_.apex())) return fmt::format("names {}", to_text(rrsig.signer));
  if (rrsig.labels != dns::rrsig_labels(node.owner))
    return fmt::format("counts {} labels", rrsig.labels);
  if (rrsig.original_ttl != set.ttl.seconds)
    return fmt::format("is of TTL {}, the set's is {}", rrsig.original_ttl, set.ttl.seconds);
  if (!rrsig.is_valid_at(now_)) return "is not valid now";
  if (!dns::is_supported_algorithm(rrsig.algorithm)) return "is of an algorithm not supported here";
  return {};
}

}  // namespace pando::manager
