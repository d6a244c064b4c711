#pragma once

#include <functional>
#include <optional>

#include "base/steady_time.h"
#include "manager/request/client_request.h"
#include "manager/request/recent_replies.h"
#include "manager/request/update_message.h"
#include "manager/request/used_signatures.h"
#include "manager/support/rate_limited_log.h"
#include "zone/record/changeset.h"

namespace pando::manager {

struct UpdateCounters {
  std::uint64_t updates = 0;   ///< processed, with any result
  std::uint64_t accepted = 0;  ///< answered NOERROR
  std::uint64_t failed = 0;    ///< not executed: no room in the journal, the store or the queue
  std::uint64_t repeated = 0;  ///< retransmissions that got the first answer
  std::uint64_t notifies = 0;
  std::uint64_t signed_queries = 0;
  std::uint64_t bad_signatures = 0;
};

/// The one way back to a client. Each request ends in one call of this class. The call makes and
/// signs the response, counts and logs the outcome, caches the response for retransmissions, and
/// hands the response to the worker. Belongs to the commit thread.
class ReplyPath {
 public:
  using Clock = std::function<std::uint64_t()>;  ///< milliseconds

  /// `clock`: since 1970, for signatures. `steady`: of a clock that does not go back, for the
  /// lifetime of cached answers and for the log's pauses.
  explicit ReplyPath(Clock clock, Clock steady = steady_milliseconds)
      : clock_(std::move(clock)), steady_(std::move(steady)) {}
  ReplyPath(const ReplyPath&) = delete;
  ReplyPath& operator=(const ReplyPath&) = delete;

  /// Where an update is executed. A SERVFAIL of this server means that nothing was executed, so a
  /// retransmission may try again. The failure of a forwarded update does not tell that.
  enum class Execution : std::uint8_t { kHere, kAtPrimary };
  /// True: the request repeats an earlier one and gets the answer of that one. Only requests over
  /// UDP are retransmitted.
  bool repeats(ClientRequest& request, Execution execution);
  /// Keeps the answer of the request, as repeats() has seen it, for retransmissions. Called before
  /// the execution.
  void remember(ClientRequest& request, Execution execution);
  /// True: the request's signature was used before, and the request was refused.
  bool is_replay(ClientRequest& request);

  void accepted(ClientRequest& request, const zone::Applied& applied);
  /// The request itself is at fault; `zone` is for the log.
  void refused(ClientRequest& request, const dns::Name& zone, const Refusal& refusal);
  /// The update is valid, but the server failed for the reason `why`; the client reads `said`.
  void failed(ClientRequest& request, const Error& why, std::string_view said);
  /// Nothing can be said about the request now. Verifies the signature first, since an error of a
  /// known key's signature takes precedence.
  void not_ready(ClientRequest& request, std::string_view why);
  /// After a failed verify(): the verdict's error (RFC 8945 §5.2).
  void not_verified(ClientRequest& request);
  /// The primary's answer, unchanged but for the ID: a signature of the primary must hold.
  void forwarded(ClientRequest& request, Bytes response);
  /// No primary has answered, for the reason `why`.
  void not_forwarded(ClientRequest& request, const Error& why);
  void answer(ClientRequest& request, dns::Rcode rcode, bool authoritative,
              const std::optional<ReplyDetail>& detail = std::nullopt);
  /// Signs a response that a worker has made.
  void sign_response(ClientRequest& request);
  /// The client gets no answer.
  void drop(ClientRequest& request) { deliver(request, {}); }

  [[nodiscard]] UpdateCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const UpdateCounters& counters() const noexcept { return counters_; }

 private:
  [[nodiscard]] RecentReplies& table(Execution execution) noexcept;
  bool judge_key(ClientRequest& request);
  void answer_failure(ClientRequest& request, const std::optional<ReplyDetail>& detail);
  void count_failure(const ClientRequest& request, const Error& why);
  void deliver(ClientRequest& request, Bytes response);
  [[nodiscard]] std::uint64_t seconds() const { return clock_() / 1000; }

  Clock clock_;
  Clock steady_;
  UpdateCounters counters_;
  RecentReplies recent_;
  UsedSignatures used_;
  RecentReplies recent_forwards_;  // updates whose signature the primary verifies
  RateLimitedLog failed_;
  RateLimitedLog unverified_;
  RateLimitedLog refused_;
  RateLimitedLog forwarded_;
  RateLimitedLog unforwarded_;
};

}  // namespace pando::manager
