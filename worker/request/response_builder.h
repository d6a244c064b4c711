#pragma once

#include <cstddef>
#include <optional>

#include "dns/message/edns.h"
#include "dns/message/message_writer.h"
#include "worker/answer/answer.h"
#include "worker/request/outcome.h"
#include "worker/request/request_context.h"

namespace pando::worker {

/// The response's header: copies the fields that RFC 1035 §4.1.1 names, and CD (permitted by RFC
/// 6840 §5.9).
[[nodiscard]] dns::Header response_header(const dns::Header& request, bool authoritative);

/// Builds one response in the space of a request: header and question, then the caller's records,
/// then OPT record and signature. Room for OPT record and signature is reserved from the start, so
/// the caller's records never displace them.
class ResponseBuilder {
 public:
  /// The OPT record is complete from here on: later changes of `context` do not reach it.
  ResponseBuilder(RequestContext& context, bool authoritative, dns::Rcode rcode,
                  std::optional<Ede> detail = std::nullopt);

  [[nodiscard]] dns::MessageWriter& writer() noexcept { return writer_; }
  /// Replaces the RCODE by one without extended bits (below 16), since the OPT record has none.
  void set_rcode(dns::Rcode rcode) noexcept { rcode_ = rcode; }

  /// Completes the response and counts it. A response that only the manager can sign is forwarded.
  /// Each response of a worker passes here, so rate limits are checked here, unless the caller has
  /// counted the response before (count_response).
  Outcome finish();
  /// Completes the response without signature and count; returns its size.
  std::size_t finish_unsigned();

 private:
  [[nodiscard]] RateLimiter::Verdict count();
  void add_options(std::optional<Ede> detail);
  void add_padding();

  RequestContext& context_;
  dns::Rcode rcode_;
  dns::MessageWriter writer_;
  dns::OptBuilder opt_;
  std::size_t room_;  ///< reserved octets
};

/// Responds with an error, which over UDP is subject to the error limit (ErrorLimit).
Outcome respond_error(RequestContext& context, dns::Rcode rcode,
                      std::optional<Ede> detail = std::nullopt);

/// Whether the server's rate limits hold for responses to this client, signed or not. A client that
/// has proven its address (TCP, a valid cookie) is not the victim of a forged one.
[[nodiscard]] bool is_rate_limited_client(const RequestContext& context) noexcept;
/// Whether the response in hand is subject to the rate limits: its client is, and nothing was
/// signed with a known key.
[[nodiscard]] inline bool is_rate_limited(const RequestContext& context) noexcept {
  if (context.batch.settings->rate_limit.responses == 0) return false;  // mostly
  return !context.is_verified && !context.has_managers_key && is_rate_limited_client(context);
}
/// Counts the response in hand, of this kind, and decides on one above its client's limit. After
/// is_rate_limited().
RateLimiter::Verdict count_response(RequestContext& context, const ResponseKind& kind);

/// True when an error over UDP may be sent, which counts against the error limit. A client with a
/// valid cookie is not limited: the error cannot flood a victim.
[[nodiscard]] bool may_send_error(RequestContext& context) noexcept;
/// Drops a request above the error limit.
Outcome drop_limited(RequestContext& context) noexcept;

/// Hands the request to the manager, or answers it when the manager is absent.
Outcome forward_to_manager(RequestContext& context, ipc::ForwardKind kind);
/// Whether silence serves the client of a request over UDP better than an unsigned SERVFAIL: it
/// will repeat the request. Before has_managers_key is cleared.
[[nodiscard]] bool is_better_unanswered(const RequestContext& context) noexcept;
/// Answers a request that needs an absent manager, if any answer is better than none.
Outcome respond_not_ready(RequestContext& context);

}  // namespace pando::worker
