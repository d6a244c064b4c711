#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "manager/dnssec/zone_signer.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

struct ChangeSigningOptions {
  std::uint64_t now = 0;             ///< seconds since 1970
  std::size_t max_names = SIZE_MAX;  ///< limit of names that are signed in this thread
  /// Names whose signatures that end before `renewed_before` (seconds since 1970) are made anew,
  /// although nothing else changes there.
  std::span<const dns::Name> renewed{};
  std::uint64_t renewed_before = 0;
  /// ZoneSigner::denial_of() the zone; none: the signer's own, as has_signed() says.
  std::optional<zone::SigningDenial> denial{};
};

/// Completes a change of a zone's source by the records that a signer makes: RRSIG and NSEC or NSEC3
/// records of all names that the change affects, also those below a delegation or DNAME that comes
/// or goes, and the record before in the chain (RFC 4034 §4, RFC 4035 §2.2, §2.3, RFC 5155 §7.1).
/// The result is the zone that zone::sign_zone() makes of the changed source. Pure but for the
/// signatures' octets. check_denial(), which is older than this function and shares no code with
/// it, accepts the result.
///
/// Derived records in `source` (dns/dnssec/derived_types.h), and ZONEMD at the apex, are left out.
/// Signatures of unchanged sets are kept. `source` removes the SOA record and adds one with a later
/// serial. Without
/// effect on the source, and without names to renew, the result is empty.
///
/// Precondition: signer.denial_of(before) is that of the options. Nullopt: more than `max_names`
/// names. kCorrupt: the result would not be valid, which is a fault of this server; kInvalid: no SOA
/// would be left, or a name has the NSEC3 hash of another one; kUnsupported: OpenSSL does not sign.
Result<std::optional<zone::Changeset>> sign_change(const zone::ZoneView& before,
                                                   const zone::Changeset& source,
                                                   const ZoneSigner& signer,
                                                   const ChangeSigningOptions& options);

}  // namespace pando::manager
