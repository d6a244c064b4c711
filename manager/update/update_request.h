#pragma once

#include <string>

#include "config/settings/zone_table.h"
#include "manager/update/update_message.h"
#include "manager/update/update_policy.h"
#include "zone/build/draft.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// What an update's outcome depends on besides the zone's data and the message.
struct UpdateRules {
  const zone::Acl* allow_update = nullptr;
  Requester requester;
  config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
  std::uint64_t now = 0;  ///< seconds since 1970
  zone::DataLimits limits;
};

/// NOERROR with what changes (perhaps nothing), or another RCODE with a reason and no changes.
struct UpdateOutcome {
  dns::Rcode rcode = dns::Rcode::kNoError;
  zone::Changeset changes;
  std::string reason;
  std::optional<dns::ExtendedError> code = std::nullopt;  ///< as in Refusal
};

/// RFC 2136 §3 for one message against one version: permission (§3.3), prerequisites (§3.2),
/// updates (§3.4), serial (§3.6). Pure: no clock, no I/O. Permission comes first so that
/// prerequisites do not tell strangers what a zone holds.
///
/// Decisions where the RFC leaves room: an update of a signed zone has to bring what the signer
/// would (check_signed_update); in another zone RRSIG, NSEC, NSEC3, SIG and NXT records and what
/// would make it a signed one (DNSKEY, NSEC3PARAM at the apex) are refused.
UpdateOutcome compute_update(const zone::StoreView& snapshot, const UpdateMessage& message,
                             const UpdateRules& rules);

/// Whether the update concerns more than `limit` records, about: those that it names, those that
/// are in `zone` where it deletes a set or a name, and sets whose TTL it changes. An update that
/// names more is not compared with the zone, so it costs `limit` look-ups at most.
bool concerns_more_than(std::uint64_t limit, const zone::ZoneView& zone,
                        const UpdateMessage& message);

}  // namespace pando::manager
