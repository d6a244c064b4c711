#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/large_changesets.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/notify/notify_handler.h"
#include "manager/secondary/persistent_timers.h"
#include "manager/secondary/refresh_slots.h"
#include "manager/secondary/transfer_in.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// A server that a zone comes from, and the name of the key for it.
struct Primary {
  Endpoint endpoint;
  std::optional<dns::Name> key;
  bool operator==(const Primary&) const = default;
};
using Primaries = std::vector<Primary>;

/// What there is to tell about one secondary zone.
struct SecondaryStatus {
  std::vector<Endpoint> primaries;
  std::uint64_t next_refresh = 0;  ///< seconds since 1970
  std::uint64_t expires_at = 0;
  std::uint64_t last_ok = 0;
  std::string problem;  ///< why the last try failed; empty = it did not
};

/// Keeps the zones that it is given up to date (RFC 1034 §4.3.5, RFC 1996 §3.11): by the timers
/// that PersistentTimers has and by NOTIFY, with IXFR, AXFR as the way out of every inconsistency,
/// and one primary after another. Which zones these are is SecondaryZones' to say.
///
/// Lives on the commit thread; connections run on the network's.
class Refresher {
 public:
  struct Counters {
    std::uint64_t transfers = 0;    ///< that brought a new version
    std::uint64_t differences = 0;  ///< of them: by IXFR
    std::uint64_t refreshes = 0;    ///< successful checks, new version or not
    std::uint64_t failures = 0;
    std::uint64_t fallbacks = 0;  ///< IXFRs given up for an AXFR
    std::uint64_t notifies = 0;
  };

  /// Told when a whole zone was put; `had_data`: it took the place of other data.
  using ZonePut = std::function<void(const dns::Name& zone, bool had_data)>;

  /// All references outlive the object.
  Refresher(asio::io_context& commit_loop, Network& network, shm::Store& store,
            shm::SlotTable& slots, Committer& committer, LargeChangesets& changes,
            ZonePut zone_put);
  ~Refresher();
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;

  /// Whose limits and keys visits go by from now on; before the first zone is put.
  void configure(const RuntimePtr& runtime);
  /// A zone and where it comes from. A new one is due when its saved timer says, one that had other
  /// primaries now, and nothing comes in any more from those; one that is here already goes on.
  void put(const dns::Name& zone, Primaries primaries);
  /// Looks at `most` zones at most behind `after`, which moves on, and forgets those that `stays`
  /// does not want: nothing comes in for them any more. True: there are no more behind it.
  using Stays = std::function<bool(const dns::Name& zone, const Primaries& primaries)>;
  bool forget_others(std::optional<dns::Name>& after, std::size_t most, const Stays& stays);
  /// Begins what is due, after zones were put and by the limits that hold now.
  void go_on();
  /// The same for zones that were put one by one, when what is under way now has been done.
  void look_soon();

  /// Looks at a zone's primaries now, or once more after the round that is under way. False: it is
  /// none of these.
  bool refresh_now(const dns::Name& zone);
  /// False: it is for no zone of these.
  bool notified(const NotifyRequest& request);
  [[nodiscard]] std::optional<SecondaryStatus> status(const dns::Name& zone) const;
  /// SecondaryStatus::problem alone; empty for a zone that is none of these.
  [[nodiscard]] std::string problem(const dns::Name& zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Nothing comes in any more.
  void stop();

 private:
  struct CanonicalLess {
    bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
      return dns::compare_canonical(a, b) < 0;
    }
  };
  /// What a primary told, and which one.
  struct Hint {
    dns::Serial serial;
    std::size_t primary = 0;
  };
  struct Zone {
    Primaries primaries;
    std::uint64_t generation = 0;  // of these primaries: what older visits bring is not wanted
    std::uint64_t due = 0;         // seconds since 1970
    // A round of visits, from one primary to the next until one has something new.
    std::size_t first_primary = 0;
    std::size_t visited = 0;
    bool confirmed = false;  // one of them has the version that we have
    bool running = false;
    bool waiting = false;      // in the queue of a primary that is busy
    bool again = false;        // a NOTIFY without a serial came during the round
    std::optional<Hint> hint;  // the highest serial of a NOTIFY that no visit has begun for
    bool whole_zone = false;   // the next visit asks for an AXFR
    bool damaged = false;      // what is served cannot be compared with, nor changed
    std::string problem;

    [[nodiscard]] std::size_t turn() const { return (first_primary + visited) % primaries.size(); }
    [[nodiscard]] const Primary& primary() const { return primaries[turn()]; }
  };
  using Zones = std::map<dns::Name, Zone, CanonicalLess>;
  struct Attempt;  // one visit to one primary

  // When zones are due.
  void schedule(Zones::iterator zone, std::uint64_t due);
  void arm_timer();
  void run_due();
  void start_waiting();
  void start_or_wait(Zones::iterator zone);
  void doubt_timers(std::uint64_t before, std::uint64_t now);
  bool is_news(const dns::Name& zone, dns::Serial serial) const;
  void on_notify(Zones::iterator zone, const NotifyRequest& request);

  // One visit.
  void start(Zones::iterator zone);
  TransferJob job_for(const Attempt& attempt, const Zone& zone) const;
  asio::awaitable<std::optional<ServedZone>> served(dns::Name name, std::shared_ptr<bool> alive);
  bool wanted(const Attempt& attempt) const;
  void finished(const std::shared_ptr<Attempt>& attempt,
                Result<TransferResult, TransferFailure> result);
  void apply_differences(const std::shared_ptr<Attempt>& attempt, TransferResult&& result);
  void differences_applied(const std::shared_ptr<Attempt>& attempt, dns::Serial serial);
  void take_zone(const std::shared_ptr<Attempt>& attempt, TransferResult&& result);
  void put_zone(const std::shared_ptr<Attempt>& attempt, TransferResult&& result);
  Zones::iterator release(const std::shared_ptr<Attempt>& attempt);

  // What it leads to.
  void drop(const std::shared_ptr<Attempt>& attempt);
  void nothing_new(const std::shared_ptr<Attempt>& attempt, dns::Serial serial);
  void transferred(const std::shared_ptr<Attempt>& attempt, const char* how, dns::Serial serial);
  void failed(const std::shared_ptr<Attempt>& attempt, const Error& error, bool broken_ixfr);
  void next_primary(Zones::iterator zone);
  void end_round(Zones::iterator zone, bool ok);

  asio::io_context& commit_loop_;
  Network& network_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  LargeChangesets& changes_;
  ZonePut zone_put_;
  RuntimePtr runtime_;
  Zones zones_;
  PersistentTimers timers_;
  // A zone whose primary is busy waits in places_ instead.
  std::set<std::pair<std::uint64_t, dns::Name>,
           bool (*)(const std::pair<std::uint64_t, dns::Name>&,
                    const std::pair<std::uint64_t, dns::Name>&)>
      due_;
  RefreshSlots places_;
  asio::steady_timer timer_;
  bool timer_set_ = false;
  bool look_posted_ = false;
  std::uint64_t last_look_;  // of run_due(), by the clock
  std::uint64_t generations_ = 0;
  Counters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
