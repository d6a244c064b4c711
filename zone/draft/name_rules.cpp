#include "zone/draft/name_rules.h"

#include "dns/rdata/rdata.h"

namespace pando::zone {

namespace {

std::string owner_text(const NameDraft& name, dns::NameView apex) {
  const auto owner = dns::Name::join(name.labels, apex);
  return owner ? dns::to_text(*owner) : "?";
}

bool may_stand_beside_cname(dns::RRType type) {
  return type == dns::RRType::kCNAME || type == dns::RRType::kNSEC || type == dns::RRType::kKEY ||
         type == dns::RRType::kSIG || type == dns::RRType::kNXT;
}

Status fail_soas(const NameDraft& name, dns::NameView apex, std::size_t count) {
  return fail(Errc::kInvalid, "{}: {} SOA records, one is needed", owner_text(name, apex), count);
}

Status check_apex(const NameDraft& name, dns::NameView apex) {
  const RRsetDraft* soa = name.find(dns::RRType::kSOA);
  if (soa == nullptr || soa->rdatas.empty()) return fail_soas(name, apex, 0);
  const RRsetDraft* ns = name.find(dns::RRType::kNS);
  if (ns == nullptr || ns->rdatas.empty())
    return fail(Errc::kInvalid, "{}: no NS records at the apex", owner_text(name, apex));
  return {};
}

}  // namespace

Status check_record(dns::NameView apex, dns::NameView owner, dns::RRType type, ByteView rdata) {
  if (!owner.is_at_or_below(apex))
    return fail(Errc::kInvalid, "{} is outside the zone {}", dns::to_text(owner),
                dns::to_text(apex));
  if (dns::is_meta_type(type))
    return fail(Errc::kInvalid, "type {} cannot be in a zone", dns::to_text(type));
  return dns::check_record_size(owner, type, rdata);
}

Status check_together(const NameDraft& name, dns::NameView apex) {
  bool has_cname = false;
  bool has_other = false;
  for (const RRsetDraft& rrset : name.rrsets) {
    if (rrset.rdatas.empty()) continue;
    const bool single = rrset.type == dns::RRType::kCNAME || rrset.type == dns::RRType::kDNAME;
    if (single && rrset.rdatas.size() > 1)
      return fail(Errc::kInvalid, "{}: more than one {} record", owner_text(name, apex),
                  dns::to_text(rrset.type));
    has_cname = has_cname || rrset.type == dns::RRType::kCNAME;
    has_other = has_other || !may_stand_beside_cname(rrset.type);
    if (rrset.type == dns::RRType::kSOA && !name.labels.empty())
      return fail(Errc::kInvalid, "{}: SOA below the apex", owner_text(name, apex));
    if (rrset.type == dns::RRType::kSOA && rrset.rdatas.size() > 1)
      return fail_soas(name, apex, rrset.rdatas.size());
  }
  if (has_cname && has_other)
    return fail(Errc::kInvalid, "{}: CNAME and other data", owner_text(name, apex));
  return {};
}

Status check_name(const NameDraft& name, dns::NameView apex) {
  if (auto together = check_together(name, apex); !together) return together;
  return name.labels.empty() ? check_apex(name, apex) : Status{};
}

Status check_limits(const NameDraft& before, const NameDraft& after, const DataLimits& limits,
                    dns::NameView apex) {
  if (limits.name_types != 0 && after.rrsets.size() > limits.name_types &&
      after.rrsets.size() > before.rrsets.size())
    return fail(Errc::kFull, "{}: more than {} types (limits.name-types)", owner_text(after, apex),
                limits.name_types);
  for (const RRsetDraft& rrset : after.rrsets) {
    const RRsetDraft* old = before.find(rrset.type);
    const std::size_t had = old == nullptr ? 0 : old->rdatas.size();
    if (limits.rrset_records != 0 && rrset.rdatas.size() > limits.rrset_records &&
        rrset.rdatas.size() > had)
      return fail(Errc::kFull, "{}: more than {} {} records (limits.rrset-records)",
                  owner_text(after, apex), limits.rrset_records, dns::to_text(rrset.type));
  }
  return {};
}

bool belongs_to_nsec3(dns::RRType type, ByteView rdata) noexcept {
  return place(type, rdata).set == dns::RRType::kNSEC3;
}

Placed place(dns::RRType type, ByteView rdata) noexcept {
  if (type != dns::RRType::kRRSIG || rdata.size() < 2) return {type, false, rdata};
  return {dns::rrsig_covered(rdata), true, rdata.subspan(2)};
}

}  // namespace pando::zone
