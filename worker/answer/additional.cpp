#include "worker/answer/additional.h"

#include <algorithm>
#include <utility>

#include "dns/rdata/rdata.h"

namespace pando::worker {

namespace {

/// Calls `visit(rrset, record)` for the A and the AAAA RRset of a host in this zone.
template <class Visit>
void for_each_address_set(const Walk& walk, dns::NameView host, Visit&& visit) noexcept {
  if (!host.is_at_or_below(walk.apex)) return;
  const zone::Match match = walk.zone.lookup(host);
  if (!match.exact) return;
  // Below a cut the records are glue; below a DNAME no record exists (RFC 6672 §2.4).
  const bool occluded =
      match.barrier && (!match.barrier.has_ns() || match.barrier_labels == walk.apex_labels);
  if (occluded) return;
  for (const dns::RRType type : {dns::RRType::kA, dns::RRType::kAAAA})
    if (const zone::RRsetView rrset = find_data(match.exact, type)) visit(rrset, match.exact);
}

/// A server's name as the owner of its addresses. The record's stored name lasts as long as the
/// answer; the name in the NS record's RDATA need not. The message already has that name in its
/// spelling, and the owner becomes a pointer to it.
Owner lasting_owner(const Walk& walk, const zone::RecordView& record) noexcept {
  return {record.relative_owner(), walk.apex};
}

/// SVCB: SvcPriority 0 is AliasMode, where "." means that the service does not exist (RFC 9460
/// §2.5.1). In ServiceMode "." is the owner itself (§2.5.2).
dns::NameView svcb_target(ByteView rdata, dns::NameView target, dns::NameView owner) noexcept {
  const bool alias_mode = load_be16(rdata.data()) == 0;
  return target.is_root() && !alias_mode ? owner : target;
}

}  // namespace

void add_referral_glue(Walk& walk, const zone::RRsetView& ns, dns::NameView cut) noexcept {
  // Required addresses must be added first, hence two passes; the second runs only when optional
  // addresses were found.
  bool more = true;
  for (const Need need : {Need::kRequired, Need::kOptional}) {
    if (!std::exchange(more, false)) return;
    std::uint16_t number = 0;
    ns.for_each_rdata([&](ByteView rdata) {
      const std::uint16_t target = std::min(number++, kNoNsTarget);
      if (!dns::is_wire_name(rdata)) return;  // the store is damaged
      const dns::NameView host(rdata.data(), rdata.size());
      if (host.is_at_or_below(cut) != (need == Need::kRequired)) {
        more = true;
        return;
      }
      // The hosts of one NS RRset are different names, so no address RRset is added twice.
      for_each_address_set(
          walk, host, [&](const zone::RRsetView& rrset, const zone::RecordView& record) {
            Entry entry = make_entry(walk, lasting_owner(walk, record), rrset, need);
            entry.ns_target = target;
            add_additional(walk, entry);
          });
    });
  }
}

void add_target_addresses(Walk& walk, const zone::RRsetView& rrset, dns::NameView owner) noexcept {
  const dns::RRType type = rrset.type();
  rrset.for_each_rdata([&](ByteView rdata) {
    dns::NameView target;
    if (!dns::additional_name(type, rdata, target)) return;
    if (type == dns::RRType::kSVCB || type == dns::RRType::kHTTPS)
      target = svcb_target(rdata, target, owner);
    for_each_address_set(
        walk, target, [&](const zone::RRsetView& addresses, const zone::RecordView& record) {
          if (has_rrset(walk.out.answer, addresses) || has_rrset(walk.out.additional, addresses))
            return;
          const Owner host = type == zone::kRelativeType ? lasting_owner(walk, record) : target;
          add_additional(walk, make_entry(walk, host, addresses, Need::kOptional));
        });
  });
}

}  // namespace pando::worker
