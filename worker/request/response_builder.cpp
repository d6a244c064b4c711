#include "worker/request/response_builder.h"

#include <algorithm>

namespace pando::worker {

namespace {

using dns::Rcode;
using ipc::Counter;

constexpr std::size_t kPlainUdpOctets = 512;  // RFC 1035 §4.2.1
/// RFC 8467 §4.1: responses are as long as a multiple of this.
constexpr std::size_t kPaddedBlockOctets = 468;

/// RFC 6891 §6.2.3 to §6.2.5: the smaller of the client's and this server's limits; a limit below
/// 512 counts as 512.
std::size_t size_limit(const RequestContext& context) noexcept {
  if (!context.is_udp()) return std::min(context.space.size(), dns::kMaxMessageOctets);
  if (!context.request.edns) return kPlainUdpOctets;
  // The space of an AF_XDP frame is as large as the interface's MTU lets it be.
  const std::size_t ours = std::min<std::size_t>(
      {context.batch.settings->udp_payload, kUdpSpace, context.space.size()});
  return std::max(kPlainUdpOctets, std::min<std::size_t>(ours, context.request.edns->udp_payload));
}

/// Most octets of the TSIG record to come.
std::size_t signature_room(const RequestContext& context) noexcept {
  if (context.session) return context.session->overhead();
  if (!context.has_managers_key) return 0;
  // RFC 8945 §4.2: owner, fixed fields, algorithm, times, the longest MAC, Other Data.
  constexpr std::size_t kFixed = 10 + 6 + 2 + 2 + 2 + 2 + 2 + 64 + 6;
  const dns::TsigRecord& tsig = *context.request.tsig;
  return tsig.key_name.size() + tsig.algorithm_name.size() + kFixed;
}

}  // namespace

dns::Header response_header(const dns::Header& request, bool authoritative) {
  dns::Header header;
  header.id = request.id;
  header.qr = true;
  header.opcode = request.opcode;
  header.aa = authoritative;
  header.rd = request.rd;
  header.cd = request.cd;
  return header;
}

ResponseBuilder::ResponseBuilder(RequestContext& context, bool authoritative, Rcode rcode,
                                 std::optional<Ede> detail)
    : context_(context),
      rcode_(rcode),
      writer_(context.space, size_limit(context)),
      opt_(context.batch.settings->udp_payload, rcode,
           context.request.edns && context.request.edns->dnssec_ok),
      room_(signature_room(context)) {
  const Request& request = context.request;
  writer_.put_header(response_header(request.header, authoritative));
  if (request.has_question) {
    const dns::Question& question = request.question;
    // 12 + 255 + 4 octets always fit into 512.
    if (!writer_.put_question(question.name, question.type, question.rr_class)) writer_.set_tc();
  }
  if (request.edns) {
    add_options(detail);
    room_ += opt_.size();
  }
  writer_.reserve(room_);
}

void ResponseBuilder::add_options(std::optional<Ede> detail) {
  const zone::ServerSettings& settings = *context_.batch.settings;
  if (!settings.identity.empty() && context_.asks(dns::kOptionNsid))
    opt_.add_nsid(settings.identity);
  if (context_.expire) opt_.add_expire(*context_.expire);
  if (const zone::ZoneView& zone = context_.version_of)
    opt_.add_zone_version(static_cast<std::uint8_t>(zone.apex().label_count()), zone.serial());
  if (context_.cookie) opt_.add_cookie(context_.cookie->option);
  if (!context_.is_udp() && context_.asks(dns::kOptionKeepalive)) {
    const std::uint32_t idle_ms = context_.is_tls() ? settings.tls_idle_ms : settings.tcp_idle_ms;
    opt_.add_keepalive(static_cast<std::uint16_t>(std::min<std::uint32_t>(idle_ms / 100, 65535)));
  }
  if (detail)
    opt_.add_extended_error(static_cast<dns::ExtendedError>(static_cast<std::uint16_t>(*detail)));
}

/// Hides the size of an answer from those who see the encrypted octets. RFC 7830 §4: only a response
/// to a padded query is padded, and only over an encrypted transport.
void ResponseBuilder::add_padding() {
  if (!context_.is_tls() || !context_.asks(dns::kOptionPadding)) return;
  const std::size_t size =
      writer_.size() + opt_.size() + dns::kOptionHeaderOctets + signature_room(context_);
  const std::size_t missing = (kPaddedBlockOctets - size % kPaddedBlockOctets) % kPaddedBlockOctets;
  if (size + missing <= dns::kMaxMessageOctets && size + missing <= context_.space.size())
    opt_.add_padding(missing);
}

std::size_t ResponseBuilder::finish_unsigned() {
  writer_.release(room_);
  if (context_.request.edns) add_padding();
  writer_.set_rcode(rcode_);
  // RFC 6891 §6.1.1: an OPT in the response when, and only when, there was one in the request.
  if (context_.request.edns && !writer_.put_raw_additional(opt_.record())) writer_.set_tc();
  return writer_.finish().size();
}

/// Counts a response that its handler has not counted.
RateLimiter::Verdict ResponseBuilder::count() {
  const Request& request = context_.request;
  std::array<std::uint8_t, dns::kMaxNameOctets> name;
  return count_response(
      context_,
      kind_without_records(rcode_, request.has_question ? &request.question : nullptr, name));
}

Outcome ResponseBuilder::finish() {
  if (is_rate_limited(context_) && !context_.is_counted) {
    const RateLimiter::Verdict verdict = count();
    if (verdict == RateLimiter::Verdict::kDrop) return {};
    if (verdict == RateLimiter::Verdict::kSlip) {
      constexpr std::uint8_t kAa = 0x04;  // in the header's third octet
      ResponseBuilder truncated(context_, (context_.space[2] & kAa) != 0, rcode_);
      truncated.writer().set_tc();
      return truncated.finish();
    }
  }
  std::size_t size = finish_unsigned();
  context_.counting.rcode(static_cast<std::uint16_t>(rcode_));
  if (context_.has_managers_key) {
    Outcome outcome = forward_to_manager(context_, ipc::ForwardKind::kSignedQuery);
    if (outcome.action == Action::kForward) outcome.size = size;  // a failure has its own message
    return outcome;
  }
  if (context_.session) {
    auto signed_size = context_.session->sign(context_.space, size, context_.batch.now);
    if (!signed_size) {
      context_.counting.add(Counter::kDropped);
      return {};
    }
    size = *signed_size;
  }
  return {Action::kRespond, size, {}};
}

Outcome respond_error(RequestContext& context, Rcode rcode, std::optional<Ede> detail) {
  if (context.is_udp() && rcode != Rcode::kServFail && !may_send_error(context))
    return drop_limited(context);
  return ResponseBuilder(context, false, rcode, detail).finish();
}

bool may_send_error(RequestContext& context) noexcept {
  return context.has_valid_cookie() || context.limits.errors.allow(context.batch.now);
}

bool is_rate_limited_client(const RequestContext& context) noexcept {
  const zone::RateLimit& rules = context.batch.settings->rate_limit;
  return rules.responses != 0 && context.is_udp() && !context.has_valid_cookie() &&
         !is_exempt(rules, context.address());
}

RateLimiter::Verdict count_response(RequestContext& context, const ResponseKind& kind) {
  using Verdict = RateLimiter::Verdict;
  context.is_counted = true;
  const Verdict verdict = context.limits.rates.judge(context.batch.settings->rate_limit,
                                                     context.address(), kind, context.batch.now);
  if (verdict == Verdict::kSend) return verdict;
  context.counting.add(Counter::kRateLimited);
  context.counting.add(verdict == Verdict::kDrop ? Counter::kDropped : Counter::kRateSlipped);
  if (verdict == Verdict::kSlip) context.counting.add(Counter::kTruncated);
  return verdict;
}

Outcome drop_limited(RequestContext& context) noexcept {
  context.counting.add(Counter::kErrorsLimited);
  context.counting.add(Counter::kDropped);
  return {};
}

Outcome forward_to_manager(RequestContext& context, ipc::ForwardKind kind) {
  if (!context.batch.manager_connected) return respond_not_ready(context);
  constexpr Counter kByKind[] = {Counter::kForwardedUpdates, Counter::kForwardedNotifies,
                                 Counter::kForwardedQueries};
  context.counting.add(kByKind[static_cast<std::size_t>(kind)]);
  return {Action::kForward, 0, kind};
}

/// RFC 1996 §3.6: any answer would end the repetitions of a NOTIFY. RFC 8945 §5.3: a client rejects
/// an unsigned answer to a signed request. nsupdate then gives up, but without any answer it
/// repeats its request.
bool is_better_unanswered(const RequestContext& context) noexcept {
  if (!context.is_udp()) return false;
  const dns::Opcode opcode = context.request.header.opcode;
  return opcode == dns::Opcode::kNotify ||
         (opcode == dns::Opcode::kUpdate && context.has_managers_key);
}

Outcome respond_not_ready(RequestContext& context) {
  const bool silent = is_better_unanswered(context);
  context.has_managers_key = false;  // without the manager the answer cannot be signed
  context.counting.add(Counter::kForwardsFailed);
  if (silent) {
    context.counting.add(Counter::kDropped);
    return {};
  }
  return respond_error(context, Rcode::kServFail, Ede::kNotReady);
}

}  // namespace pando::worker
