#include "worker/answer/resolve.h"

#include <algorithm>

#include "worker/answer/additional.h"
#include "worker/answer/denial.h"
#include "worker/answer/walk.h"

namespace pando::worker {

namespace {

using dns::NameView;
using dns::RRType;
using Event = ResolveTrace::Event;
using zone::Match;
using zone::RecordView;
using zone::RRsetView;

/// Result of one name of a chain.
enum class Step { kDone, kFollow };

/// The data that answers, and their origin.
struct Source {
  RecordView record;
  bool synthesized = false;   ///< from a wildcard
  NameView closest_encloser;  ///< of the walk's name; only when synthesized
};

void fail(Answer& out, dns::Rcode rcode, Ede ede) noexcept {
  out.clear();
  out.rcode = rcode;
  out.ede = ede;
}

/// Answers SERVFAIL because the store is damaged; the rest of the stored data is not trusted.
Step give_up(Walk& walk) noexcept {
  walk.note(Event::kDamaged);
  fail(walk.out, dns::Rcode::kServFail, Ede::kInvalidData);
  return Step::kDone;
}

bool is_cut(const RecordView& record, std::size_t owner_labels, const Walk& walk) noexcept {
  return record.has_ns() && owner_labels > walk.apex_labels;
}

/// RFC 2308 §3: the SOA accompanies negative answers. Its TTL there is the lesser of its own and
/// MINIMUM (§5), the last four octets of the RDATA.
/// False: the apex has no SOA, so the store is damaged and the answer is SERVFAIL.
bool add_negative_soa(Walk& walk) noexcept {
  const RRsetView soa = find_data(walk.zone.apex_record(), RRType::kSOA);
  const ByteView rdata = soa ? soa.first_rdata() : ByteView();
  if (rdata.size() < 4) {
    give_up(walk);
    return false;
  }
  Entry entry = make_entry(walk, walk.apex, soa);
  entry.ttl = std::min(entry.ttl, load_be32(rdata.data() + rdata.size() - 4));
  add_authority(walk, entry);
  return true;
}

void answer_no_data(Walk& walk, const RecordView& record) noexcept {
  if (add_negative_soa(walk)) prove_nodata(walk, walk.name, record);
}

void answer_wildcard_no_data(Walk& walk, NameView closest_encloser) noexcept {
  if (add_negative_soa(walk)) prove_wildcard_nodata(walk, closest_encloser);
}

void answer_name_error(Walk& walk, NameView closest_encloser, const Match& wildcard) noexcept {
  // RFC 6604 §3: the RCODE is that of the last name in the chain.
  walk.out.rcode = dns::Rcode::kNXDomain;
  if (add_negative_soa(walk)) prove_name_error(walk, closest_encloser, wildcard);
}

/// RFC 4035 §3.1.4: DS or the proof that no DS exists.
void add_security(Walk& walk, const RecordView& cut, NameView owner) noexcept {
  if (!walk.proves()) return;
  if (const RRsetView ds = find_data(cut, RRType::kDS))
    add_authority(walk, make_entry(walk, owner, ds));
  else
    prove_nodata(walk, owner, cut);
}

/// RFC 1034 §4.3.2 step 3b, RFC 4035 §3.1.4: NS, then DS or the proof that no DS exists.
void add_referral(Walk& walk, const RecordView& cut, NameView owner) noexcept {
  const RRsetView ns = find_data(cut, RRType::kNS);
  if (!ns) return static_cast<void>(give_up(walk));
  Entry entry = make_entry(walk, owner, ns);
  entry.parts = Parts::kData;  // RFC 4035 §2.2: the NS RRset at a cut is not signed
  add_authority(walk, entry);
  add_security(walk, cut, owner);
  add_referral_glue(walk, ns, owner);
}

void refer_at_cut(Walk& walk, const RecordView& cut, NameView owner) noexcept {
  // RFC 1035 §4.1.1: AA describes the first owner name of the answer section. AA therefore stays
  // set when an alias led here.
  walk.note(Event::kReferral, owner);
  walk.out.aa = !walk.out.answer.empty();
  if (!walk.options.postpone || walk.out.aa) return add_referral(walk, cut, owner);
  walk.out.postponed = {AnswerPart::Kind::kReferral, owner, cut};
}

Walk begin_walk(const zone::ZoneView& zone, const dns::Question& question,
                const ResolveOptions& options, dns::Nsec3Hasher& hasher, Answer& out) noexcept {
  return {
      zone,   zone.apex(), zone.apex().label_count(), question.name.view(), question.type, options,
      hasher, out};
}

/// Follows an alias when its target is in the zone and was not looked up before.
Step follow_alias(Walk& walk, NameView target) noexcept {
  // Other zones of this server are not consulted: the client has to check this server's authority
  // for them.
  if (!target.is_at_or_below(walk.apex)) {
    walk.note(Event::kOutside, target);
    return Step::kDone;
  }
  dns::Name scratch;
  for (const Entry& entry : walk.out.answer)
    if (entry.rrset.type() != RRType::kDNAME && entry.owner.name(scratch) == target) {
      walk.note(Event::kLoop, target);
      return Step::kDone;  // a loop ends with the records found so far
    }
  walk.note(Event::kAlias, target);
  walk.name = target;
  return Step::kFollow;
}

/// RFC 1034 §4.3.2 step 3a.
Step follow_cname(Walk& walk, const Source& source) noexcept {
  const RRsetView cname = find_data(source.record, RRType::kCNAME);
  const ByteView rdata = cname.first_rdata();
  if (!dns::is_wire_name(rdata)) return give_up(walk);
  add_answer(walk, make_entry(walk, walk.name, cname));
  return follow_alias(walk, NameView(rdata.data(), rdata.size()));
}

/// RFC 6672 §3.2 step 3C: adds the DNAME and its synthesized CNAME, then follows the target.
Step redirect_by_dname(Walk& walk, const RecordView& record, NameView owner) noexcept {
  const RRsetView dname = find_data(record, RRType::kDNAME);
  const ByteView rdata = dname.first_rdata();
  if (!dns::is_wire_name(rdata)) return give_up(walk);
  if (!walk.out.first) walk.out.first = record;
  if (!has_rrset(walk.out.answer, dname)) add_answer(walk, make_entry(walk, owner, dname));
  const ByteView prefix(walk.name.data(), walk.name.size() - owner.size());
  walk.note(Event::kDname, owner);
  if (prefix.size() + rdata.size() > dns::kMaxNameOctets) {
    walk.note(Event::kNameTooLong);
    walk.out.rcode = dns::Rcode::kYXDomain;  // RFC 6672 §2.2: the new name is too long
    return Step::kDone;
  }
  const auto target = dns::Name::join(prefix, NameView(rdata.data(), rdata.size()));
  if (!target) return Step::kDone;  // not reached: the length was checked
  Entry cname;
  cname.owner = walk.name;
  cname.ttl = dname.ttl().seconds;  // RFC 6672 §3.1: the TTL of the DNAME
  cname.synthesized = true;
  cname.cname_target = walk.out.keep(*target);
  add_answer(walk, cname);
  // The synthesized CNAME answers a CNAME query (RFC 1034 §4.3.2 step 3a).
  return walk.type == RRType::kCNAME ? Step::kDone : follow_alias(walk, cname.cname_target);
}

/// The RRset that answers ANY: the first one outside DNSSEC (RFC 8482 §4.1), else any.
RRsetView choose_one_rrset(const RecordView& record) noexcept {
  RRsetView chosen;
  record.for_each_rrset([&](const RRsetView& rrset) {
    if (rrset.count() == 0) return;
    if (!chosen || chosen.type() == RRType::kNSEC) chosen = rrset;
  });
  return chosen;
}

/// The RRset whose signatures answer QTYPE=RRSIG: the first that has signatures. One RRset
/// suffices, as for ANY (RFC 8482 §7 covers RRSIG too).
RRsetView choose_signed_rrset(const RecordView& record) noexcept {
  RRsetView chosen;
  record.for_each_rrset([&](const RRsetView& rrset) {
    if (!chosen && rrset.signature_count() > 0) chosen = rrset;
  });
  return chosen;
}

RRsetView find_wanted(const RecordView& record, RRType type) noexcept {
  switch (type) {
    case RRType::kANY:
      return choose_one_rrset(record);
    case RRType::kRRSIG:
      return choose_signed_rrset(record);
    default:
      return find_data(record, type);
  }
}

/// Authority and additional sections of a positive answer. Minimal responses carry neither, except
/// the addresses of name servers for QTYPE=NS: resolvers prime with that query (RFC 8109 §3).
void add_courtesy_records(Walk& walk, const RRsetView& rrset) noexcept {
  const bool is_ns = rrset.type() == RRType::kNS;
  const bool full = !walk.options.minimal_responses;
  if (full || (is_ns && walk.type == RRType::kNS)) add_target_addresses(walk, rrset, walk.name);
  if (!full || is_ns) return;
  const RRsetView ns = find_data(walk.zone.apex_record(), RRType::kNS);
  if (!ns) return;
  add_authority(walk, make_entry(walk, walk.apex, ns, Need::kOptional));
  add_target_addresses(walk, ns, walk.apex);
}

/// RFC 1034 §4.3.2 steps 3a and 3c: the node is found, or synthesized, and is authoritative.
Step answer_from(Walk& walk, const Source& source) noexcept {
  const RRsetView rrset = find_wanted(source.record, walk.type);
  // RFC 4035 §2.5: an alias may own RRSIG records, so a query for RRSIG addresses the alias itself.
  const bool alias = !rrset && source.record.has_cname() && walk.type != RRType::kRRSIG;
  if (!rrset && !alias) {
    source.synthesized ? answer_wildcard_no_data(walk, source.closest_encloser)
                       : answer_no_data(walk, source.record);
    return Step::kDone;
  }
  if (!walk.out.first) walk.out.first = source.record;
  if (source.synthesized) prove_wildcard_answer(walk, source.closest_encloser);
  if (alias) return follow_cname(walk, source);
  Entry entry = make_entry(walk, walk.name, rrset);
  if (walk.type == RRType::kRRSIG) entry.parts = Parts::kSignatures;
  add_answer(walk, entry);
  add_courtesy_records(walk, rrset);
  return Step::kDone;
}

/// RFC 4592 §3.3.1: the source of synthesis is "*" below the closest encloser, and no other name.
/// The wildcard may be an empty non-terminal, which exists and has no data.
Step synthesize_wildcard(Walk& walk, NameView closest_encloser) noexcept {
  const dns::Name wildcard = wildcard_of(closest_encloser);
  const Match match = walk.look_up(wildcard);
  if (match.damaged) return give_up(walk);
  if (match.exact) {
    walk.note(Event::kWildcard, wildcard);
    return answer_from(walk, {match.exact, true, closest_encloser});
  }
  if (match.empty_non_terminal) {
    walk.note(Event::kEmptyWildcard, wildcard);
    answer_wildcard_no_data(walk, closest_encloser);
  } else {
    walk.note(Event::kNoWildcard, closest_encloser);
    answer_name_error(walk, closest_encloser, match);
  }
  return Step::kDone;
}

/// A record above the name ends the authority of this zone or redirects the name.
Step stop_at_barrier(Walk& walk, const Match& match) noexcept {
  const NameView owner = walk.name.ancestor(walk.name.label_count() - match.barrier_labels);
  if (!is_cut(match.barrier, match.barrier_labels, walk))
    return redirect_by_dname(walk, match.barrier, owner);
  refer_at_cut(walk, match.barrier, owner);
  return Step::kDone;
}

/// Names the closest encloser; complete_denial() continues from there.
Step postpone_denial(Walk& walk, NameView closest_encloser) noexcept {
  walk.out.postponed = {AnswerPart::Kind::kDenial, closest_encloser, walk.covering};
  return Step::kDone;
}

Step answer_current_name(Walk& walk) noexcept {
  Match room;
  const Match& match = walk.look_up_current(room);
  const std::size_t labels = walk.name.label_count();
  if (match.damaged) return give_up(walk);
  if (match.barrier) return stop_at_barrier(walk, match);
  if (match.exact) {
    // RFC 4035 §3.1.4.1: the parent answers only DS at a cut; other types get a referral.
    if (is_cut(match.exact, labels, walk) && walk.type != RRType::kDS) {
      refer_at_cut(walk, match.exact, walk.name);
      return Step::kDone;
    }
    walk.note(Event::kExists);
    return answer_from(walk, {match.exact, false, {}});
  }
  if (match.empty_non_terminal) {  // RFC 8020 §2: the name exists and blocks wildcards
    walk.note(Event::kEmptyNonTerminal);
    answer_no_data(walk, {});
    return Step::kDone;
  }
  walk.covering = match.nsec;
  const NameView closest_encloser = walk.name.ancestor(labels - match.encloser_labels);
  return walk.options.postpone && walk.out.answer.empty()
             ? postpone_denial(walk, closest_encloser)
             : synthesize_wildcard(walk, closest_encloser);
}

/// Continues where resolve() postponed a denial.
void complete_denial(Walk& walk, const AnswerPart& denial) noexcept {
  walk.out.aa = true;
  walk.covering = denial.record;
  Step step = synthesize_wildcard(walk, denial.name);
  for (std::size_t names = 1; step == Step::kFollow && names < kMaxChain; ++names)
    step = answer_current_name(walk);
}

/// NXDOMAIN, SOA and the proof that no wildcard exists.
bool deny_below(Walk& walk, NameView encloser) noexcept {
  if (walk.proves() && walk.zone.denial() != zone::Denial::kNsec) return false;
  const Match wildcard = walk.look_up(wildcard_of(encloser));
  if (wildcard.damaged || wildcard.barrier || wildcard.exact || wildcard.empty_non_terminal)
    return false;
  walk.out.aa = true;
  walk.out.rcode = dns::Rcode::kNXDomain;
  if (!add_negative_soa(walk)) return false;
  if (!walk.proves()) return true;
  add_denial(walk, wildcard.nsec, RRType::kNSEC);
  return walk.out.authority.size() == 2;
}

/// What all cuts with these servers have in common, if no server is at or below the cut.
bool refer_to_servers(Walk& walk, const AnswerPart& cut) noexcept {
  const RRsetView ns = find_data(cut.record, RRType::kNS);
  if (!ns) return false;
  Entry entry = make_entry(walk, walk.apex, ns);
  entry.parts = Parts::kData;
  add_authority(walk, entry);
  add_referral_glue(walk, ns, cut.name);
  return !walk.out.overflow;
}

}  // namespace

zone::ZoneView choose_zone(const zone::StoreView& view, const zone::NameKey& key, RRType type,
                           const zone::ZoneView& nearest) noexcept {
  const NameView name = key.name();
  if (type != RRType::kDS || !nearest || name.is_root() || nearest.apex().size() != name.size())
    return nearest;
  const zone::ZoneView parent = view.find_zone(name.parent());
  if (!parent) return nearest;
  if (parent.loaded()) {
    // A cut between them: `parent` is a more distant ancestor, not the parent. Then the child zone
    // answers that it has no DS itself (RFC 4035 §3.1.4.1).
    const Match match = parent.lookup(key);
    if (match.barrier && match.barrier_labels > parent.apex().label_count() &&
        match.barrier.has_ns())
      return nearest;
  }
  return parent;
}

void resolve(const zone::ZoneView& zone, const dns::Question& question,
             const ResolveOptions& options, dns::Nsec3Hasher& hasher, Answer& out) noexcept {
  out.clear();
  if (!zone) return fail(out, dns::Rcode::kRefused, Ede::kNotAuthoritative);
  if (!zone.loaded()) return fail(out, dns::Rcode::kServFail, Ede::kNotReady);
  if (options.zone_expired) return fail(out, dns::Rcode::kServFail, Ede::kInvalidData);
  out.aa = true;
  Walk walk = begin_walk(zone, question, options, hasher, out);
  for (std::size_t names = 0; names < kMaxChain; ++names)
    if (answer_current_name(walk) == Step::kDone) return;
}

bool resolve_part(const zone::ZoneView& zone, const dns::Question& question, const AnswerPart& part,
                  const ResolveOptions& options, dns::Nsec3Hasher& hasher, Answer& out) noexcept {
  using Kind = AnswerPart::Kind;
  const AnswerPart of = part;  // which may be cleared now
  out.clear();
  Walk walk = begin_walk(zone, question, options, hasher, out);
  switch (of.kind) {
    case Kind::kNone:
      break;
    case Kind::kReferral:
      add_referral(walk, of.record, of.name);
      break;
    case Kind::kServers:
      return refer_to_servers(walk, of);
    case Kind::kSecurity:
      add_security(walk, of.record, of.name);
      break;
    case Kind::kDenial:
      complete_denial(walk, of);
      break;
    case Kind::kNameErrors:
      return deny_below(walk, of.name);
  }
  return out.rcode != dns::Rcode::kServFail;
}

}  // namespace pando::worker
