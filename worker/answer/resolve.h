#pragma once

#include "dns/dnssec/nsec3_hash.h"
#include "dns/message/message.h"
#include "worker/answer/answer.h"
#include "zone/read/store_view.h"

namespace pando::worker {

class ResolveTrace;

/// Inputs of an answer besides the version and the question.
struct ResolveOptions {
  bool dnssec_ok = false;         ///< DO bit (RFC 3225): signatures and proofs
  bool minimal_responses = true;  ///< no NS, and addresses only with NS (configuration key)
  bool zone_expired = false;      ///< the chosen zone's expires_at has passed
  /// A referral of QNAME itself, or the denial of QNAME, is only named in Answer::postponed, since
  /// the caller may have it cached.
  bool postpone = false;
  const zone::NameKey* key = nullptr;  ///< of QNAME, if the caller has it; it changes nothing
  /// With `key`: the result of its lookup in this zone, wanted as zone::wanted_in() says, if the
  /// caller has it; it changes nothing.
  const zone::Match* match = nullptr;
  ResolveTrace* trace = nullptr;  ///< gets the steps, if any; they change nothing
};

/// RFC 1034 §4.3.2 step 2: the zone that answers the question, or null. A DS query for an apex goes
/// to the parent zone when this server has that zone (RFC 4035 §3.1.4.1). `nearest`: the result of
/// find_zone() for the name.
[[nodiscard]] zone::ZoneView choose_zone(const zone::StoreView& view, const zone::NameKey& name,
                                         dns::RRType type, const zone::ZoneView& nearest) noexcept;
[[nodiscard]] inline zone::ZoneView choose_zone(const zone::StoreView& view, dns::NameView name,
                                                dns::RRType type) noexcept {
  const dns::Name copy(name);
  const zone::NameKey key(copy);
  return choose_zone(view, key, type, view.find_zone(key));
}

/// Answers `question` from `zone` (as choose_zone gave it; null refuses). A pure function of its
/// arguments: no I/O, clock, log or allocation. `question` must outlive `out`. The caller handles
/// meta types other than ANY, classes other than IN and opcodes other than QUERY.
/// RFC 1034 §4.3.2 step 3 as corrected by RFC 2308, 4035, 4592, 5155, 6604, 6672, 8020 and 8482;
/// docs/explanation/conformance.md has the decisions.
void resolve(const zone::ZoneView& zone, const dns::Question& question,
             const ResolveOptions& options, dns::Nsec3Hasher& hasher, Answer& out) noexcept;

/// Answers with one part alone, for a question at or below its name. A pure function as resolve().
/// `part` may be `out.postponed`, which completes the answer. Entries are valid while `part.name`
/// is in place. False when the store is damaged. For kNameErrors also when a wildcard exists, or
/// when the proof of its absence cannot be separated (NSEC3); for kServers also when there are too
/// many addresses. A referral's parts depend on the cut alone: not on the question's type, nor on
/// the labels below.
[[nodiscard]] bool resolve_part(const zone::ZoneView& zone, const dns::Question& question,
                                const AnswerPart& part, const ResolveOptions& options,
                                dns::Nsec3Hasher& hasher, Answer& out) noexcept;

}  // namespace pando::worker
