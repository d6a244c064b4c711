#include "worker/respond/transfer_handler.h"

#include "worker/request/response_builder.h"
#include "worker/respond/transfer_out.h"
#include "zone/settings/acl.h"

namespace pando::worker {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using ipc::Counter;

/// `reason`: for the log.
Outcome refuse(RequestContext& context, Rcode rcode, Ede detail, std::string_view reason) {
  context.refusal = reason;
  context.counting.add(Counter::kTransfersRefused);
  return respond_error(context, rcode, detail);
}

Outcome answer_soa(RequestContext& context, const zone::ZoneView& zone) {
  const zone::RRsetView soa = zone.soa();
  if (soa.count() == 0) return refuse(context, Rcode::kServFail, Ede::kInvalidData, "the zone has no SOA");
  context.counting.add(Counter::kTransfersCurrent);
  context.counting.transfer(zone.apex(), ipc::ZoneTransfer::kCurrent);
  ResponseBuilder response(context, true, Rcode::kNoError);
  dns::MessageWriter& writer = response.writer();
  if (!writer.put_record(dns::Section::kAnswer, writer.question_name(), RRType::kSOA, RRClass::kIN,
                         soa.ttl().seconds, soa.first_rdata())) {
    writer.set_tc();
    context.counting.add(Counter::kTruncated);
  }
  return response.finish();
}

/// Puts the difference sequences into one datagram, if they fit.
Outcome answer_difference(RequestContext& context, const zone::ZoneView& zone) {
  auto stream = DifferenceStream::since(zone, *context.request.client_serial);
  if (!stream) return answer_soa(context, zone);
  ResponseBuilder response(context, true, Rcode::kNoError);
  response.writer().keep_case();
  if (stream->fill(response.writer()) != StreamStep::kDone) return answer_soa(context, zone);
  context.counting.add(Counter::kTransfersIncremental);
  context.counting.transfer(zone.apex(), ipc::ZoneTransfer::kIxfr);
  return response.finish();
}

}  // namespace

Outcome TransferHandler::start(RequestContext& context) {
  const Request& request = context.request;
  const bool incremental = request.question.type == RRType::kIXFR;
  // RFC 5936 §4.2: AXFR over UDP is not defined. RFC 1995 §3: an IXFR names the client's version.
  if (!incremental && context.is_udp()) return respond_error(context, Rcode::kFormErr);
  if (incremental && !request.client_serial) return respond_error(context, Rcode::kFormErr);
  const zone::ZoneView zone = context.batch.view.zone_at(request.question.name);
  // RFC 5936 §2.2.1
  if (!zone) return refuse(context, Rcode::kNotAuth, Ede::kNotAuthoritative, "no such zone");
  const DecodedZoneSettings* rules = cache_.zone(zone);
  if (rules == nullptr)
    return refuse(context, Rcode::kServFail, Ede::kInvalidData, "its settings are damaged");
  if (!zone::allowed(rules->settings.allow_transfer, context.requester()))
    return refuse(context, Rcode::kRefused, Ede::kProhibited, "no rule of allow-transfer allows it");
  if (!zone.loaded())
    return refuse(context, Rcode::kServFail, Ede::kNotReady, "the zone has no data yet");
  if (expiry_.expired(zone, context.batch.now))
    return refuse(context, Rcode::kServFail, Ede::kInvalidData, "the zone has expired");
  if (context.asks(dns::kOptionExpire))
    context.expire = expiry_.remaining(zone, rules->settings, context.batch.now);
  // RFC 1995 §2: a client that is up to date gets one SOA. §4: so does a client over UDP when the
  // difference sequences do not fit there.
  const bool current = incremental && !zone.serial().ahead_of(*request.client_serial);
  if (current) return answer_soa(context, zone);
  if (context.is_udp()) return answer_difference(context, zone);
  make_plan(context, zone);
  return {Action::kTransfer, 0, {}};
}

void TransferHandler::make_plan(RequestContext& context, const zone::ZoneView& zone) {
  const Request& request = context.request;
  plan_ = {};
  plan_.header = response_header(request.header, true);
  plan_.question = request.question;
  plan_.apex = dns::Name(zone.apex());
  plan_.edns = request.edns.has_value();
  plan_.udp_payload = context.batch.settings->udp_payload;
  plan_.expire = context.expire;
  if (request.question.type == RRType::kIXFR) plan_.since = request.client_serial;
  plan_.keys = context.batch.keys;
  plan_.session = std::move(context.session);
  context.session.reset();
  if (context.has_managers_key)
    plan_.held_request.assign(request.message.begin(), request.message.end());
}

}  // namespace pando::worker
