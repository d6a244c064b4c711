#pragma once

#include <cstdint>
#include <vector>

#include "dns/name.h"
#include "zone/dnssec/name_signer.h"
#include "zone/dnssec/set_signer.h"

namespace pando::zone {

/// What a zone's CDS and CDNSKEY records ask of its parent (RFC 7344 §4, RFC 8078 §4).
enum class ParentRequest : std::uint8_t {
  kNone,     ///< there are no such records
  kKeys,     ///< DS records of the zone's keys
  kRemoval,  ///< no DS records
};

/// The sets at a zone's apex that name its keys: DNSKEY, and CDS and CDNSKEY by `request`. CDS
/// records have SHA-256 digests of the keys that are to have DS records. The sets have the TTL `ttl`,
/// and RDATA in canonical order.
[[nodiscard]] std::vector<MadeSet> apex_key_sets(dns::NameView apex, const SigningKeys& keys,
                                                 dns::Ttl ttl, ParentRequest request);

}  // namespace pando::zone
