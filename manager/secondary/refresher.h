#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/notify/notify_handler.h"
#include "manager/secondary/attempt_runner.h"
#include "manager/secondary/notify_pace.h"
#include "manager/secondary/persistent_timers.h"
#include "manager/secondary/refresh_cycle.h"
#include "manager/secondary/refresh_places.h"
#include "manager/secondary/refresh_schedule.h"
#include "base/net/token_bucket.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Status of one secondary zone, for reports.
struct SecondaryStatus {
  std::vector<Endpoint> primaries;
  std::uint64_t next_refresh = 0;  ///< seconds since 1970
  std::uint64_t expires_at = 0;
  std::uint64_t last_ok = 0;
  std::string problem;  ///< reason of the last failed attempt; empty = none
};

/// Keeps secondary zones up to date (RFC 1034 §4.3.5, RFC 1996 §3.11), driven by PersistentTimers
/// and NOTIFY. Each refresh cycle asks one primary after another, by IXFR, with AXFR as the
/// fallback for every inconsistency. SecondaryZones decides which zones these are. RefreshSchedule
/// knows when a zone is due, RefreshPlaces whether there is room, RefreshCycle which primary is
/// next, and AttemptRunner makes the attempt.
///
/// Lives on the commit thread.
class Refresher {
 public:
  struct Counters {
    std::uint64_t transfers = 0;  ///< transfers that brought a new version
    std::uint64_t by_ixfr = 0;
    std::uint64_t refreshes = 0;  ///< successful checks, new version or not
    std::uint64_t failures = 0;
    std::uint64_t fallbacks = 0;  ///< IXFRs given up for an AXFR
    std::uint64_t notifies = 0;
  };

  using Hooks = RefreshHooks;

  /// All references outlive the object.
  Refresher(asio::io_context& commit_loop, Network& network, shm::Store& store,
            shm::SlotTable& slots, Committer& committer, ChangeRoad& road, Hooks hooks);
  ~Refresher();
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;

  /// Sets the configuration whose limits and keys refresh attempts use. Called before the first
  /// put().
  void configure(const RuntimePtr& runtime);
  /// Adds a zone with its primaries. A new zone is due at its saved time; a zone with changed
  /// primaries is due now, and results from the old primaries are dropped. An unchanged zone goes
  /// on.
  void put(const dns::Name& zone, Primaries primaries);
  /// Checks up to `most` zones after `after`, advances `after`, and forgets the zones that `stays`
  /// rejects: their results are dropped. True: no zones are left.
  using Stays = std::function<bool(const dns::Name& zone, const Primaries& primaries)>;
  bool forget_others(std::optional<dns::Name>& after, std::size_t most, const Stays& stays);
  /// The same for one zone.
  void forget_unless(const dns::Name& zone, const Stays& stays);
  /// Starts due zones after put() calls, and applies the present limits to waiting zones.
  void resume();
  /// Posts the start of due zones to the commit loop, for zones that are put one by one.
  void run_soon() { schedule_.run_soon(); }

  enum class Take : std::uint8_t {
    kNewer,  ///< data with a newer serial
    kAny,    ///< a whole zone, whatever its serial: for an operator who trusts the primary more
  };
  /// Starts a refresh cycle of the zone now, or after the running cycle. False: unknown zone.
  bool refresh_now(const dns::Name& zone, Take take = Take::kNewer);
  /// Handles a NOTIFY. False: unknown zone.
  bool notified(const NotifyRequest& request);
  [[nodiscard]] std::optional<SecondaryStatus> status(const dns::Name& zone) const;
  /// SecondaryStatus::problem alone; empty for an unknown zone.
  [[nodiscard]] std::string problem(const dns::Name& zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Drops the results of running attempts and starts no more.
  void stop();

 private:
  // Anybody can send unsigned NOTIFYs in the name of a primary. A zone that changes more often than
  // this gets its newest version within a second.
  static constexpr std::uint32_t kNotifiesPerSecond = 5;
  static constexpr std::uint32_t kNotifyBurst = 5;

  struct Zone {
    RefreshCycle cycle;
    std::uint64_t generation = 0;  // of these primaries; results of older ones are dropped
    std::uint64_t due = 0;         // seconds since 1970
    bool is_urgent = false;        // a NOTIFY or an order wants the zone: it goes before others
    RefreshPlaces::Queued queued;
    RefreshAttemptPtr attempt;  // under way
    bool damaged = false;       // the served data is damaged: neither comparable nor changeable
    std::shared_ptr<void> verification;  // under way; its end gives the work up
    std::string problem;
    TokenBucket pace{kNotifiesPerSecond, kNotifyBurst};  // of questions after unsigned NOTIFYs
  };
  using Zones = std::map<dns::Name, Zone, dns::CanonicalLess>;

  // Schedule of the zones.
  void schedule(Zones::iterator zone, std::uint64_t due);
  void arm_timers();
  void run_due();
  void start_waiting();
  void start_or_wait(Zones::iterator zone);
  void put_timers_back(std::uint64_t before, std::uint64_t now);
  void refresh_soon(Zones::iterator zone, RefreshCycle::Wish wish);

  // One refresh attempt.
  void start(Zones::iterator zone);
  void begin_anew(Zones::iterator zone, Primaries primaries, std::uint64_t due);
  bool wanted(const RefreshAttempt& attempt) const;
  void verifying(const RefreshAttemptPtr& attempt, const std::shared_ptr<Progress>& progress);
  void ended(const RefreshAttemptPtr& attempt, const AttemptOutcome& outcome);
  Zones::iterator release(const RefreshAttemptPtr& attempt);

  // Results of an attempt.
  void drop(const RefreshAttemptPtr& attempt);
  void up_to_date(const RefreshAttemptPtr& attempt, dns::Serial serial);
  void transferred(const RefreshAttemptPtr& attempt, dns::Serial serial);
  void failed(const RefreshAttemptPtr& attempt, const Error& error, bool whole_may_succeed);
  void next_primary(Zones::iterator zone);
  void end_cycle(Zones::iterator zone, bool ok);
  void abandon_silent_primary(Zones::iterator zone, const NotifyRequest& request);

  Committer& committer_;
  Hooks hooks_;
  Zones zones_;
  PersistentTimers timers_;
  RefreshSchedule schedule_;  // zones whose primary has no room wait in places_ instead
  RefreshPlaces places_;
  AttemptRunner attempts_;
  std::uint64_t generations_ = 0;
  std::map<Endpoint, NotifyPace> notify_paces_;  // of all zones of a primary
  Counters counters_;
};

}  // namespace pando::manager
