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
  /// A referral of QNAME itself is only named in Answer::cut, since the caller may hold a rendered
  /// copy.
  bool put_off_referrals = false;
  /// A name that does not exist is only named in Answer::encloser, for the same reason. Its
  /// covering NSEC is found nevertheless.
  bool put_off_denials = false;
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

/// Continues where resolve() postponed a denial: a wildcard answers, or a name error is proven.
void complete_denial(const zone::ZoneView& zone, const dns::Question& question,
                     const ResolveOptions& options, dns::Nsec3Hasher& hasher, Answer& out) noexcept;

/// Answers with what all name errors directly below the question's name, their closest encloser,
/// have in common: NXDOMAIN, SOA and the proof that no wildcard exists. Its NSEC is
/// Answer::covering. False when a wildcard exists, when the proof cannot be separated (NSEC3), or
/// when the store is damaged.
[[nodiscard]] bool deny_below(const zone::ZoneView& zone, const dns::Question& question,
                              const ResolveOptions& options, dns::Nsec3Hasher& hasher,
                              Answer& out) noexcept;

/// Adds the referral that resolve() postponed: NS, DS or the proof that no DS exists, and glue. The
/// result depends on the cut alone: not on the question's type, nor on the labels below.
void complete_referral(const zone::ZoneView& zone, const dns::Question& question,
                       const ResolveOptions& options, dns::Nsec3Hasher& hasher,
                       Answer& out) noexcept;

/// Answers with the NS RRset of Answer::cut and its servers' addresses as if the cut were the
/// zone's apex: what all cuts with these servers have in common, if no server is at or below the
/// cut. False when the store is damaged.
[[nodiscard]] bool refer_to_servers(const zone::ZoneView& zone, const dns::Question& question,
                                    const ResolveOptions& options, dns::Nsec3Hasher& hasher,
                                    Answer& out) noexcept;

/// Adds the DS of the postponed referral's cut, or the proof that there is none.
void add_cut_security(const zone::ZoneView& zone, const dns::Question& question,
                      const ResolveOptions& options, dns::Nsec3Hasher& hasher,
                      Answer& out) noexcept;

}  // namespace pando::worker
