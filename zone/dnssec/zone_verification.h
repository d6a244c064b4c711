#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zone/dnssec/set_verifier.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// The result of validating a zone's data as of one time.
struct Verification {
  bool is_signed = false;        ///< has a DNSKEY at the apex; the rest is about such zones
  std::uint64_t signatures = 0;  ///< verifications made
  std::uint64_t fault_count = 0;
  std::vector<std::string> faults;  ///< the first ones, in the order of the names, one line each
  std::optional<SignatureEnd> first_end;  ///< of the signatures that are good now

  bool given_up = false;  ///< Progress::give_up() came before the end; no verdict

  [[nodiscard]] bool ok() const noexcept { return fault_count == 0; }
};

struct VerifyOptions {
  std::uint64_t now = 0;  ///< seconds since 1970
  unsigned threads = 1;   ///< that verify, beside the caller's; 0 = the caller's alone
  /// One signature in so many is verified. All are, at the apex and when this is 1. The others'
  /// keys and times are checked; for zones that this program has just signed.
  unsigned one_in = 1;
};

/// Verifies all signatures of a zone (RFC 4035 §5.3), its denial of existence: NSEC (RFC 4035 §2.3)
/// or the NSEC3 chain that NSEC3PARAM names (RFC 5155 §7.1), and its digest (ZONEMD, RFC 8976). A
/// zone without DNSKEY and digest has no fault, unless it has signatures.
///
/// Takes as long as the processor needs for the signatures: some 25 µs each with RSA of 2048 bits,
/// 80 µs with P-256. Not for a thread that others wait for. The zone's version stays pinned.
[[nodiscard]] Verification verify_zone(const ZoneView& zone, const VerifyOptions& options);

/// The reason why validators reject `child` whatever its signatures are: its parent zone `parent`
/// is signed and has DS records for it, of which none matches its keys (RFC 4035 §5.2). Empty: no
/// such reason, also if all DS records have unknown digests or algorithms.
[[nodiscard]] std::string delegation_problem(const ZoneView& parent, const ZoneView& child);

}  // namespace pando::zone
