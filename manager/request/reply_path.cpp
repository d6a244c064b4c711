#include "manager/request/reply_path.h"

#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {

using dns::Rcode;

std::string key_text(const ClientRequest& request) {
  return request.key() == nullptr ? "-" : to_text(*request.key());
}

void log_update(const ClientRequest& request, const zone::Applied& applied) {
  log::info("zone_updated", "zone", to_text(applied.effective.zone), "client",
            to_text(request.client()), "key", key_text(request), "from", applied.from.value,
            "serial", applied.to.value, "added", applied.effective.added.size(), "removed",
            applied.effective.removed.size());
}

/// RCODE in the header; SERVFAIL for an empty response.
Rcode rcode_of(const Bytes& response) noexcept {
  if (response.size() < dns::kHeaderOctets) return Rcode::kServFail;
  return static_cast<Rcode>(response[3] & 0x0F);
}

}  // namespace

// Retransmissions -------------------------------------------------------------------------------

RecentReplies& ReplyPath::table(Execution execution) noexcept {
  return execution == Execution::kHere ? recent_ : recent_forwards_;
}

/// Over TCP nothing is retransmitted, so two equal messages are two requests.
bool ReplyPath::repeats(ClientRequest& request, Execution execution) {
  if (!request.over_udp()) return false;
  request.recent_key_ = RecentReplies::key_of(request.client(), request.parsed().octets());
  if (!table(execution).join(*request.recent_key_, request.reply_, steady_())) return false;
  ++counters_.repeated;
  return true;
}

/// A retransmission has its answer already: repeats() comes first.
bool ReplyPath::is_replay(ClientRequest& request) {
  if (request.key() == nullptr) return false;
  const dns::TsigRecord& record = request.verdict_.record;
  const auto signature = UsedSignatures::signature_of(record.mac);
  if (used_.has(signature)) {
    refused(
        request, request.parsed().zone(),
        {Rcode::kRefused, "a signature is good for one update", dns::ExtendedError::kProhibited});
    return true;
  }
  request.signature_ = signature;
  return false;
}

void ReplyPath::remember(ClientRequest& request, Execution execution) {
  if (request.signature_) {
    const dns::TsigRecord& record = request.verdict_.record;
    used_.add(*request.signature_, record.time_signed + record.fudge, seconds());
  }
  if (!request.recent_key_) return;
  request.remembered_by_ = &table(execution);
  request.remembered_by_->begin(*request.recent_key_, std::move(request.reply_));
}

// Outcomes --------------------------------------------------------------------------------------

void ReplyPath::accepted(ClientRequest& request, const zone::Applied& applied) {
  ++counters_.accepted;
  answer(request, Rcode::kNoError, false);
  if (!applied.effective.empty()) log_update(request, applied);
}

void ReplyPath::refused(ClientRequest& request, const dns::Name& zone, const Refusal& refusal) {
  if (const auto updates = refused_.one_more(steady_()))
    log::info("update_refused", "zone", to_text(zone), "client", to_text(request.client()), "key",
              key_text(request), "rcode", to_text(refusal.rcode), "reason", refusal.reason,
              "updates", *updates);
  std::optional<ReplyDetail> detail;
  if (refusal.code) detail = ReplyDetail{*refusal.code, refusal.reason};
  answer(request, refusal.rcode, false, detail);
}

void ReplyPath::failed(ClientRequest& request, const Error& why, std::string_view said) {
  count_failure(request, why);
  answer(request, Rcode::kServFail, false, ReplyDetail{dns::ExtendedError::kOther, said});
}

/// Logged as an error, since a full disk or store is the operator's concern; rate-limited, not one
/// line per update.
void ReplyPath::count_failure(const ClientRequest& request, const Error& why) {
  ++counters_.failed;
  if (const auto updates = failed_.one_more(steady_()))
    log::error("updates_failed", "zone", to_text(request.parsed().zone()), "reason", why.text,
               "updates", *updates);
}

void ReplyPath::not_ready(ClientRequest& request, std::string_view why) {
  if (!judge_key(request)) return not_verified(request);
  if (request.kind() == ipc::ForwardKind::kUpdate)
    count_failure(request, {Errc::kExists, std::string(why)});
  answer_failure(request, ReplyDetail{dns::ExtendedError::kNotReady, why});
}

void ReplyPath::not_verified(ClientRequest& request) {
  ++counters_.bad_signatures;
  if (const auto requests = unverified_.one_more(steady_()))
    log::info("request_not_verified", "zone", to_text(request.parsed().zone()), "client",
              to_text(request.client()), "key", to_text(request.verdict_.record.key_name), "error",
              tsig_error_to_text(request.tsig_error()), "requests", *requests);
  answer(request, request.rcode(), false);
}

void ReplyPath::forwarded(ClientRequest& request, Bytes response) {
  if (const auto updates = forwarded_.one_more(steady_()))
    log::info("update_forwarded", "zone", to_text(request.parsed().zone()), "client",
              to_text(request.client()), "rcode", to_text(rcode_of(response)), "updates", *updates);
  deliver(request, std::move(response));
}

void ReplyPath::not_forwarded(ClientRequest& request, const Error& why) {
  if (const auto updates = unforwarded_.one_more(steady_()))
    log::warning("updates_not_forwarded", "zone", to_text(request.parsed().zone()), "reason",
                 why.text, "updates", *updates);
  if (!judge_key(request)) return not_verified(request);
  answer_failure(request, std::nullopt);
}

/// False: the signature is wrong under a key of this server, or malformed. Two errors prove nothing
/// here: an unknown key may be a primary's (RFC 8945 §5.5), and the time may have passed while the
/// request waited.
bool ReplyPath::judge_key(ClientRequest& request) {
  if (request.verify(seconds())) return true;
  return request.tsig_error() == Rcode::kBadKey || request.tsig_error() == Rcode::kBadTime;
}

/// SERVFAIL, signed if the key is known: an answer of BADKEY would be wrong about a primary's key.
void ReplyPath::answer_failure(ClientRequest& request, const std::optional<ReplyDetail>& detail) {
  if (request.rcode() == Rcode::kNoError) return answer(request, Rcode::kServFail, false, detail);
  deliver(request, make_reply(request.parsed(), Rcode::kServFail, false, detail));
}

// Delivery --------------------------------------------------------------------------------------

void ReplyPath::answer(ClientRequest& request, Rcode rcode, bool authoritative,
                       const std::optional<ReplyDetail>& detail) {
  deliver(request,
          request.sign(make_reply(request.parsed(), rcode, authoritative, detail), seconds()));
}

void ReplyPath::sign_response(ClientRequest& request) {
  deliver(request, request.sign(request.take_response(), seconds()));
}

void ReplyPath::deliver(ClientRequest& request, Bytes response) {
  // SERVFAIL: nothing was executed, so the same request may come again.
  if (request.signature_ && !response.empty() && rcode_of(response) == Rcode::kServFail)
    used_.remove(*request.signature_);
  RecentReplies* const table = std::exchange(request.remembered_by_, nullptr);
  if (table == nullptr) {
    const ForwardReply reply = std::exchange(request.reply_, nullptr);
    PANDO_ASSERT(static_cast<bool>(reply));  // a request has one answer
    return reply(std::move(response));
  }
  // An empty response is no SERVFAIL: signing failed, and the update may have been executed.
  if (table == &recent_ && !response.empty() && rcode_of(response) == Rcode::kServFail)
    return table->fail(*request.recent_key_, response);
  table->finish(*request.recent_key_, response, steady_());
}

}  // namespace pando::manager
