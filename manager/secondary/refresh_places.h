#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "manager/secondary/primary_shares.h"
#include "manager/secondary/refresh_attempt.h"
#include "manager/secondary/refresh_slots.h"

namespace pando::manager {

/// Places of refresh attempts at primaries, places of the programs that verify received data, and
/// the zones that wait for either. An attempt has a place of one kind at a time: a hanging program
/// must not keep zones without one from their primaries.
///
/// Lives on the commit thread. No timers: the caller supplies the time.
class RefreshPlaces {
 public:
  using Time = PrimaryShares::Time;

  /// The entries of one zone in the queues. They outlast the wait, because a queue is never
  /// searched for a zone.
  struct Queued {
    bool is_waiting = false;                    ///< for a busy or away primary, or for a program
    bool is_first = false;                      ///< at the front of a primary's queue
    std::map<Endpoint, std::uint32_t> entries;  ///< in the primaries' queues
  };

  explicit RefreshPlaces(PrimaryShares::OnChange on_change) : primaries_(std::move(on_change)) {}

  void set_limits(const PrimaryShares::Limits& limits);
  [[nodiscard]] PrimaryShares& primaries() noexcept { return primaries_; }
  [[nodiscard]] const PrimaryShares& primaries() const noexcept { return primaries_; }
  [[nodiscard]] bool all_away(const Primaries& primaries) const;

  // Attempts.
  /// Gives the attempt a place at its primary: PrimaryShares::may_begin() said that it may.
  void begin(RefreshAttempt& attempt, Time now);
  /// Exchanges the attempt's place at its primary for one of a program.
  void begin_program(const RefreshAttemptPtr& attempt, Time now);
  void end(const RefreshAttemptPtr& attempt, Time now);
  [[nodiscard]] bool has_program_place() const;
  /// The attempts with a place of a program.
  [[nodiscard]] const std::set<RefreshAttemptPtr>& with_program() const noexcept {
    return with_program_;
  }

  // Zones that wait.
  /// Queues the zone at a primary; `is_urgent`: at the front of the queue.
  void wait(const dns::Name& zone, Queued& queued, const Endpoint& primary, bool is_urgent);
  void wait_for_program(const dns::Name& zone, Queued& queued);
  /// Takes the zone that waited longest for a program, if one has a place; `waits` tells whether
  /// a zone still does.
  std::optional<dns::Name> next_for_program(const std::function<bool(const dns::Name&)>& waits);
  /// Has next_for_program() see limits that were raised.
  void recheck_programs() { programs_.recheck_all(); }
  /// Removes one entry at `primary`, which PrimaryShares::next() took out of its queue.
  static void taken(Queued& queued, const Endpoint& primary);

 private:
  PrimaryShares primaries_;
  RefreshSlots programs_;
  std::set<RefreshAttemptPtr> with_program_;
};

}  // namespace pando::manager
