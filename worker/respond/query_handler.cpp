#include "worker/respond/query_handler.h"

#include <algorithm>

#include "worker/answer/render.h"
#include "worker/request/response_builder.h"
#include "zone/settings/acl.h"

namespace pando::worker {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using ipc::Counter;

/// Of a name error that is kept whole. A larger one is put together from its template: other
/// questions use the same one, so it is in the processor's caches, where a whole answer seldom is.
constexpr std::size_t kMaxDenialOctets = 256;

struct Refusal {
  Rcode rcode;
  Ede detail;
};

/// Refuses question types that cannot be asked for. FORMERR: types that are never a QTYPE (RFC 9824
/// §3.2 for NXNAME). NOTIMP: meta queries of other services (RFC 2930 TKEY, RFC 883 MAILA and
/// MAILB).
std::optional<Refusal> refuse_type(RRType type) {
  const auto number = static_cast<std::uint16_t>(type);
  if (type == RRType::kOPT || type == RRType::kTSIG || type == RRType::kNXNAME || number == 0)
    return Refusal{Rcode::kFormErr, Ede::kInvalidQueryType};
  const bool meta = number >= 128 && number <= 255;
  if (meta && type != RRType::kANY && type != RRType::kAXFR && type != RRType::kIXFR)
    return Refusal{Rcode::kNotImp, Ede::kNotSupported};
  return std::nullopt;
}

/// True when a server's name shares more of its end with QNAME than the cut. Compression makes that
/// name shorter in this message than in the cached referral, so it may fit here.
/// `labels`: those right below the cut that lead to servers.
bool names_below_cut_help(dns::NameView qname, const zone::RecordView& cut, dns::NameView cut_name,
                          const LabelSet& labels) {
  if (qname.size() == cut_name.size()) return false;
  dns::NameView child = qname;
  while (child.parent().size() > cut_name.size()) child = child.parent();
  return labels.may_have(child.data()) && cut.find(RRType::kNS).has_name_at_or_below(child);
}

bool wants_proofs(const Request& request) noexcept {
  return request.edns && request.edns->dnssec_ok;
}

/// Whether a zone's rules let the client ask it. `rules`: null when they are damaged.
bool admits(const DecodedZoneSettings* rules, const RequestContext& context) {
  return rules != nullptr &&
         (rules->everybody_may_query ||
          zone::allowed(rules->settings.allow_query, context.address(), context.key_name()));
}

Outcome refuse(const DecodedZoneSettings* rules, RequestContext& context) {
  if (rules == nullptr) return respond_error(context, Rcode::kServFail);
  return respond_error(context, Rcode::kRefused, Ede::kProhibited);
}

/// The question as kept answers are found by it; it is of class IN. What the response's memory
/// allows is not known yet, and may be less than the limit.
KeptAnswers::Key kept_key(const RequestContext& context) noexcept {
  const Request& request = context.request;
  const zone::ServerSettings& settings = *context.batch.settings;
  std::uint16_t limit = 0xFFFF;
  if (context.is_udp())
    limit = request.edns ? std::min(request.edns->udp_payload, settings.udp_payload) : 0;
  return {request.question.name, request.question.type, limit, wants_proofs(request),
          settings.minimal_responses};
}

/// Names the part of an answer that may be kept as a template: a referral, or what name errors
/// below one name have in common. False: the answer has none.
bool name_part(const zone::Match& match, const zone::NameKey& key, Foreseen& out) noexcept {
  using Kind = AnswerTemplates::Kind;
  if (match.damaged || match.empty_non_terminal) return false;
  const bool is_absent = !match.barrier && !match.exact;
  if (match.exact && !match.barrier && !match.exact.has_ns()) return false;
  const std::size_t labels = match.barrier ? match.barrier_labels : match.encloser_labels;
  out.part_kind = is_absent ? Kind::kNameError : Kind::kReferral;
  out.part_name = key.name().ancestor(key.label_count() - labels);
  return true;
}

/// All but what depends on the zone.
ResolveOptions options_for(const RequestContext& context) noexcept {
  ResolveOptions options;
  options.dnssec_ok = wants_proofs(context.request);
  options.minimal_responses = context.batch.settings->minimal_responses;
  options.put_off_referrals = options.put_off_denials = true;
  return options;
}

/// Of the part of the answer that may be kept.
AnswerTemplates::Key part_key(const RequestContext& context, const Foreseen& foreseen) noexcept {
  return {foreseen.part_kind, foreseen.zone.side_index(), foreseen.zone.data_version(),
          wants_proofs(context.request), foreseen.part_name};
}

/// Where KeptLookups may have a result for the question at a name of so many labels.
void sought_at(const RequestContext& context, std::size_t labels,
               std::optional<KeptLookups::Sought>& out) noexcept {
  out.reset();
  const dns::Question& question = context.request.question;
  if (question.rr_class != RRClass::kIN) return;
  const dns::NameView name = question.name;
  const std::size_t count = name.label_count();
  if (labels == 0 || count < labels) return;
  const bool is_whole = count == labels;
  // The zone itself answers a question for DS at a cut.
  if (is_whole && question.type == RRType::kDS) return;
  out.emplace(
      KeptLookups::Key{name.ancestor(count - labels), is_whole, wants_proofs(context.request)});
}

/// False if the record of a recalled lookup was damaged since.
bool is_sound(const Foreseen& recalled, const zone::RecordView& record) noexcept {
  if (!record) return !recalled.record.has_record();
  return recalled.part_kind != AnswerTemplates::Kind::kReferral || record.has_ns();
}

/// Whether the answer is a referral, which is not kept whole.
bool refers(const zone::Match& match, const zone::ZoneView& zone, RRType type) noexcept {
  if (match.barrier) return match.barrier.has_ns();
  // The zone itself answers a question for DS at the cut.
  return match.exact && match.exact.has_ns() && type != RRType::kDS &&
         match.encloser_labels > zone.apex().label_count();
}

}  // namespace

Outcome QueryHandler::answer(RequestContext& context) {
  const dns::Question& question = context.request.question;
  if (const auto refused = refuse_type(question.type))
    return respond_error(context, refused->rcode, refused->detail);
  if (const Foreseen* const foreseen = context.foreseen; foreseen && foreseen->is_recalled) {
    const zone::RecordView record = foreseen->record.record_in(foreseen->zone);
    if (is_sound(*foreseen, record)) return answer_recalled(context, record);
  }
  Asked asked = look_for(context);
  if (asked.kept != nullptr && asked.kept->version == context.batch.view.version()) {
    const zone::ZoneView zone = context.batch.view.zone_at(asked.kept->bookmark);
    const DecodedZoneSettings* const rules = zone ? rules_of(context, zone) : nullptr;
    if (zone && !admits(rules, context)) return refuse(rules, context);
    if (zone && !has_expired(context, zone, rules))
      if (const auto repeated = repeat(context, zone, rules, *asked.kept)) return *repeated;
    asked.kept = nullptr;
  }
  if (context.key != nullptr)
    return answer_below(context, *context.key, context.nearest_zone, asked);
  const zone::NameKey name(question.name);
  return answer_below(context, name, context.batch.view.find_zone(name), asked);
}

/// Finds the question's kept answer, of whatever version.
QueryHandler::Asked QueryHandler::look_for(const RequestContext& context) noexcept {
  Asked asked;
  if (context.request.question.rr_class != RRClass::kIN) return asked;
  if (context.foreseen != nullptr && context.foreseen->kept.tag == 0) return asked;
  asked.may_be_kept = true;
  asked.key = kept_key(context);
  asked.place =
      context.foreseen != nullptr ? context.foreseen->kept : KeptAnswers::place_of(asked.key);
  asked.kept = kept_.find(asked.key, asked.place);
  return asked;
}

Outcome QueryHandler::answer_below(RequestContext& context, const zone::NameKey& name,
                                   const zone::ZoneView& nearest, Asked& asked) {
  const zone::StoreView& view = context.batch.view;
  const zone::ZoneView zone = choose_zone(view, name, context.request.question.type, nearest);
  if (asked.kept != nullptr && !kept_.renew(*asked.kept, asked.place, zone, view.version()))
    asked.kept = nullptr;
  const DecodedZoneSettings* const rules = zone ? rules_of(context, zone) : nullptr;
  if (zone && !admits(rules, context)) return refuse(rules, context);
  return answer_from(context, zone, name, rules, asked);
}

/// The rules of the zone that answers, for admits(). Some of these zones are noted as busy.
const DecodedZoneSettings* QueryHandler::rules_of(RequestContext& context,
                                                  const zone::ZoneView& zone) {
  if (sampler_.chooses_next()) context.counting.busy(zone.side_index());
  return cache_.zone(zone);
}

bool QueryHandler::has_expired(const RequestContext& context, const zone::ZoneView& zone,
                               const DecodedZoneSettings* rules) const {
  return rules->settings.is_secondary && expiry_.expired(zone, context.batch.now);
}

Outcome QueryHandler::answer_from(RequestContext& context, const zone::ZoneView& zone,
                                  const zone::NameKey& name, const DecodedZoneSettings* rules,
                                  const Asked& asked) {
  ResolveOptions options = options_for(context);
  options.zone_expired = zone && has_expired(context, zone, rules);
  options.key = &name;
  foreseen_ = context.foreseen;
  // A question for DS may be answered by the zone above.
  if (foreseen_ != nullptr && !foreseen_->zone.is_same(zone)) foreseen_ = nullptr;
  if (foreseen_ != nullptr) options.match = foreseen_->match;
  if (!zone || options.zone_expired) return answer_anew(context, zone, rules, options, nullptr);
  if (asked.kept != nullptr)
    if (const auto repeated = repeat(context, zone, rules, *asked.kept)) return *repeated;
  return answer_anew(context, zone, rules, options, asked.may_be_kept ? &asked : nullptr);
}

/// answer_from() for a question whose lookup is recalled: it led to this record, or to none.
Outcome QueryHandler::answer_recalled(RequestContext& context, const zone::RecordView& record) {
  foreseen_ = context.foreseen;
  const bool is_cut = foreseen_->part_kind == AnswerTemplates::Kind::kReferral;
  const zone::ZoneView& zone = foreseen_->zone;
  const DecodedZoneSettings* const rules = rules_of(context, zone);
  if (!admits(rules, context)) return refuse(rules, context);
  ResolveOptions options = options_for(context);
  options.zone_expired = has_expired(context, zone, rules);
  if (options.zone_expired) return answer_anew(context, zone, rules, options, nullptr);
  answer_.clear();
  if (is_cut) {
    answer_.cut = record;
    answer_.cut_name = foreseen_->part_name;
  } else {
    answer_.aa = true;
    answer_.absent = true;
    answer_.encloser = foreseen_->part_name;
    answer_.covering = record;
  }
  return respond(context, zone, rules, options, nullptr);
}

void QueryHandler::seek_lookup(const RequestContext& context,
                               std::optional<KeptLookups::Sought>& out) const noexcept {
  sought_at(context, lookups_.labels(), out);
  if (out) lookups_.fetch(*out);
}

bool QueryHandler::recall(const RequestContext& context, const KeptLookups::Sought& sought,
                          Foreseen& out) noexcept {
  const zone::StoreView& view = context.batch.view;
  const KeptLookups::Result* const found = lookups_.find(sought, view.version());
  if (found == nullptr) return false;
  const zone::ZoneView zone = view.zone_at(found->record);
  const dns::NameView child = sought.key.name;
  // Otherwise the store was damaged since.
  if (!zone || !zone.loaded() || zone.apex() != child.parent()) return false;
  const bool is_cut = found->kind == AnswerTemplates::Kind::kReferral;
  out.kept = {};
  out.zone = zone;
  out.match = nullptr;
  out.is_recalled = true;
  out.record = found->record;
  out.has_part = true;
  out.part_kind = found->kind;
  out.part = found->part;
  out.part_name = is_cut ? child : child.parent();
  templates_.fetch(out.part);
  found->record.fetch_record(zone, is_cut ? 1 : zone::RecordView::kFetchedLines);
  return true;
}

void QueryHandler::keep_lookup(const RequestContext& context, const Foreseen& foreseen) {
  if (!foreseen.has_part) return;
  const zone::Match& match = *foreseen.match;
  using Kind = AnswerTemplates::Kind;
  const bool is_absent = foreseen.part_kind == Kind::kNameError;
  if (!is_absent && !refers(match, foreseen.zone, context.request.question.type)) return;
  // Only a child of the apex: its lookup is that of all names below it.
  const std::size_t labels = foreseen.zone.apex().label_count() + 1;
  if (match.barrier ? match.barrier_labels != labels
                    : match.encloser_labels + (is_absent ? 1U : 0U) != labels)
    return;
  std::optional<KeptLookups::Sought> sought;
  sought_at(context, labels, sought);
  if (!sought || !lookups_.wants(*sought, foreseen.part_kind)) return;
  // Answers of the other names that do not exist are kept whole (NSEC3, a wildcard): see
  // look_for().
  if (is_absent && !templates_.has(part_key(context, foreseen), foreseen.part)) return;
  const zone::StoreView& view = context.batch.view;
  // Another zone answers for names at or below its apex.
  if (view.has_zone_at_or_below(sought->key.name)) return;
  const zone::RecordView cut = match.barrier ? match.barrier : match.exact;
  const zone::Bookmark record(foreseen.zone, is_absent ? match.nsec : cut);
  lookups_.keep(*sought, view.version(), {record, foreseen.part, foreseen.part_kind});
}

void QueryHandler::foresee(const RequestContext& context, const zone::Match& match,
                           Foreseen& out) const noexcept {
  const zone::ZoneView& zone = context.nearest_zone;
  out.zone = zone;
  out.match = &match;
  out.is_recalled = false;
  out.kept = {};
  out.has_part = name_part(match, *context.key, out);
  if (!refers(match, zone, context.request.question.type)) {
    out.kept = KeptAnswers::place_of(kept_key(context));
    kept_.fetch(out.kept);
  }
  if (!out.has_part) return;
  out.part = AnswerTemplates::place_of(part_key(context, out));
  templates_.fetch(out.part);
  match.nsec.fetch();
}

void QueryHandler::fetch(const Foreseen& foreseen) const noexcept {
  kept_.fetch_entry(foreseen.kept);
  if (foreseen.has_part) templates_.fetch_entry(foreseen.part);
}

/// The place of a part of the answer in hand.
AnswerPlace QueryHandler::place_of(const AnswerTemplates::Key& key) const noexcept {
  const bool is_known = foreseen_ != nullptr && foreseen_->is_part(key.kind, key.name);
  return is_known ? foreseen_->part : AnswerTemplates::place_of(key);
}

/// Responds with a kept answer; nullopt when this client's limit leaves something out of it.
std::optional<Outcome> QueryHandler::repeat(RequestContext& context, const zone::ZoneView& zone,
                                            const DecodedZoneSettings* rules,
                                            const KeptAnswers::Entry& kept) {
  if (context.request.edns) choose_options(context, zone, rules, kept.aa);
  ResponseBuilder response(context, kept.aa, static_cast<Rcode>(kept.rcode));
  if (!kept.suits(response.writer().room())) return std::nullopt;
  using Verdict = RateLimiter::Verdict;
  const Verdict verdict = is_rate_limited(context) ? count_response(context, kept.kind()) : Verdict::kSend;
  ++repeated_;
  if (verdict == Verdict::kDrop) return Outcome{};
  if (verdict == Verdict::kSlip)
    response.writer().set_tc();
  else
    static_cast<void>(response.writer().put_rendered(kept.records(), kept.counts));
  return response.finish();
}

/// Looks the answer up and responds with it. An answer that is `asked` for again is kept.
Outcome QueryHandler::answer_anew(RequestContext& context, const zone::ZoneView& zone,
                                  const DecodedZoneSettings* rules, const ResolveOptions& options,
                                  const Asked* asked) {
  resolve(zone, context.request.question, options, hasher_, answer_);
  return respond(context, zone, rules, options, asked);
}

/// Responds with the answer in hand, whose referral or denial may be postponed.
Outcome QueryHandler::respond(RequestContext& context, const zone::ZoneView& zone,
                              const DecodedZoneSettings* rules, const ResolveOptions& options,
                              const Asked* asked) {
  const Request& request = context.request;
  const dns::Question& question = request.question;
  denial_.reset();
  if (answer_.absent) choose_denial(question, zone, options);
  if (answer_.rcode == Rcode::kRefused && context.is_udp() && !may_send_error(context))
    return drop_limited(context);
  using Verdict = RateLimiter::Verdict;
  const bool limited = is_rate_limited(context);
  const bool keeps = asked != nullptr && !answer_.cut && kept_.wants(asked->place);
  const ResponseKind kind = limited || keeps ? kind_of(zone, answer_) : ResponseKind();
  const Verdict verdict = limited ? count_response(context, kind) : Verdict::kSend;
  if (verdict == Verdict::kDrop) return {};
  if (request.edns && zone) choose_options(context, zone, rules, answer_.aa);
  // RFC 1035 §6.2: an answer to class ANY is never authoritative, since other classes might have
  // more records.
  if (question.rr_class == RRClass::kANY) answer_.aa = false;
  ResponseBuilder response(context, answer_.aa, answer_.rcode, answer_.ede);
  if (verdict == Verdict::kSlip) {
    response.writer().set_tc();
    return response.finish();
  }
  const std::size_t room = response.writer().room();
  const bool truncated = put_answer(question, zone, options, response.writer());
  if (truncated) context.counting.add(Counter::kTruncated);
  response.set_rcode(answer_.rcode);  // a damaged referral is found while it is completed
  if (keeps && !truncated && may_repeat(response.writer().size()))
    keep(context, *asked, zone, room, kind, response.writer());
  return response.finish();
}

/// Whether the answer in hand is of a kind that is kept. `octets`: of the response.
bool QueryHandler::may_repeat(std::size_t octets) const noexcept {
  const bool is_answer = answer_.rcode == Rcode::kNoError || answer_.rcode == Rcode::kNXDomain;
  return is_answer && !answer_.ede && (!denial_ || octets <= kMaxDenialOctets);
}

/// Keeps the answer that `writer` has been given, with `room` for its records.
void QueryHandler::keep(const RequestContext& context, const Asked& asked,
                        const zone::ZoneView& zone, std::size_t room, const ResponseKind& kind,
                        const dns::MessageWriter& writer) {
  constexpr std::size_t kBehindName = 4;  // type and class
  const std::size_t begin = dns::kHeaderOctets + context.request.question.name.size() + kBehindName;
  KeptAnswers::Answered answered;
  answered.zone = zone;
  answered.version = context.batch.view.version();
  answered.records = ByteView(context.space).subspan(begin, writer.size() - begin);
  answered.counts = {writer.count(dns::Section::kAnswer), writer.count(dns::Section::kAuthority),
                     writer.count(dns::Section::kAdditional)};
  if (writer.is_crowded()) answered.only_room = static_cast<std::uint16_t>(room);
  answered.rcode = answer_.rcode;
  constexpr std::uint8_t kAa = 0x04;  // in the header's third octet
  answered.aa = (context.space[2] & kAa) != 0;
  answered.kind = kind;
  kept_.keep(asked.key, asked.place, answered);
}

/// Chooses the EDNS options that tell of the zone.
void QueryHandler::choose_options(RequestContext& context, const zone::ZoneView& zone,
                                  const DecodedZoneSettings* rules, bool authoritative) const {
  const dns::Question& question = context.request.question;
  if (question.type == RRType::kSOA && context.asks(dns::kOptionExpire) && authoritative &&
      question.name == zone.apex())
    context.expire = expiry_.remaining(zone, rules->settings, context.batch.now);
  // RFC 9660 §3.2: also with referrals, name errors and failures, but only for loaded zones.
  if (context.asks(dns::kOptionZoneVersion) && zone.loaded()) context.version_of = zone;
}

/// Answers with a kept denial, or completes the answer now; a wildcard may make it a positive one.
void QueryHandler::choose_denial(const dns::Question& question, const zone::ZoneView& zone,
                                 const ResolveOptions& options) {
  const AnswerTemplates::Key key{AnswerTemplates::Kind::kNameError, zone.side_index(),
                                 zone.data_version(), options.dnssec_ok, answer_.encloser};
  denial_ = templates_.find(key, place_of(key));
  if (!denial_ && templates_.wants(key)) {
    const zone::RecordView covering = answer_.covering;
    const dns::Question below{dns::Name(key.name), RRType::kA, RRClass::kIN};
    if (deny_below(zone, below, options, hasher_, answer_))
      templates_.keep(key, answer_, below);
    else
      templates_.keep_none(key);
    answer_.clear();
    answer_.aa = true;
    answer_.encloser = key.name;
    answer_.covering = covering;
    denial_ = templates_.find(key);
  }
  if (denial_ && !denial_->records) denial_.reset();
  if (denial_)
    answer_.rcode = Rcode::kNXDomain;
  else
    complete_denial(zone, question, options, hasher_, answer_);
}

/// Renders the answer; returns true when it was truncated.
bool QueryHandler::put_answer(const dns::Question& question, const zone::ZoneView& zone,
                              const ResolveOptions& options, dns::MessageWriter& writer) {
  if (answer_.cut) return put_referral(question, zone, options, writer);
  if (denial_) return put_denial(question, zone, options, writer);
  return render(answer_, question, writer);
}

/// Puts the kept denial and the NSEC that covers the question's name. When both do not fit, the
/// answer is rendered whole: compression against the question's labels may make it shorter.
bool QueryHandler::put_denial(const dns::Question& question, const zone::ZoneView& zone,
                              const ResolveOptions& options, dns::MessageWriter& writer) {
  const auto mark = writer.mark();
  if (denial_->records->put(writer) == dns::MessageTemplate::Put::kComplete) {
    const zone::RecordView covering = answer_.covering;
    // One record may cover both the name and the wildcard.
    if (!covering || std::ranges::equal(covering.relative_owner(), denial_->proof_owner))
      return false;
    if (render_covering_nsec(covering, zone.apex(), answer_.encloser, question, writer))
      return false;
    writer.roll_back(mark);
  }
  const bool aa = answer_.aa;
  complete_denial(zone, question, options, hasher_, answer_);
  answer_.aa = aa;
  return render(answer_, question, writer);
}

/// Puts the cached referral, or renders it now; returns true when the referral was truncated.
bool QueryHandler::put_referral(const dns::Question& question, const zone::ZoneView& zone,
                                const ResolveOptions& options, dns::MessageWriter& writer) {
  if (zone.has_shared_sets() && put_shared_referral(question, zone, options, writer)) return false;
  const AnswerTemplates::Key key{AnswerTemplates::Kind::kReferral, zone.side_index(),
                                 zone.data_version(), options.dnssec_ok, answer_.cut_name};
  using Put = dns::MessageTemplate::Put;
  const auto mark = writer.mark();
  const zone::RecordView cut = answer_.cut;
  const std::optional<AnswerTemplates::Kept> kept = templates_.find(key, place_of(key));
  const Put put = !kept || !kept->records ? Put::kNothing : kept->records->put(writer);
  if (put == Put::kComplete) return false;
  if (put == Put::kTruncated &&
      !names_below_cut_help(question.name, cut, key.name, kept->server_labels)) {
    writer.set_tc();
    return true;
  }
  writer.roll_back(mark);
  complete_referral(zone, question, options, hasher_, answer_);
  const bool truncated = render(answer_, question, writer);
  if (answer_.rcode == Rcode::kNoError && templates_.wants(key)) {
    answer_.clear();
    answer_.cut = cut;
    answer_.cut_name = key.name;
    const dns::Question at_cut{dns::Name(key.name), RRType::kNS, RRClass::kIN};
    complete_referral(zone, at_cut, options, hasher_, answer_);
    templates_.keep(key, answer_, at_cut);
  }
  return truncated;
}

/// Puts a referral from the template of its set of servers. False if the set is not shared or not
/// kept, the referral does not fit, or a server is at or below the cut. Message and answer are then
/// unchanged.
bool QueryHandler::put_shared_referral(const dns::Question& question, const zone::ZoneView& zone,
                                       const ResolveOptions& options, dns::MessageWriter& writer) {
  // Owners of NSEC3 records are names that the compression table of a template's message lacks.
  if (options.dnssec_ok && zone.denial() == zone::Denial::kNsec3) return false;
  const zone::RecordView cut = answer_.cut;
  const dns::NameView cut_name = answer_.cut_name;
  const zone::RRsetView ns = cut.find(RRType::kNS);
  if (!ns || !ns.is_shared() || ns.count() == 0) return false;
  const ServerSets::Key key{zone.side_index(), zone.data_version(), options.dnssec_ok,
                            cut.shared_set(RRType::kNS), ns.ttl()};
  const ServerSets::Kept* const kept = find_servers(key, zone, options);
  answer_.cut = cut;
  answer_.cut_name = cut_name;
  if (kept == nullptr || !kept->records) return false;
  if (kept->has_servers_in_zone && ns.has_name_at_or_below(cut_name)) return false;
  const auto mark = writer.mark();
  const std::ptrdiff_t labels_before = cut_name.data() - question.name.data();
  const dns::NameView in_message(writer.question_name().data() + labels_before, cut_name.size());
  if (kept->records->put_servers(writer, in_message) &&
      (!options.dnssec_ok || put_security(question, zone, options, writer))) {
    kept->records->put_addresses(writer);
    return true;
  }
  writer.roll_back(mark);
  answer_.cut = cut;
  answer_.cut_name = cut_name;
  return false;
}

/// The template of the cut's set of servers, made now if it is worth it; null if there is none.
/// answer_ does not survive the making.
const ServerSets::Kept* QueryHandler::find_servers(const ServerSets::Key& key,
                                                   const zone::ZoneView& zone,
                                                   const ResolveOptions& options) {
  const ServerSets::Kept* const kept = server_sets_.find(key);
  if (kept != nullptr || !server_sets_.wants(key)) return kept;
  const dns::Question apex{dns::Name(zone.apex()), RRType::kNS, RRClass::kIN};
  // A server at or below this very cut: another cut's referral will show the addresses' order.
  if (answer_.cut.find(RRType::kNS).has_name_at_or_below(answer_.cut_name)) return nullptr;
  const bool sound = refer_to_servers(zone, apex, options, hasher_, answer_);
  const ServerSets::Kept* const made = sound ? server_sets_.keep(key, answer_, apex) : nullptr;
  answer_.clear();
  return made;
}

/// Puts DS or the proof of its absence behind the NS records. False when that does not fit, or when
/// the store is damaged. answer_ does not survive it.
bool QueryHandler::put_security(const dns::Question& question, const zone::ZoneView& zone,
                                const ResolveOptions& options, dns::MessageWriter& writer) {
  add_cut_security(zone, question, options, hasher_, answer_);
  const bool fits = answer_.rcode == Rcode::kNoError && render_authority(answer_, question, writer);
  answer_.clear();
  return fits;
}

}  // namespace pando::worker
