#pragma once

#include "dns/types.h"

namespace pando::dns {

/// Whether a signer makes the records of this type. All other records of a zone are its source.
/// Type and place decide, never a key: a replayed change then means the same under other keys.
/// Below the apex, DNSKEY, CDS and CDNSKEY are source (RFC 9615 §2: signals under `_dsboot`).
[[nodiscard]] constexpr bool is_derived(RRType type, bool at_apex) noexcept {
  switch (type) {
    case RRType::kRRSIG:
    case RRType::kNSEC:
    case RRType::kNSEC3:
      return true;
    case RRType::kDNSKEY:
    case RRType::kNSEC3PARAM:
    case RRType::kCDS:
    case RRType::kCDNSKEY:
      return at_apex;
    default:
      return false;
  }
}

/// Whether signing a zone leaves the source's record out. A digest of the zone (ZONEMD, RFC 8976)
/// covers derived records, too, so it would be wrong afterwards.
[[nodiscard]] constexpr bool is_dropped_by_signing(RRType type, bool at_apex) noexcept {
  return is_derived(type, at_apex) || (at_apex && type == RRType::kZONEMD);
}

}  // namespace pando::dns
