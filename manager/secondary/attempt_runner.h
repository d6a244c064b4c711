#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/net/network.h"
#include "manager/secondary/refresh_attempt.h"
#include "manager/secondary/transfer_in.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// The end of a refresh attempt.
struct AttemptOutcome {
  enum class End : std::uint8_t {
    kUpToDate,  ///< the primary has nothing newer
    kTransferred,
    kFailed,
    kDropped,  ///< nobody wanted the result any more
  };
  End end = End::kDropped;
  dns::Serial serial{};            ///< the primary's; not of a failure
  Error error{};                   ///< kFailed
  bool whole_may_succeed = false;  ///< kFailed: of an IXFR, for which an AXFR is the remedy
};

/// Runs refresh attempts: asks the primary, receives its changes and hands them to the road of
/// changes. Knows nothing of other attempts, schedules and retries: Refresher does.
///
/// Lives on the commit thread; connections run on the network's.
class AttemptRunner {
 public:
  /// Called on the commit thread.
  struct Calls {
    /// True while the zone still has the primaries of the attempt's start.
    std::function<bool(const RefreshAttempt& attempt)> is_wanted;
    /// The received data are about to be verified; `progress` gives that up.
    std::function<void(const RefreshAttemptPtr& attempt, std::shared_ptr<Progress> progress)>
        verifying;
    /// Called once for each attempt, unless stop() comes first; never by run() itself.
    std::function<void(const RefreshAttemptPtr& attempt, const AttemptOutcome& outcome)> ended;
  };
  /// Parts of the manager; all outlive the object.
  struct Parts {
    asio::io_context& commit_loop;
    Network& network;
    shm::Store& store;
    shm::SlotTable& slots;
    const Committer& committer;
    ChangeRoad& road;
    const RefreshHooks& hooks;
    /// RFC 1034 §4.3.5: the zone counts as absent then.
    std::function<bool(const zone::ZoneView& zone)> has_expired;
  };

  AttemptRunner(const Parts& parts, Calls calls) : parts_(parts), calls_(std::move(calls)) {}
  ~AttemptRunner() { stop(); }
  AttemptRunner(const AttemptRunner&) = delete;
  AttemptRunner& operator=(const AttemptRunner&) = delete;

  /// Sets the configuration of attempts that start, and of the verification of received data.
  void configure(const RuntimePtr& runtime) { runtime_ = runtime; }
  /// Starts an attempt that has its share. `may_compare`: the served data are sound, so a whole
  /// zone may be compared with them.
  void run(const RefreshAttemptPtr& attempt, const RefreshCycle::Request& request,
           bool may_compare);
  /// Drops the results of running attempts.
  void stop() noexcept { *alive_ = false; }

 private:
  void transferred(const RefreshAttemptPtr& attempt,
                   Result<TransferResult, TransferFailure> result);
  void hand_in(const RefreshAttemptPtr& attempt, TransferResult&& result);
  [[nodiscard]] ZoneChange change_of(const RefreshAttemptPtr& attempt, TransferResult&& result);
  void committed(const RefreshAttemptPtr& attempt, dns::Serial serial,
                 const Result<ChangeOutcome>& outcome);

  Parts parts_;
  Calls calls_;
  RuntimePtr runtime_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
