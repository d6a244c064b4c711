#pragma once

#include <string>

#include "config/settings/zone_table.h"
#include "manager/request/update_message.h"
#include "manager/update/update_policy.h"
#include "zone/draft/draft.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Inputs of an update's outcome besides the zone's data and the message.
struct UpdateRules {
  const zone::Acl* allow_update = nullptr;
  Requester requester;
  config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
  std::uint64_t now = 0;  ///< seconds since 1970
  zone::DataLimits limits;
  bool is_signed_here = false;  ///< the server makes RRSIG, NSEC and the like
};

/// NOERROR with the changeset (possibly empty), or another RCODE with a reason and no changes.
struct UpdateOutcome {
  dns::Rcode rcode = dns::Rcode::kNoError;
  zone::Changeset changes;
  std::string reason;
  std::optional<dns::ExtendedError> code = std::nullopt;  ///< as in Refusal
};

/// Executes RFC 2136 §3 for one message against one version: permission (§3.3), prerequisites
/// (§3.2), updates (§3.4), serial (§3.6). Pure: no clock, no I/O. Permission comes first, so that
/// prerequisites do not reveal the zone's data to strangers.
///
/// Decisions that the RFC leaves open: an update of a signed zone must bring the signer's records
/// itself (check_signed_update). In an unsigned zone, RRSIG, NSEC, NSEC3, SIG and NXT records are
/// refused. DNSKEY and NSEC3PARAM at the apex are refused there, too, since they would make the
/// zone a signed one.
///
/// In a zone that this server signs, the records of a signer (dns/dnssec/derived_types.h) are
/// refused, and a digest of the zone. To delete a name or such a set leaves them alone.
/// Prerequisites see them.
UpdateOutcome compute_update(const zone::StoreView& snapshot, const UpdateMessage& message,
                             const UpdateRules& rules);

/// True if the update affects more than about `limit` records. The count has the records in
/// the message, the zone's records in deleted sets and names, and sets with a changed TTL. A
/// message with more than `limit` records is not compared with the zone, so the cost is at most `limit`
/// look-ups.
bool concerns_more_than(std::uint64_t limit, const zone::ZoneView& zone,
                        const UpdateMessage& message);

}  // namespace pando::manager
