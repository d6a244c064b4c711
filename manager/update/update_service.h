#pragma once

#include <functional>
#include <optional>

#include "manager/commit/committer.h"
#include "manager/notify/notify_handler.h"
#include "manager/support/rate_limited_log.h"
#include "manager/update/forwarded_request.h"
#include "manager/update/recent_replies.h"
#include "manager/update/update_commits.h"
#include "manager/update/update_forwarder.h"
#include "manager/update/update_request.h"
#include "manager/workers/worker_link.h"

namespace pando::manager {

/// Answers requests that workers cannot: UPDATE, NOTIFY, and queries signed with a key that stays
/// in the manager. Runs on the commit thread.
class UpdateService {
 public:
  struct Counters {
    std::uint64_t updates = 0;   ///< processed, with any result
    std::uint64_t accepted = 0;  ///< answered NOERROR
    std::uint64_t failed = 0;    ///< not executed: no room in the journal, the store or the queue
    std::uint64_t repeated = 0;  ///< retransmissions that got the first answer
    std::uint64_t notifies = 0;
    std::uint64_t signed_queries = 0;
    std::uint64_t bad_signatures = 0;
  };
  /// Limits of updates that wait for the disk. Each worker limits its own updates, but a new
  /// connection starts that count anew. Updates of the old connection may then still be in the
  /// committer's queue.
  struct Limits {
    std::size_t updates = 8192;  ///< the most that 32 workers may have under way
    /// Bytes in memory. An update is accepted while the sum is below the limit; the largest takes 2
    /// MB.
    std::size_t octets = std::size_t{64} << 20;
  };
  using Clock = std::function<std::uint64_t()>;  ///< milliseconds since 1970

  /// `notify` may be null: then a NOTIFY for a secondary zone is answered without effect.
  UpdateService(Committer& committer, RuntimePtr runtime, NotifyHandler* notify, Clock clock);

  /// Null, the default: no update is forwarded to a primary. `forwarder` outlives the service.
  void set_forwarder(UpdateForwarder* forwarder) { forwarder_ = forwarder; }
  /// Null, the default: large updates run on the commit thread. `large` outlives the service.
  void set_large_changes(LargeChangesets* large) { commits_.set_large_changes(large); }
  void set_limits(const Limits& limits) { limits_ = limits; }
  void set_runtime(RuntimePtr runtime) { runtime_ = std::move(runtime); }
  /// ForwardHandler of the worker pool.
  void handle(ipc::Forward&& request, ForwardReply reply);
  /// Answers SERVFAIL, signed if the request's key is known, with `why` as the extended error. A
  /// NOTIFY over UDP gets no answer: the primary repeats it only while unanswered (RFC 1996 §3.6).
  void refuse(ipc::Forward&& request, const ForwardReply& reply, std::string_view why);
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  using Request = std::shared_ptr<ForwardedRequest>;
  void update(ipc::Forward&& forward, ForwardReply reply);
  [[nodiscard]] std::optional<ForwardedUpdate> to_forward(const ipc::Forward& request) const;
  void pass_on(ipc::Forward&& request, ForwardedUpdate update, const ForwardReply& reply);
  void not_passed_on(const dns::Name& zone, const Error& error);
  void verified_update(const Request& request, const ForwardReply& reply);
  void commit(const Request& request, UpdateMessage message, const config::ZoneOptions& options,
              const ForwardReply& reply);
  void committed(ForwardedRequest& request, const dns::Name& zone, Refusal& refusal,
                 const Result<zone::Applied>& applied, const ForwardReply& reply);
  void notify(ipc::Forward&& forward, const ForwardReply& reply);
  [[nodiscard]] Status takes_updates(const dns::Name& zone) const;
  dns::Rcode judge_notify(const ForwardedRequest& request);
  void signed_query(ipc::Forward&& forward, const ForwardReply& reply);
  Request accept(ipc::Forward& forward, const ForwardReply& reply);
  using RecentKey = std::optional<RecentReplies::Key>;  // nullopt: no repetition is expected
  bool repeated(RecentReplies& recent, const RecentKey& key, ForwardReply& reply);
  void remember(RecentReplies& recent, const RecentKey& key, ForwardReply& reply);
  [[nodiscard]] bool has_room() const noexcept;
  void turn_away(ForwardedRequest& request, const ForwardReply& reply);
  Bytes refused(ForwardedRequest& request, const Refusal& refusal) const;
  void not_verified(const ForwardedRequest& request);
  void failed(const dns::Name& zone, const Error& error);
  void tell_refusal(const ForwardedRequest& request, const dns::Name& zone, const Refusal& why);
  [[nodiscard]] std::uint64_t seconds() const { return clock_() / 1000; }

  UpdateCommits commits_;
  RuntimePtr runtime_;
  NotifyHandler* notify_;
  UpdateForwarder* forwarder_ = nullptr;
  Clock clock_;
  RateLimitedLog failed_;
  RateLimitedLog unverified_;
  RateLimitedLog refused_;
  RateLimitedLog forwarded_;
  RateLimitedLog unforwarded_;
  Limits limits_;
  std::size_t waiting_ = 0;         // updates given to the committer
  std::size_t waiting_octets_ = 0;  // bytes of the waiting updates
  RecentReplies recent_;
  RecentReplies recent_forwards_;  // updates whose signature the primary verifies
  Counters counters_;
};

}  // namespace pando::manager
