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

/// Answers what workers cannot: UPDATE, NOTIFY, and queries signed with a key that stays in the
/// manager. Runs on the commit thread.
class UpdateService {
 public:
  struct Counters {
    std::uint64_t updates = 0;   ///< processed, whatever came out
    std::uint64_t accepted = 0;  ///< answered NOERROR
    std::uint64_t failed = 0;    ///< that the journal, the store or the queue had no room for
    std::uint64_t repeated = 0;  ///< retransmissions that got the first one's answer
    std::uint64_t notifies = 0;
    std::uint64_t signed_queries = 0;
    std::uint64_t bad_signatures = 0;
  };
  /// Updates that wait for the disk. Each worker has a bound of its own, but a new connection
  /// begins anew with that, while what an old one sent is still in the committer's queue.
  struct Limits {
    std::size_t updates = 8192;  ///< what 32 workers may have under way
    /// As they are in memory. One more is taken while they are below: the largest has 2 MB.
    std::size_t octets = std::size_t{64} << 20;
  };
  using Clock = std::function<std::uint64_t()>;  ///< milliseconds since 1970

  /// `notify` may be null: then a NOTIFY for a secondary zone is answered, and nothing follows.
  UpdateService(Committer& committer, RuntimePtr runtime, NotifyHandler* notify, Clock clock);

  /// Without one, or with null, no update is passed on to a primary. It outlives the service.
  void set_forwarder(UpdateForwarder* forwarder) { forwarder_ = forwarder; }
  /// Without one, or with null, large updates are done on the commit thread. It outlives the
  /// service.
  void set_large_changes(LargeChangesets* large) { commits_.set_large_changes(large); }
  void set_limits(const Limits& limits) { limits_ = limits; }
  void set_runtime(RuntimePtr runtime) { runtime_ = std::move(runtime); }
  /// ForwardHandler of the worker pool.
  void handle(ipc::Forward&& request, ForwardReply reply);
  /// SERVFAIL, signed when the request's key is known, with `why` as the extended error. Nothing to
  /// a NOTIFY over UDP: it is repeated only while there is no answer (RFC 1996 §3.6).
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
  using RecentKey = std::optional<RecentReplies::Key>;  // nothing: no repetition is expected
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
  std::size_t waiting_octets_ = 0;  // of these
  RecentReplies recent_;
  RecentReplies recent_forwards_;  // of updates whose signature is the primary's to verify
  Counters counters_;
};

}  // namespace pando::manager
