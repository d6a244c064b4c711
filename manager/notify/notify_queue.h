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

/// Zones that are to be told some time, by their places in a configuration's table: a bit each.
class ZoneBacklog {
 public:
  void put_off(std::size_t index, std::size_t zones);
  void put_off_all(std::size_t zones);
  /// Takes one out, round and round.
  std::optional<std::size_t> next();
  [[nodiscard]] std::size_t count() const noexcept { return left_; }

 private:
  std::vector<bool> zones_;
  std::size_t left_ = 0;
  std::size_t at_ = 0;
};

/// Which zones one address has yet to be told about, and when: coalesces changes, spaces tries out
/// (RFC 1996 §3.6), and remembers how the latest ones ended. No I/O, no clock: times are
/// milliseconds of any clock that does not go back.
///
/// There is an entry per zone only while a NOTIFY is pending. Zones beyond the bound, and those of
/// a start, wait in the backlog: one bit per configured zone.
class NotifyQueue {
 public:
  struct Options {
    std::uint32_t tries = 5;            ///< RFC 1996 §3.6 suggests as many
    std::uint64_t first_pause = 5'000;  ///< after a try; doubles with each
    std::size_t max_waiting = 10'000;   ///< zones with an entry
    std::size_t max_outcomes = 10'000;  ///< zones whose last outcome is known
  };
  explicit NotifyQueue(Options options) : options_(options) {}

  /// The zone changed: tell at `due`, or with what is pending already. False: no room.
  bool add(const dns::Name& zone, std::uint64_t due);

  struct Try {
    dns::Name zone;
    std::uint32_t number = 1;
  };
  /// A zone to be told now. It is under way until answered(), unanswered() or dropped().
  std::optional<Try> take(std::uint64_t now);
  /// When take() gives something; absent: nothing waits.
  [[nodiscard]] std::optional<std::uint64_t> next_due() const;

  /// How the last NOTIFY about a zone ended.
  struct Outcome {
    dns::Serial serial;
    std::uint64_t at = 0;  ///< seconds since 1970
    std::string text;      ///< RCODE, or why there was no answer
    bool good = false;
    std::uint32_t failures = 0;  ///< NOTIFYs in a row, of several tries each
  };
  /// What the caller should log.
  enum class Tell : std::uint8_t {
    kNothing,
    kFailed,  ///< the zone's first, second, fourth, eighth … failure in a row
    kWorksAgain,
  };
  /// The remote answered: `outcome.failures` is not looked at.
  Tell answered(const dns::Name& zone, Outcome outcome, std::uint64_t now);
  /// A try got no answer (or one that asks to come again). Gives kFailed only with the last one.
  Tell unanswered(const dns::Name& zone, Outcome outcome, std::uint64_t now);
  /// The zone is no longer to be told.
  void dropped(const dns::Name& zone);

  [[nodiscard]] const Outcome* last(const dns::Name& zone) const;
  /// Tries made for what is pending; absent: nothing is.
  [[nodiscard]] std::optional<std::uint32_t> pending(const dns::Name& zone) const;
  [[nodiscard]] std::size_t waiting() const noexcept { return notices_.size(); }

  /// Backlog over the indices of the configuration's zones.
  void put_off(std::size_t index, std::size_t zones) { backlog_.put_off(index, zones); }
  void put_off_all(std::size_t zones) { backlog_.put_off_all(zones); }
  std::optional<std::size_t> next_put_off() { return backlog_.next(); }
  [[nodiscard]] std::size_t put_off_count() const noexcept { return backlog_.count(); }
  /// All of it, as the places are about to be others.
  [[nodiscard]] ZoneBacklog take_backlog() { return std::exchange(backlog_, {}); }

 private:
  struct CanonicalLess {
    bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
      return dns::compare_canonical(a, b) < 0;
    }
  };
  struct Notice {
    std::uint64_t due = 0;
    std::uint32_t tries = 0;
    bool running = false;
    bool again = false;  // changed while under way
    std::uint64_t again_due = 0;
  };
  using Notices = std::map<dns::Name, Notice, CanonicalLess>;
  struct Earlier {
    bool operator()(const Notices::value_type* a, const Notices::value_type* b) const noexcept {
      if (a->second.due != b->second.due) return a->second.due < b->second.due;
      return CanonicalLess()(a->first, b->first);
    }
  };
  void schedule(Notices::value_type& notice, std::uint64_t due);
  Tell note(const dns::Name& zone, Outcome outcome);

  Options options_;
  Notices notices_;
  std::set<Notices::value_type*, Earlier> due_;  // those that are not under way
  std::map<dns::Name, Outcome, CanonicalLess> outcomes_;
  std::deque<dns::Name> outcome_order_;  // oldest first
  ZoneBacklog backlog_;
};

}  // namespace pando::manager
