#pragma once

#include "dns/dnssec/nsec3_hash.h"
#include "dns/message/message.h"
#include "worker/answer/answer.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// What an answer depends on besides the version and the question.
struct ResolveOptions {
  bool dnssec_ok = false;         ///< DO bit (RFC 3225): signatures and proofs
  bool minimal_responses = true;  ///< no NS, and addresses only with NS (configuration key)
  bool zone_expired = false;      ///< the chosen zone's expires_at has passed
  /// A referral of QNAME itself is only named in Answer::cut, since it may be at hand already.
  bool put_off_referrals = false;
};

/// RFC 1034 §4.3.2 step 2: the zone that answers the question; null when there is none. A DS query
/// for an apex goes to the parent zone when we serve that (RFC 4035 §3.1.4.1).
[[nodiscard]] zone::ZoneView choose_zone(const zone::StoreView& snapshot, dns::NameView name,
                                         dns::RRType type) noexcept;

/// Answers `question` from `zone` (as choose_zone gave it; null refuses). A pure function of its
/// arguments: no I/O, clock, log or allocation. `question` must outlive `out`. Meta types other
/// than ANY, classes other than IN and opcodes other than QUERY are the caller's business.
/// RFC 1034 §4.3.2 step 3 as corrected by RFC 2308, 4035, 4592, 5155, 6604, 6672, 8020 and 8482;
/// docs/conformance.md has the decisions.
void resolve(const zone::ZoneView& zone, const dns::Question& question,
             const ResolveOptions& options, dns::Nsec3Hasher& hasher, Answer& out) noexcept;

/// Works out the referral that resolve() put off: NS, DS or the proof that there is none, glue. It
/// depends on nothing but the cut: not on the question's type, nor on the labels below.
void complete_referral(const zone::ZoneView& zone, const dns::Question& question,
                       const ResolveOptions& options, dns::Nsec3Hasher& hasher,
                       Answer& out) noexcept;

}  // namespace pando::worker
