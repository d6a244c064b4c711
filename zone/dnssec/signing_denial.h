#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/dnssec/nsec3_hash.h"
#include "dns/name.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// How a zone that is signed here denies names: with NSEC records (RFC 4034 §4), or with NSEC3
/// records (RFC 5155 §3). The other members are of NSEC3 alone. RFC 9276 §3.1 wants neither
/// iterations nor salt.
struct SigningDenial {
  bool is_nsec3 = false;
  bool is_opt_out = false;       ///< delegations without DS have no record (RFC 5155 §6)
  std::uint16_t iterations = 0;  ///< at most dns::kMaxNsec3Iterations
  Bytes salt{};                  ///< at most dns::kMaxSaltOctets
  bool operator==(const SigningDenial&) const = default;
};

/// RDATA of the NSEC3PARAM record (RFC 5155 §4.2).
[[nodiscard]] Bytes nsec3param_rdata(const SigningDenial& denial);
/// RDATA of an NSEC3 record (RFC 5155 §3.2).
[[nodiscard]] Bytes nsec3_rdata(const SigningDenial& denial, const dns::Nsec3Hash& next,
                                ByteView type_bitmap);
/// TTL of NSEC3PARAM, which only servers of the zone look at: BIND's, too, is not to be cached.
inline constexpr dns::Ttl kNsec3ParamTtl{0};

/// Owner of the NSEC3 record of a hash (RFC 5155 §3). Precondition: can_have_nsec3().
[[nodiscard]] dns::Name nsec3_owner(const dns::Nsec3Hash& hash, dns::NameView apex);
/// False: names would be too long with the label of a hash before the apex.
[[nodiscard]] bool can_have_nsec3(dns::NameView apex) noexcept;

/// Whether a zone that was signed here denies names in this way.
[[nodiscard]] bool is_denied_by(const ZoneView& zone, const SigningDenial& denial);

}  // namespace pando::zone
