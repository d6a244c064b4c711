#include "worker/respond/query_handler.h"

#include "worker/answer/resolve.h"
#include "worker/request/response_builder.h"
#include "zone/settings/acl.h"

namespace pando::worker {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using ipc::Counter;
using Verdict = RateLimiter::Verdict;

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

/// Whether a zone's rules let the client ask it. `rules`: null when they are damaged.
bool admits(const DecodedZoneSettings* rules, const RequestContext& context) {
  return rules != nullptr &&
         (rules->everybody_may_query ||
          zone::allowed(rules->settings.allow_query, context.requester()));
}

Outcome refuse(const DecodedZoneSettings* rules, RequestContext& context) {
  if (rules == nullptr) return respond_error(context, Rcode::kServFail);
  return respond_error(context, Rcode::kRefused, Ede::kProhibited);
}

}  // namespace

Outcome QueryHandler::answer(RequestContext& context) {
  const dns::Question& question = context.request.question;
  if (const auto refused = refuse_type(question.type))
    return respond_error(context, refused->rcode, refused->detail);
  cache_.find(context, inquiry_);
  if (inquiry_.zone) return answer_from(context, nullptr);
  if (context.key != nullptr) return answer_below(context, *context.key, context.nearest_zone);
  const zone::NameKey name(question.name);
  return answer_below(context, name, context.batch.view.find_zone(name));
}

/// Answers from the zone that the question's name is found in.
Outcome QueryHandler::answer_below(RequestContext& context, const zone::NameKey& name,
                                   const zone::ZoneView& nearest) {
  const RRType type = context.request.question.type;
  cache_.set_zone(inquiry_, choose_zone(context.batch.view, name, type, nearest));
  return answer_from(context, &name);
}

/// The rules of the zone that answers, for admits(). Some of these zones are noted as busy.
const DecodedZoneSettings* QueryHandler::rules_of(RequestContext& context,
                                                  const zone::ZoneView& zone) {
  if (sampler_.chooses_next()) context.counting.busy(zone.side_index());
  return settings_.zone(zone);
}

/// Answers from the zone of the inquiry. `name`: key of the question's name, if it was made.
Outcome QueryHandler::answer_from(RequestContext& context, const zone::NameKey* name) {
  const zone::ZoneView& zone = inquiry_.zone;
  const DecodedZoneSettings* const rules = zone ? rules_of(context, zone) : nullptr;
  if (zone && !admits(rules, context)) return refuse(rules, context);
  const bool expires = zone && rules->settings.is_secondary;
  const bool expired = expires && expiry_.expired(zone, context.batch.now);
  if (inquiry_.whole != nullptr && !expired)
    if (const auto repeated = repeat(context, *inquiry_.whole, rules)) return *repeated;
  ResolveOptions& options = inquiry_.options;
  options.dnssec_ok = context.request.dnssec_ok();
  options.minimal_responses = context.batch.settings->minimal_responses;
  options.zone_expired = expired;
  options.postpone = true;
  options.key = name;
  options.match = inquiry_.foreseen != nullptr ? inquiry_.foreseen->match : nullptr;
  if (!inquiry_.is_recalled || expired)
    resolve(zone, context.request.question, options, hasher_, inquiry_.answer);
  cache_.complete(inquiry_);
  return respond(context, inquiry_.answer, rules);
}

/// Responds with a cached answer; nullopt when the answer exceeds this client's limit.
std::optional<Outcome> QueryHandler::repeat(RequestContext& context,
                                            const WholeAnswers::Entry& whole,
                                            const DecodedZoneSettings* rules) {
  if (context.request.edns) choose_options(context, inquiry_.zone, rules, whole.aa);
  ResponseBuilder response(context, whole.aa, static_cast<Rcode>(whole.rcode));
  if (!whole.suits(response.writer().room())) return std::nullopt;
  const Verdict verdict =
      is_rate_limited(context) ? count_response(context, whole.kind()) : Verdict::kSend;
  cache_.count_repeated();
  if (verdict == Verdict::kDrop) return Outcome{};
  if (verdict == Verdict::kSlip)
    response.writer().set_tc();
  else
    static_cast<void>(response.writer().put_rendered(whole.records(), whole.counts));
  return response.finish();
}

/// Responds with the answer of the inquiry.
Outcome QueryHandler::respond(RequestContext& context, Answer& answer,
                              const DecodedZoneSettings* rules) {
  const zone::ZoneView& zone = inquiry_.zone;
  if (answer.rcode == Rcode::kRefused && context.is_udp() && !may_send_error(context))
    return drop_limited(context);
  const Verdict verdict =
      is_rate_limited(context) ? count_response(context, kind_of(zone, answer)) : Verdict::kSend;
  if (verdict == Verdict::kDrop) return {};
  if (context.request.edns && zone) choose_options(context, zone, rules, answer.aa);
  // RFC 1035 §6.2: an answer to class ANY is never authoritative, since other classes might have
  // more records.
  if (context.request.question.rr_class == RRClass::kANY) answer.aa = false;
  ResponseBuilder response(context, answer.aa, answer.rcode, answer.ede);
  if (verdict == Verdict::kSlip) {
    response.writer().set_tc();
    return response.finish();
  }
  const bool truncated = cache_.write(inquiry_, response.writer());
  if (truncated) context.counting.add(Counter::kTruncated);
  response.set_rcode(answer.rcode);  // a damaged referral is found while it is completed
  return response.finish();
}

/// Chooses the EDNS options about the zone.
void QueryHandler::choose_options(RequestContext& context, const zone::ZoneView& zone,
                                  const DecodedZoneSettings* rules, bool authoritative) const {
  const dns::Question& question = context.request.question;
  if (question.type == RRType::kSOA && context.asks(dns::kOptionExpire) && authoritative &&
      question.name == zone.apex())
    context.expire = expiry_.remaining(zone, rules->settings, context.batch.now);
  // RFC 9660 §3.2: also with referrals, name errors and failures, but only for loaded zones.
  if (context.asks(dns::kOptionZoneVersion) && zone.loaded()) context.version_of = zone;
}

}  // namespace pando::worker
