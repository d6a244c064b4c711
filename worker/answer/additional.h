#pragma once

#include "worker/answer/walk.h"

namespace pando::worker {

/// Adds the addresses of a referral's name servers. Addresses in the delegated zone are required
/// (RFC 9471 §3.1); addresses elsewhere in this zone follow as they fit (§3.2).
void add_referral_glue(Walk& walk, const zone::RRsetView& ns, dns::NameView cut) noexcept;

/// Addresses of the hosts that an answer's RRset names, as they fit (RFC 1034 §4.3.2 step 6, RFC
/// 2782, RFC 9460 §4.1). `owner` replaces the SVCB target ".".
void add_target_addresses(Walk& walk, const zone::RRsetView& rrset, dns::NameView owner) noexcept;

}  // namespace pando::worker
