#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dns/name.h"
#include "dns/types.h"

namespace pando::manager {

/// Zones to notify eventually, as a bit for each index of the configured table.
class ZoneBacklog {
 public:
  void put_off(std::size_t index, std::size_t zones);
  void put_off_all(std::size_t zones);
  /// Removes and returns the next zone in cyclic order.
  std::optional<std::size_t> next();
  [[nodiscard]] std::size_t count() const noexcept { return left_; }

 private:
  std::vector<bool> zones_;
  std::size_t left_ = 0;
  std::size_t at_ = 0;
};

/// Pending NOTIFYs for one address. The queue coalesces changes, spaces tries (RFC 1996 §3.6), and
/// remembers the latest results. No I/O, no clock: times are in milliseconds of any monotonic
/// clock.
///
/// A zone has an entry only while its NOTIFY is pending. Zones beyond the bound, and all zones
/// after a start, wait in the backlog of one bit per configured zone.
class NotifyQueue {
 public:
  struct Options {
    std::uint32_t tries = 5;            ///< the number that RFC 1996 §3.6 suggests
    std::uint64_t first_pause = 5'000;  ///< pause after the first try in ms; doubles with each try
    std::size_t max_waiting = 10'000;   ///< limit of zones with an entry
    std::size_t max_outcomes = 10'000;  ///< limit of zones with a remembered result
  };
  explicit NotifyQueue(Options options) : options_(options) {}

  /// Adds a changed zone: due at `due`, or merged with the pending NOTIFY. False: no room.
  bool add(const dns::Name& zone, std::uint64_t due);

  struct Try {
    dns::Name zone;
    std::uint32_t number = 1;
  };
  /// Takes a due zone, which is under way until answered(), unanswered() or dropped().
  std::optional<Try> take(std::uint64_t now);
  /// Time of the next due zone; nullopt: no zone is waiting.
  [[nodiscard]] std::optional<std::uint64_t> next_due() const;

  /// Result of the last NOTIFY for a zone.
  struct Outcome {
    dns::Serial serial;
    std::uint64_t at = 0;  ///< seconds since 1970
    std::string text;      ///< RCODE, or the reason of a missing answer
    bool good = false;
    std::uint32_t failures = 0;  ///< failed NOTIFYs in a row, of several tries each
  };
  /// Event that the caller should log.
  enum class Tell : std::uint8_t {
    kNothing,
    kFailed,  ///< the zone's first, second, fourth, eighth … failure in a row
    kWorksAgain,
  };
  /// Records an answer. `outcome.failures` is ignored.
  Tell answered(const dns::Name& zone, Outcome outcome, std::uint64_t now);
  /// Records a try without an answer, or with SERVFAIL. Returns kFailed only after the last try.
  Tell unanswered(const dns::Name& zone, Outcome outcome, std::uint64_t now);
  /// Makes the zone due again, and does not count the try that had no answer.
  void try_again(const dns::Name& zone, std::uint64_t now);
  /// Ends the pauses: zones between two tries are due now. The tries so far count, so that signs of
  /// life without answers cost a zone no more NOTIFYs than silence.
  void end_pauses(std::uint64_t now);
  /// Removes a zone that needs no NOTIFY any more.
  void dropped(const dns::Name& zone);

  [[nodiscard]] const Outcome* last(const dns::Name& zone) const;
  /// Tries of the pending NOTIFY; nullopt: none is pending.
  [[nodiscard]] std::optional<std::uint32_t> pending(const dns::Name& zone) const;
  [[nodiscard]] std::size_t waiting() const noexcept { return notices_.size(); }

  /// Backlog, by the indices of the configuration's zones.
  void put_off(std::size_t index, std::size_t zones) { backlog_.put_off(index, zones); }
  void put_off_all(std::size_t zones) { backlog_.put_off_all(zones); }
  std::optional<std::size_t> next_put_off() { return backlog_.next(); }
  [[nodiscard]] std::size_t put_off_count() const noexcept { return backlog_.count(); }
  /// Takes the whole backlog, before the indices change.
  [[nodiscard]] ZoneBacklog take_backlog() { return std::exchange(backlog_, {}); }

 private:
  struct Notice {
    std::uint64_t due = 0;
    std::uint32_t tries = 0;
    bool running = false;
    bool again = false;  // the zone changed while under way
    std::uint64_t again_due = 0;
  };
  using Notices = std::map<dns::Name, Notice, dns::CanonicalLess>;
  struct Earlier {
    bool operator()(const Notices::value_type* a, const Notices::value_type* b) const noexcept {
      if (a->second.due != b->second.due) return a->second.due < b->second.due;
      return dns::CanonicalLess()(a->first, b->first);
    }
  };
  void schedule(Notices::value_type& notice, std::uint64_t due);
  Tell note(const dns::Name& zone, Outcome outcome);

  Options options_;
  Notices notices_;
  std::set<Notices::value_type*, Earlier> due_;  // entries that are not under way
  std::map<dns::Name, Outcome, dns::CanonicalLess> outcomes_;
  std::deque<dns::Name> outcome_order_;  // oldest first
  ZoneBacklog backlog_;
};

}  // namespace pando::manager
