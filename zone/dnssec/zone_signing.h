#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "dns/types.h"
#include "zone/builder/zone_builder.h"
#include "zone/dnssec/apex_key_sets.h"
#include "zone/dnssec/set_signer.h"
#include "zone/dnssec/signing_denial.h"
#include "zone/read/store_view.h"

namespace pando::zone {

struct ZoneSigningOptions {
  SignatureTimes times;
  std::optional<dns::Serial> serial{};  ///< of the signed zone; none: the source's
  ParentRequest parent_request = ParentRequest::kNone;  ///< CDS and CDNSKEY records
  unsigned threads = 1;   ///< that sign, beside the caller's; 0 = the caller's alone
  SigningDenial denial{};
};

struct ZoneSigningReport {
  std::uint64_t signatures = 0;
  std::uint64_t dropped = 0;  ///< records of the source that a signer makes itself, or a digest
};

/// Signs a zone's source with a chain of NSEC records (RFC 4034 §4, RFC 4035 §2) or NSEC3 records
/// (RFC 5155 §7.1): adds the keys, RRSIG records, and those of the chain. Derived records of the
/// source (dns/dnssec/derived_types.h), and ZONEMD at the apex, are left out. Glue, delegations' NS
/// and occluded names stay, and have no signature. TTLs: keys have the SOA's; records of the chain
/// the lesser of the SOA's and its MINIMUM (RFC 9077).
///
/// The records come in canonical order, hence into the builder's straight way. Signing takes the
/// time: some 40 µs for each P-256 signature, two for each name with one set. NSEC3 takes 24 bytes
/// of memory for each name, as its records come in the order of their hashes, behind all names.
/// kExists: the work was cancelled (base/progress.h); kInvalid: no zone, two names of one hash, or
/// a zone's name too long for NSEC3; kUnsupported: OpenSSL does not sign; other errors are the
/// builder's. After an error the builder is of no use.
Result<ZoneSigningReport> sign_zone(const ZoneView& source, const SigningKeys& keys,
                                    const ZoneSigningOptions& options, ZoneBuilder& into);

/// Copies a signed zone without its derived records: the source, with the serial `serial`. Errors
/// are those of sign_zone().
Status copy_source(const ZoneView& signed_zone, dns::Serial serial, ZoneBuilder& into);

}  // namespace pando::zone
