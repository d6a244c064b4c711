#pragma once

#include <cstdint>

#include "manager/dnssec/changed_zone.h"

namespace pando::manager {

/// A zone with any of DNSKEY, NSEC, NSEC3PARAM or a signed SOA at its apex.
[[nodiscard]] bool is_signed(const zone::ZoneView& zone) noexcept;

/// Whether an update to a signed zone leaves one that validators believe: what it says, this server
/// cannot sign, so the update has to bring its serial, signatures and NSEC or NSEC3 records itself.
/// Looks at what the update changes and at its neighbours, never at the whole zone, and trusts that
/// what is there is right. Pure but for reading more names into `overlay`; `now` in seconds since
/// 1970. What is checked: SignatureCheck, NsecCheck, Nsec3Check.
///
/// How a zone denies (NSEC or NSEC3, and with which parameters) stays; so does being signed.
[[nodiscard]] Fault check_signed_update(const zone::ZoneView& before, TouchedNames& overlay,
                                        std::uint64_t now);

}  // namespace pando::manager
