#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dns/name.h"
#include "manager/dnssec/zone_signer.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The result of a walk over a signed zone. Times are seconds since 1970.
struct SignatureLook {
  /// Names with something to sign anew, in the order of the walk: a signature that ends early,
  /// begins in the future, is missing, or is of a key that signs the set no more; an NSEC record with
  /// another TTL than the SOA demands (RFC 9077); at the apex, records that name the keys and are not
  /// the signer's.
  std::vector<dns::Name> due;
  std::uint64_t first_end = 0;  ///< when the first RRset has no valid signature; 0: there are none
  std::uint64_t max_ttl = 0;    ///< seconds: the longest one of the source
  /// Each set has the signatures that the keys' uses demand, and the apex the sets that name the
  /// keys.
  bool shows_keys = true;
  /// Some set has a signature that may stay until it is to be renewed (KeyUse::keeps_signatures).
  bool has_old_signatures = false;
};

struct SignatureLookOptions {
  std::uint64_t now = 0;
  std::uint64_t due_before = 0;  ///< signatures that end before this time are due
  std::size_t max_due = SIZE_MAX;
};

/// The TTL of the zone's NSEC or NSEC3 records (RFC 9077 §3.1). Precondition: the zone is loaded.
[[nodiscard]] dns::Ttl denial_ttl_of(const zone::ZoneView& zone);

/// Walks over a zone that `signer` has signed. For pool threads; the version stays pinned.
[[nodiscard]] SignatureLook look_at_signatures(const zone::ZoneView& zone, const ZoneSigner& signer,
                                               const SignatureLookOptions& options);

}  // namespace pando::manager
