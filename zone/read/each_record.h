#pragma once

#include "zone/read/store_view.h"

namespace pando::zone {

/// Calls `visit(NameView owner, RRType, Ttl, ByteView rdata)` for each resource record of a zone.
/// Signatures come as RRSIG records with whole RDATA; owners come in the zone's own order (apex
/// first, NSEC3 owners last). The views last for the call. The first error that `visit` returns
/// ends the walk.
template <class Visit>
Status for_each_record(const ZoneView& zone, Visit&& visit) {
  Status status;
  Bytes signature;
  auto cursor = zone.begin();
  while (const RecordView record = cursor.next()) {
    const dns::Name owner = zone.owner_of(record);
    const auto call = [&](dns::RRType type, dns::Ttl ttl, ByteView rdata) {
      if (status) status = visit(dns::NameView(owner), type, ttl, rdata);
    };
    record.for_each_rrset([&](const RRsetView& rrset) {
      rrset.for_each_rdata([&](ByteView rdata) { call(rrset.type(), rrset.ttl(), rdata); });
      rrset.for_each_signature([&](ByteView rest) {
        signature.clear();
        append_be16(signature, static_cast<std::uint16_t>(rrset.type()));
        append(signature, rest);
        call(dns::RRType::kRRSIG, rrset.ttl(), signature);
      });
    });
    if (!status) break;
  }
  return status;
}

}  // namespace pando::zone
