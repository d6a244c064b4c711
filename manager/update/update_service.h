#pragma once

#include <optional>

#include "ipc/zone_counters.h"
#include "manager/commit/committer.h"
#include "manager/io/frozen_zones.h"
#include "manager/notify/notify_handler.h"
#include "manager/request/client_request.h"
#include "manager/request/reply_path.h"
#include "manager/update/update_commits.h"
#include "manager/update/update_forwarder.h"
#include "manager/update/update_request.h"
#include "manager/workers/worker_link.h"
#include "shm/counts/zone_counts.h"

namespace pando::manager {

/// Answers requests that workers cannot: UPDATE, NOTIFY, and queries signed with a key that stays
/// in the manager. Runs on the commit thread.
class UpdateService {
 public:
  using Counters = UpdateCounters;
  /// Limits of updates that wait for the disk. Each worker limits its own updates, but a new
  /// connection starts that count anew. Updates of the old connection may then still be in the
  /// committer's queue.
  struct Limits {
    std::size_t updates = 8192;  ///< the most that 32 workers may have under way
    /// Bytes in memory. An update is accepted while the sum is below the limit; the largest takes 2
    /// MB.
    std::size_t octets = std::size_t{64} << 20;
  };
  using Clock = ReplyPath::Clock;

  /// References outlive the service. `notify` may be empty: then a NOTIFY for a secondary zone is answered without effect. The
  /// clocks are those of ReplyPath.
  UpdateService(const Committer& committer, ChangeRoad& road, RuntimePtr runtime, NotifyHandler notify, Clock clock,
                Clock steady = steady_milliseconds);

  /// Null, the default: no update is forwarded to a primary. `forwarder` outlives the service.
  void set_forwarder(UpdateForwarder* forwarder) { forwarder_ = forwarder; }
  /// Null, the default: no zone is frozen. `frozen` outlives the service.
  void set_frozen(const FrozenZones* frozen) { frozen_ = frozen; }
  /// Null, the default: nothing is counted by zone. `counts` outlives the service.
  void set_zone_counts(shm::ZoneCounts* counts) { zone_counts_ = counts; }
  void set_limits(const Limits& limits) { limits_ = limits; }
  void set_runtime(RuntimePtr runtime) { runtime_ = std::move(runtime); }
  /// See UpdateCommits.
  void hold(const dns::Name& zone) { commits_.hold(zone); }
  void release(const dns::Name& zone) { commits_.release(zone); }
  /// ForwardHandler of the worker pool.
  void handle(ipc::Forward&& forward, ForwardReply reply);
  /// Answers SERVFAIL, signed if the request's key is known, with `why` as the extended error; a
  /// wrong signature of a known key is answered NOTAUTH. A NOTIFY over UDP gets no answer: the
  /// primary repeats it only while unanswered (RFC 1996 §3.6).
  void refuse(ipc::Forward&& forward, ForwardReply reply, std::string_view why);
  [[nodiscard]] const Counters& counters() const noexcept { return replies_.counters(); }

 private:
  using Request = std::shared_ptr<ClientRequest>;
  [[nodiscard]] Request receive(ipc::Forward&& forward, ForwardReply&& reply) const;
  [[nodiscard]] bool verify(ClientRequest& request);
  void update(const Request& request);
  [[nodiscard]] std::optional<ForwardedUpdate> to_forward(const ClientRequest& request) const;
  void forward(const Request& request, ForwardedUpdate update);
  void verified_update(const Request& request);
  void commit(const Request& request, UpdateMessage message, const config::ZoneOptions& options);
  void committed(ClientRequest& request, const dns::Name& zone, const Refusal& refusal,
                 const Result<ChangeOutcome>& applied);
  void notify(ClientRequest& request);
  [[nodiscard]] Status takes_updates(const dns::Name& zone) const;
  dns::Rcode judge_notify(const ClientRequest& request);
  void signed_query(ClientRequest& request);
  [[nodiscard]] bool has_room() const noexcept;
  void count(const ClientRequest& request, ipc::ZoneCounter counter);
  [[nodiscard]] std::uint64_t seconds() const { return clock_() / 1000; }

  UpdateCommits commits_;
  RuntimePtr runtime_;
  NotifyHandler notify_;
  UpdateForwarder* forwarder_ = nullptr;
  const FrozenZones* frozen_ = nullptr;
  shm::ZoneCounts* zone_counts_ = nullptr;
  Clock clock_;
  Limits limits_;
  std::size_t waiting_ = 0;         // updates given to the committer
  std::size_t waiting_octets_ = 0;  // bytes of the waiting updates
  ReplyPath replies_;
};

}  // namespace pando::manager
