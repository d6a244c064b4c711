#include "worker/request/tsig_check.h"

#include "worker/request/response_builder.h"

namespace pando::worker {

namespace {

/// RFC 8945 §3, in words for the log.
std::string_view reason_of(const dns::TsigVerdict& verdict) {
  switch (verdict.tsig_error) {
    case dns::Rcode::kBadKey:
      return "BADKEY: no key of that name and algorithm";
    case dns::Rcode::kBadSig:
      return "BADSIG: signed with another secret";
    case dns::Rcode::kBadTime:
      return "BADTIME: the clocks differ";
    case dns::Rcode::kBadTrunc:
      return "BADTRUNC: the signature is too short";
    default:
      return "FORMERR: a malformed signature";
  }
}

}  // namespace

std::optional<Outcome> check_present_tsig(RequestContext& context, VerifiedBy verifier) {
  const Request& request = context.request;
  const KeySet& keys = *context.batch.keys;
  const bool verify_here = verifier == VerifiedBy::kWorker;
  context.has_managers_key = keys.is_managers_key(request.tsig->key_name);
  if (context.has_managers_key && verify_here && !context.batch.manager_connected)
    return respond_not_ready(context);
  const bool known =
      context.has_managers_key || keys.shared.find(request.tsig->key_name) != nullptr;
  if (context.has_managers_key || (known && !verify_here)) return std::nullopt;
  const auto verdict = dns::TsigSession::verify_request(request.message, *request.tsig, keys.shared,
                                                        context.batch.now);
  context.session = dns::TsigSession::for_response(verdict);
  context.is_verified = verdict.rcode == dns::Rcode::kNoError;
  if (context.is_verified) return std::nullopt;
  context.refusal = reason_of(verdict);
  return respond_error(context, verdict.rcode);
}

}  // namespace pando::worker
