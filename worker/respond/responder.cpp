#include "worker/respond/responder.h"

#include "worker/answer/resolve.h"
#include "worker/request/response_builder.h"
#include "worker/request/tsig_check.h"
#include "worker/respond/chaos.h"

namespace pando::worker {

using dns::Opcode;
using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using ipc::Counter;

Responder::Responder(CounterArray& counters, SideTable side,
                     std::span<shm::TransferRow> transfers)
    : expiry_(std::move(side)),
      context_(batch_, Counting(counters, transfers), error_limit_),
      queries_(cache_, expiry_),
      transfers_(cache_, expiry_),
      forwards_(cache_) {}

void Responder::set_keys(std::shared_ptr<const KeySet> keys) {
  batch_.keys = std::move(keys);
  cookies_.reset();
  if (auto made = dns::ServerCookies::create(batch_.keys->cookie_secrets))
    cookies_.emplace(std::move(*made));
}

void Responder::begin(const zone::StoreView& view, std::uint64_t now, bool manager) {
  batch_.view = view;
  batch_.settings = &cache_.server(view);
  batch_.now = now;
  batch_.manager_connected = manager;
}

Outcome Responder::handle(ByteView message, const Client& client, std::span<std::uint8_t> space) {
  context_.begin(client, space);
  const Request& request = context_.request;
  const ParseOutcome parsed = parse_request(message, context_.request);
  if (parsed.kind == ParseOutcome::Kind::kDrop) {
    context_.counting.add(Counter::kDropped);
    return {};
  }
  count_request();
  const bool cookie_is_well_formed = take_cookie();  // errors carry cookies, too
  if (parsed.kind == ParseOutcome::Kind::kError) {
    if (parsed.rcode == Rcode::kNotImp)
      return respond_error(context_, parsed.rcode, Ede::kNotSupported);
    return respond_error(context_, parsed.rcode);
  }
  if (!cookie_is_well_formed) return respond_error(context_, Rcode::kFormErr);
  if (!request.has_question)
    return respond_error(context_, context_.cookie ? Rcode::kNoError : Rcode::kFormErr);
  switch (request.header.opcode) {
    case Opcode::kUpdate:
      return forwards_.update(context_);
    case Opcode::kNotify:
      return forwards_.notify(context_);
    default:
      return handle_query();
  }
}

Outcome Responder::handle_query() {
  if (auto failed = check_tsig(context_, VerifiedBy::kWorker)) return *failed;
  const dns::Question& question = context_.request.question;
  if (question.rr_class == RRClass::kCH) return answer_chaos(context_);
  if (question.rr_class != RRClass::kIN && question.rr_class != RRClass::kANY)
    return respond_error(context_, Rcode::kRefused, Ede::kNotAuthoritative);
  if (question.type == RRType::kAXFR || question.type == RRType::kIXFR)
    return transfers_.start(context_);
  return queries_.answer(context_);
}

/// RFC 7873 §5.2: false when the COOKIE option is malformed (§5.2.2: FORMERR).
bool Responder::take_cookie() {
  if (!cookies_ || !context_.asks(dns::kOptionCookie)) return true;
  const auto reply = cookies_->answer(context_.request.edns->cookie, context_.address(),
                                      static_cast<std::uint32_t>(batch_.now));
  if (reply.state == dns::CookieState::kMalformed) return false;
  context_.cookie = reply;
  return true;
}

void Responder::count_request() {
  constexpr Counter kByTransport[] = {Counter::kQueriesUdp, Counter::kQueriesTcp,
                                      Counter::kQueriesTls};
  Counting& counting = context_.counting;
  const Request& request = context_.request;
  counting.add(kByTransport[static_cast<std::size_t>(context_.client->transport)]);
  counting.opcode(static_cast<std::uint8_t>(request.header.opcode));
  if (!context_.address().is_v4()) counting.add(Counter::kQueriesV6);
  if (request.has_question && request.header.opcode == Opcode::kQuery) {
    const dns::RRType type = request.question.type;
    counting.type(static_cast<std::uint16_t>(type));
    if (type == dns::RRType::kSOA || type == dns::RRType::kIXFR || type == dns::RRType::kAXFR)
      counting.seen(context_.address());
  }
  if (request.tsig) counting.add(Counter::kQueriesTsig);
  if (!request.edns) return;
  counting.add(Counter::kQueriesEdns);
  if (request.edns->dnssec_ok) counting.add(Counter::kQueriesDo);
}

zone::ZoneView Responder::requested_zone() const {
  const Request& request = context_.request;
  if (!request.has_question) return {};
  const dns::Question& question = request.question;
  if (request.header.opcode != Opcode::kQuery) return batch_.view.zone_at(question.name);
  if (question.rr_class == RRClass::kCH) return {};
  return choose_zone(batch_.view, question.name, question.type);
}

std::size_t Responder::make_servfail(std::span<std::uint8_t> space) {
  context_.begin_response(space);
  return ResponseBuilder(context_, false, Rcode::kServFail).finish_unsigned();
}

std::size_t Responder::make_failure(std::span<std::uint8_t> space) {
  if (is_better_unanswered(context_)) return 0;
  return make_servfail(space);
}

}  // namespace pando::worker
