#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/steady_time.h"
#include "config/settings/zone_table.h"
#include "manager/commit/committer.h"
#include "manager/dnssec/changes_verification.h"
#include "manager/support/background_threads.h"
#include "manager/support/rate_limited_log.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Verifies signed zones after they were loaded or transferred, and watches when their signatures
/// end. Faults and ends are logged and shown in the status; nothing is taken back here. Data that
/// must be right before they are served (`verify: refuse`) were verified by who puts them.
///
/// One zone at a time is verified, in threads that other work of the host displaces. After a change
/// of a zone without faults, the changes alone are verified, if the zone's history has them. All
/// methods on the commit thread. A zone that is not signed costs a look at its apex.
class SignatureWatch {
 public:
  using PolicyOf = std::function<config::SignaturePolicy(const dns::Name& zone)>;
  using Clock = std::function<std::uint64_t()>;  ///< seconds
  struct Counters {
    std::uint64_t begun = 0;
    std::uint64_t whole = 0;     ///< zones verified as a whole
    std::uint64_t changes = 0;   ///< zones verified by their changes alone
    std::uint64_t warnings = 0;  ///< of signatures that end
  };
  struct Options {
    unsigned threads = 1;  ///< for a large zone
    Clock now{};           ///< since 1970: signatures have such times
    /// A zone that changes all the time is verified again after this many times what its
    /// verification cost: a twentieth of the processors at most.
    std::uint64_t pause_factor = 20;
    /// For pauses; of a clock that does not go back.
    Clock steady = coarse_seconds;
  };

  /// References outlive the object.
  SignatureWatch(asio::io_context& io, shm::Store& store, shm::SlotTable& slots,
                 const Committer& committer, PolicyOf policy_of, Options options);
  ~SignatureWatch();
  SignatureWatch(const SignatureWatch&) = delete;
  SignatureWatch& operator=(const SignatureWatch&) = delete;

  /// Begins to check the ends of signatures regularly.
  void start();
  /// Nothing is verified between these two, as reading would delay a start.
  void hold() noexcept { held_ = true; }
  void release();
  /// The zone has data from a file or a primary, perhaps the same as before. `verdict` (may be
  /// null) is about these data, if somebody has verified them.
  void served(const dns::Name& zone, const Verdict* verdict = nullptr);
  /// The configuration has changed: gives up the verification of a zone that is no more wanted.
  void configured();
  /// Gives up a verification whose version holds back more memory than `most_bytes`.
  void check_pin(std::uint64_t most_bytes);
  /// Looks at all signatures' ends, in slices; also called by a timer.
  void sweep();
  /// For the end of the process: gives up.
  void stop();

  /// Faults of the zone's data when they were verified last; 0: none, or not verified yet.
  [[nodiscard]] std::uint64_t faults(dns::NameView zone) const;
  /// The first fault with the number of all; empty = none.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  /// True if these very data were verified and have no fault.
  [[nodiscard]] bool is_verified(const zone::ZoneView& zone) const;
  [[nodiscard]] std::uint64_t zones_with_faults() const noexcept { return zones_with_faults_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] bool idle() const noexcept { return !under_way_ && queue_.empty(); }

 private:
  struct State;
  struct Task;
  using States = std::map<std::string, State>;  // by dns::folded_key()

  void enqueue(const std::string& key, State& state);
  void next();
  void wait(const std::string& key, std::uint64_t until);
  void look_at_waiting();
  [[nodiscard]] bool needs_verdict(const State& state, const zone::ZoneView& live) const;
  [[nodiscard]] std::shared_ptr<Task> make_task(const std::string& key, const State& state);
  void begin(const std::shared_ptr<Task>& task);
  void finished(const std::shared_ptr<Task>& task);
  void conclude(States::iterator at, const Task& task);
  void take(const dns::Name& zone, State& state, const Task& task);
  void log_faults(const dns::Name& zone, State& state, const Task& task, bool is_new);
  void forget(States::iterator at);
  void set_faults(State& state, std::uint64_t faults);
  void set_end(const zone::ZoneView& zone, std::uint64_t end);
  void look_at_end(const dns::Name& zone, State& state);
  void sweep_from(const std::string& after);
  /// False: the zone has left, or is not to be verified.
  bool look_at(const std::string& key, State& state);
  void sweep_later();
  [[nodiscard]] bool is_wanted(const dns::Name& name, const zone::ZoneView& zone) const;

  asio::io_context& io_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  const Committer& committer_;
  PolicyOf policy_of_;
  Options options_;
  asio::steady_timer timer_;
  States states_;
  std::deque<std::string> queue_;  // keys of states_, or of zones that left
  // Time and key: zones whose pause after a verification is not over.
  std::set<std::pair<std::uint64_t, std::string>> waiting_;
  asio::steady_timer waiting_timer_;
  std::shared_ptr<Task> under_way_;
  std::uint64_t zones_with_faults_ = 0;
  Counters counters_;
  BurstLimitedLog lines_{1, 100};
  bool held_ = false;
  bool stopped_ = false;
  BackgroundThreads thread_{1, BackgroundThreads::kIdleNice};  // ends first: uses the others
};

}  // namespace pando::manager
