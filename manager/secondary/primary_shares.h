#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "dns/name.h"

namespace pando::manager {

/// How far a refresh attempt is. The network's thread writes, the commit thread reads; neither
/// needs an order with other data.
struct TransferProgress {
  std::atomic<std::uint64_t> octets{0};  ///< received so far
  std::atomic<bool> waits{true};         ///< for the primary, not for our own threads
};

/// Shares the places of limits.transfers-in among primaries, and queues zones whose primary has no
/// room. A primary that is silent or slow must not keep the zones of others waiting:
///
/// - An attempt that receives nearly nothing for a second gives its place back while that lasts.
/// - A primary that has not answered yet, or not lately, gets few attempts at a time, and these
///   need no free place.
/// - The primaries with waiting zones take turns.
///
/// A primary is *away* once an attempt has ended without an octet from it. Its zones wait in its
/// queue, so that they cost nothing, however many they are. One of them asks every two seconds.
///
/// Lives on the commit thread. No timers: the caller supplies the time and calls tick().
class PrimaryShares {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::uint32_t places = 0;  ///< limits.transfers-in; 0: nothing may begin
    std::uint32_t per_primary = 0;
  };

  /// Time between two calls of tick() while needs_ticks().
  static constexpr std::chrono::milliseconds kTick{500};
  /// An attempt needs its place if it received kLeastOctets in kJudgedAfter.
  static constexpr std::chrono::milliseconds kJudgedAfter{1000};
  static constexpr std::uint64_t kLeastOctets = 4096;
  /// Concurrent attempts at a primary that does not answer, and the time from one to the next. With
  /// a timeout of 10 s and TCP's own repetitions a returning primary is noticed within this time,
  /// or within six seconds if it has lost a query.
  static constexpr std::uint32_t kMaxProbes = 3;
  static constexpr std::chrono::milliseconds kProbePause{2000};
  /// Attempts without a place; more of them take places again. With 50 places the sum stays below
  /// the usual limit of 1,024 descriptors.
  static constexpr std::size_t kMaxWithoutPlace = 400;
  /// Beyond this number of them no away primary is asked, so that others can be. A second attempt
  /// at one and the same needs half of it.
  static constexpr std::size_t kMaxFirstProbes = 200;

  /// The share of one attempt.
  struct Share {
    Endpoint primary;
    TransferProgress progress;
    Time begun;
    Time judged;                // the last time that the attempt was rated, or its beginning
    std::uint64_t heard = 0;    // octets at the last tick
    std::uint64_t counted = 0;  // octets when last rated
    bool has_place = false;
    std::list<std::shared_ptr<Share>>::iterator at;
  };
  using SharePtr = std::shared_ptr<Share>;

  /// Called when a primary goes away, with the reason, and when it answers again, without one.
  using OnChange = std::function<void(const Endpoint& primary, const std::string& reason)>;
  explicit PrimaryShares(OnChange on_change = [](const Endpoint&, const std::string&) {})
      : on_change_(std::move(on_change)) {}
  PrimaryShares(const PrimaryShares&) = delete;
  PrimaryShares& operator=(const PrimaryShares&) = delete;

  /// Sets the limits, and forgets primaries that nobody uses now.
  void set_limits(const Limits& limits);

  // Attempts.
  [[nodiscard]] bool may_begin(const Endpoint& primary, Time now) const;
  /// Begins an attempt; may_begin() said so.
  SharePtr begin(const Endpoint& primary, Time now);
  /// Ends an attempt. `silence`: the reason for which no octet of an answer came; empty: one came,
  /// or the primary was not asked.
  void end(const SharePtr& share, const std::string& silence, Time now);
  /// A NOTIFY has come from the primary, which may be back: one attempt may begin immediately.
  /// Anybody can send NOTIFYs in its name, so the primary counts as away until it answers.
  void call(const Endpoint& primary);
  /// Rates the attempts under way, and has away primaries asked again.
  void tick(Time now);
  [[nodiscard]] bool needs_ticks() const noexcept { return !running_.empty() || waiting_ > 0; }

  [[nodiscard]] bool is_away(const Endpoint& primary) const;
  /// Why the primary is away; empty: it is not.
  [[nodiscard]] std::string silence(const Endpoint& primary) const;
  /// True if the attempt has heard nothing, and its primary is late or away.
  [[nodiscard]] bool is_silent(const Share& share, Time now) const;
  /// Attempts under way that hold a place.
  [[nodiscard]] std::size_t places_taken() const noexcept { return placed_; }

  // Zones that wait.
  /// Appends `zone` to the queue of `primary`; `first`: at its front.
  void wait(const Endpoint& primary, const dns::Name& zone, bool first = false);
  struct Waiting {
    Endpoint primary;
    dns::Name zone;
  };
  /// Takes the next zone out of its queue; nullopt: none. Its primary has room, or has
  /// just gone away, so that the zone may go on to another one.
  std::optional<Waiting> next(Time now);

 private:
  struct State {
    std::uint32_t running = 0;
    bool answers = false;  // the last attempt that can tell was answered
    bool is_called = false;
    Time probe_at;             // earliest next attempt while it does not answer
    Time heard_at;             // last octets
    std::size_t released = 0;  // zones of the queue that may go on to other primaries
    std::string silence;       // see silence()
    std::deque<dns::Name> queue;
    const std::list<Endpoint>* list = nullptr;  // where the primary waits for its turn
  };
  using States = std::map<Endpoint, State>;

  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] bool may_begin(const State& state, Time now) const noexcept;
  [[nodiscard]] std::size_t without_place() const noexcept { return running_.size() - placed_; }
  [[nodiscard]] bool is_full(const std::list<Endpoint>& list) const noexcept;
  std::list<Endpoint>& list_of(const State& state) noexcept;
  void offer(States::value_type& primary, bool first = false);
  void heard(States::value_type& primary, Time now);
  std::optional<Waiting> next_of(std::list<Endpoint>& list, Time now);
  bool judge(Share& share, Time now);
  Waiting take(States::value_type& primary);

  OnChange on_change_;
  Limits limits_;
  States states_;
  std::list<SharePtr> running_;
  std::size_t placed_ = 0;
  std::size_t waiting_ = 0;  // zones in all queues
  // Primaries with waiting zones, in the order of their turns. Entries may be out of date:
  // State::list is the truth.
  std::list<Endpoint> ready_;     // which answer
  std::list<Endpoint> unproven_;  // which have not answered yet, or may be back
  std::list<Endpoint> away_;
  std::list<Endpoint> released_;  // see State::released
};

}  // namespace pando::manager
