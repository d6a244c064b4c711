#include "manager/update/signed_update.h"

#include <fmt/format.h>

#include "manager/dnssec/denial_check.h"
#include "manager/dnssec/signature_check.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Node = ChangedZone::Node;
using RRset = ChangedZone::RRset;

/// Under RFC 2136 §3.6 the server increments the serial. Here that would break the SOA's signature,
/// so the update must bring a later SOA.
Fault check_serial(const Node& apex) {
  const RRset* before = ChangedZone::find(apex.before, RRType::kSOA);
  const RRset* now = apex.find(RRType::kSOA);
  if (before == nullptr || now == nullptr) return "the zone has no SOA";
  if (soa_serial(now->rdatas.front()).ahead_of(soa_serial(before->rdatas.front())))
    return std::nullopt;
  return "the update brings no SOA with a later serial";
}

/// RFC 8976 §4: a digest counts only if its serial is the SOA's. Whether the digest is right is not
/// checked, since that needs a walk over the zone.
Fault check_digest(const Node& apex) {
  const RRset* set = apex.find(RRType::kZONEMD);
  const RRset* soa = apex.find(RRType::kSOA);
  if (set == nullptr || soa == nullptr) return std::nullopt;
  const std::uint32_t serial = soa_serial(soa->rdatas.front()).value;
  for (const Bytes& rdata : set->rdatas)
    if (rdata.size() >= sizeof serial && load_be32(rdata.data()) == serial) return std::nullopt;
  return fmt::format("no ZONEMD would be of serial {}", serial);
}

}  // namespace

bool needs_signer(RRType type, bool at_apex) noexcept {
  switch (type) {
    case RRType::kRRSIG:
    case RRType::kNSEC:
    case RRType::kNSEC3:
    case RRType::kSIG:
    case RRType::kNXT:
      return true;
    case RRType::kDNSKEY:
    case RRType::kNSEC3PARAM:
      return at_apex;
    default:
      return false;
  }
}

void move_serial(TouchedNames::Node& apex, config::SerialPolicy policy, std::uint64_t now) {
  const TouchedNames::RRset& before = apex.before.at(RRType::kSOA);
  TouchedNames::RRset& after = apex.now.at(RRType::kSOA);
  const dns::Serial serial = soa_serial(before.rdatas.front());
  if (!(soa_serial(after.rdatas.front()) == serial)) return;
  set_soa_serial(after.rdatas.front(), next_serial(serial, policy, now));
}

bool is_signed(const zone::ZoneView& zone) noexcept {
  const zone::RecordView apex = zone.apex_record();
  if (zone.denial() != zone::Denial::kUnsigned) return true;
  for (const RRType type : {RRType::kDNSKEY, RRType::kNSEC, RRType::kNSEC3PARAM})
    if (const auto rrset = apex.find(type); rrset && rrset.count() != 0) return true;
  return zone.soa().signature_count() != 0;
}

Fault check_signed_update(const zone::ZoneView& before, TouchedNames& touched, std::uint64_t now) {
  ChangedZone zone(before, touched);
  Fault fault = check_serial(zone.at(zone.apex()));
  if (!fault) fault = check_digest(zone.at(zone.apex()));
  if (!fault) fault = check_denial(zone);
  if (!fault) fault = SignatureCheck(zone, now).run();
  if (zone.exhausted())
    return fmt::format("more than {} names and hashes to look at", ChangedZone::kMaxLooks);
  return fault;
}

}  // namespace pando::manager
