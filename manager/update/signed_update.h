#pragma once

#include <cstdint>

#include "config/settings/zone_table.h"
#include "manager/dnssec/changed_zone.h"

namespace pando::manager {

/// True for a zone with any of DNSKEY, NSEC, NSEC3PARAM or a signed SOA at its apex.
[[nodiscard]] bool is_signed(const zone::ZoneView& zone) noexcept;

/// True for records that only a signer can keep valid; refused in unsigned zones.
[[nodiscard]] bool needs_signer(dns::RRType type, bool at_apex) noexcept;

/// RFC 2136 §3.6: the server increments the serial if anything changed and the change did not move
/// the serial itself. `apex` has a SOA before and now.
void move_serial(TouchedNames::Node& apex, config::SerialPolicy policy, std::uint64_t now);

/// Checks that validators accept a signed zone after an update. The update must
/// bring its serial, signatures and NSEC or NSEC3 records, since this server cannot sign. Only the
/// changed names and their neighbours are checked; the rest of the zone is trusted to be right.
/// Pure, except for reading more names into `touched`. `now` is in seconds since 1970.
/// SignatureCheck, NsecCheck and Nsec3Check define the checks.
///
/// The kind of denial (NSEC or NSEC3, and the parameters) cannot change, and a signed zone stays
/// signed.
[[nodiscard]] Fault check_signed_update(const zone::ZoneView& before, TouchedNames& touched,
                                        std::uint64_t now);

}  // namespace pando::manager
