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

Responder::Responder(CounterArray& counters, SideTable side, std::span<shm::TransferRow> transfers)
    : expiry_(std::move(side)),
      queries_(cache_, expiry_),
      transfers_(cache_, expiry_),
      forwards_(cache_) {
  read_.reserve(kTogether);
  for (std::size_t i = 0; i < kTogether; ++i)
    read_.push_back({RequestContext(batch_, Counting(counters, transfers), limits_), {}, {}, {}});
}

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
  parse(message, client, 0);
  return answer_parsed(0, space);
}

void Responder::read(std::span<const Arrival> arrivals) {
  PANDO_ASSERT(arrivals.size() <= kTogether);
  const bool repeats = 2 * queries_.cache().take_repeated() > arrivals_.size();
  arrivals_ = arrivals;
  // Whole answers of the cache serve questions that repeat, without a lookup.
  are_parsed_ = !repeats && arrivals.size() > 1 && batch_.view.octets() > read_ahead_above_;
  if (!are_parsed_) return;
  for (std::size_t i = 0; i < arrivals.size(); ++i)
    parse(arrivals[i].message, arrivals[i].client, i);
  read_ahead();
}

Outcome Responder::answer(std::size_t i, std::span<std::uint8_t> space) {
  if (are_parsed_) return answer_parsed(i, space);
  parse(arrivals_[i].message, arrivals_[i].client, 0);
  return answer_parsed(0, space);
}

void Responder::parse(ByteView message, const Client& client, std::size_t place) {
  Read& read = read_[place];
  read.context.begin(client);
  read.parsed = parse_request(message, read.context.request);
}

/// Makes the keys of the questions that zones answer, and finds their zones. Looks up the names
/// whose lookups are not cached.
void Responder::read_ahead() {
  std::array<std::uint8_t, kTogether> questions;
  std::size_t count = 0;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const Request& request = read_[i].context.request;
    if (read_[i].parsed.kind == ParseOutcome::Kind::kGood && request.has_question &&
        request.header.opcode == Opcode::kQuery)
      questions[count++] = static_cast<std::uint8_t>(i);
  }
  AnswerCache& cache = queries_.cache();
  const bool recalls = cache.begin_recall(count);
  const std::span<const std::uint8_t> all(questions.data(), count);
  if (recalls) recall(all);
  std::array<std::uint8_t, kTogether> looked_up;
  ahead_.clear();
  for (const std::uint8_t i : all) {
    const RequestContext& context = read_[i].context;
    if (context.foreseen != nullptr) continue;
    const Request& request = context.request;
    looked_up[ahead_.count()] = i;
    ahead_.add(request.question.name, request.dnssec_ok());
  }
  if (ahead_.count() > 0) ahead_.run(batch_.view);
  for (std::size_t i = 0; i < ahead_.count(); ++i) {
    Read& read = read_[looked_up[i]];
    read.context.key = &ahead_.key(i);
    read.context.nearest_zone = ahead_.zone(i);
    if (!ahead_.zone(i) || !ahead_.zone(i).loaded()) continue;
    cache.foresee(read.context, ahead_.match(i), read.foreseen);
    read.context.foreseen = &read.foreseen;
  }
  for (const std::uint8_t i : all)
    if (read_[i].context.foreseen != nullptr) cache.fetch(read_[i].foreseen);
}

/// Gives the requests in these places the results of lookups that are cached.
void Responder::recall(std::span<const std::uint8_t> places) noexcept {
  AnswerCache& cache = queries_.cache();
  for (const std::uint8_t i : places) cache.seek_lookup(read_[i].context, read_[i].lookup);
  for (const std::uint8_t i : places) {
    Read& read = read_[i];
    if (read.lookup && cache.recall(read.context, *read.lookup, read.foreseen))
      read.context.foreseen = &read.foreseen;
  }
}

Outcome Responder::answer_parsed(std::size_t place, std::span<std::uint8_t> space) {
  last_ = place;
  RequestContext& context = read_[place].context;
  const ParseOutcome parsed = read_[place].parsed;
  const Request& request = context.request;
  context.begin_response(space);
  if (parsed.kind == ParseOutcome::Kind::kDrop) {
    context.counting.add(Counter::kDropped);
    return {};
  }
  count_request();
  const bool cookie_is_well_formed = take_cookie();  // errors carry cookies, too
  if (parsed.kind == ParseOutcome::Kind::kError) {
    if (parsed.rcode == Rcode::kNotImp)
      return respond_error(context, parsed.rcode, Ede::kNotSupported);
    return respond_error(context, parsed.rcode);
  }
  if (!cookie_is_well_formed) return respond_error(context, Rcode::kFormErr);
  if (!request.has_question)
    return respond_error(context, context.cookie ? Rcode::kNoError : Rcode::kFormErr);
  switch (request.header.opcode) {
    case Opcode::kUpdate:
      return forwards_.update(context);
    case Opcode::kNotify:
      return forwards_.notify(context);
    default:
      return handle_query();
  }
}

Outcome Responder::handle_query() {
  if (auto failed = check_tsig(context(), VerifiedBy::kWorker)) return *failed;
  const dns::Question& question = context().request.question;
  if (question.rr_class == RRClass::kCH) return answer_chaos(context());
  if (question.rr_class != RRClass::kIN && question.rr_class != RRClass::kANY)
    return respond_error(context(), Rcode::kRefused, Ede::kNotAuthoritative);
  if (question.type == RRType::kAXFR || question.type == RRType::kIXFR)
    return transfers_.start(context());
  return queries_.answer(context());
}

/// RFC 7873 §5.2: false when the COOKIE option is malformed (§5.2.2: FORMERR).
bool Responder::take_cookie() {
  if (!cookies_ || !context().asks(dns::kOptionCookie)) return true;
  const auto reply = cookies_->answer(context().request.edns->cookie, context().address(),
                                      static_cast<std::uint32_t>(batch_.now));
  if (reply.state == dns::CookieState::kMalformed) return false;
  context().cookie = reply;
  return true;
}

void Responder::count_request() {
  constexpr Counter kByTransport[] = {Counter::kQueriesUdp, Counter::kQueriesTcp,
                                      Counter::kQueriesTls};
  Counting& counting = context().counting;
  const Request& request = context().request;
  counting.add(kByTransport[static_cast<std::size_t>(context().client->transport)]);
  counting.opcode(static_cast<std::uint8_t>(request.header.opcode));
  if (!context().address().is_v4()) counting.add(Counter::kQueriesV6);
  if (request.has_question && request.header.opcode == Opcode::kQuery) {
    const dns::RRType type = request.question.type;
    counting.type(static_cast<std::uint16_t>(type));
    if (type == dns::RRType::kSOA || type == dns::RRType::kIXFR || type == dns::RRType::kAXFR)
      counting.seen(context().address());
  }
  if (request.tsig) counting.add(Counter::kQueriesTsig);
  if (!request.edns) return;
  counting.add(Counter::kQueriesEdns);
  if (request.dnssec_ok()) counting.add(Counter::kQueriesDo);
}

zone::ZoneView Responder::requested_zone() const {
  const Request& request = last().request;
  if (!request.has_question) return {};
  const dns::Question& question = request.question;
  if (request.header.opcode != Opcode::kQuery) return batch_.view.zone_at(question.name);
  if (question.rr_class == RRClass::kCH) return {};
  return choose_zone(batch_.view, question.name, question.type);
}

bool Responder::sends_reply(const ReplyLimit& limit, Bytes& reply) {
  if (!limit.client || reply.size() < dns::kHeaderOctets) return true;
  constexpr std::uint8_t kTc = 0x02;     // in the header's third octet
  constexpr std::uint8_t kRcode = 0x0f;  // in the fourth
  const auto rcode = static_cast<Rcode>(reply[3] & kRcode);
  // RFC 8945 §5.3.2: NOTAUTH reports a signature that is not right. With SERVFAIL the signature may
  // not have been checked, as with an update beyond the pace of forwarding.
  if (limit.is_signed && rcode != Rcode::kNotAuth && rcode != Rcode::kServFail) return true;
  std::array<std::uint8_t, dns::kMaxNameOctets> name;
  const dns::Question zone{limit.zone, RRType::kSOA, RRClass::kIN};
  const auto verdict = limits_.rates.judge(batch_.settings->rate_limit, *limit.client,
                                           kind_without_records(rcode, &zone, name), batch_.now);
  if (verdict == RateLimiter::Verdict::kSend) return true;
  // A signature would not fit a truncated reply, so the client would not take it.
  const bool slips = verdict == RateLimiter::Verdict::kSlip && !limit.is_signed;
  context().counting.add(Counter::kRateLimited);
  context().counting.add(slips ? Counter::kRateSlipped : Counter::kDropped);
  if (slips) reply[2] |= kTc;
  return slips;
}

ReplyLimit Responder::reply_limit() const {
  const RequestContext& context = last();
  if (!is_rate_limited_client(context)) return {};
  const Request& request = context.request;
  return {context.address(), request.has_question ? request.question.name : dns::Name(),
          request.tsig.has_value()};
}

std::size_t Responder::make_servfail(std::span<std::uint8_t> space) {
  context().begin_response(space);
  return ResponseBuilder(context(), false, Rcode::kServFail).finish_unsigned();
}

std::size_t Responder::make_failure(std::span<std::uint8_t> space) {
  if (is_better_unanswered(context())) return 0;
  return make_servfail(space);
}

}  // namespace pando::worker
