#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/address.h"
#include "dns/name.h"

namespace pando::manager {

/// Counts the running refresh attempts, or other exchanges with primaries, and queues zones whose
/// primary is at its limit. One queue per primary keeps the cost of a search proportional to the
/// started attempts, however many zones wait. No clock and no I/O.
class RefreshSlots {
 public:
  struct Limits {
    std::uint32_t attempts = 0;  ///< concurrent refresh attempts
    std::uint32_t per_primary = 0;
  };
  /// Sets the limits. Waiting zones see higher limits only after recheck_all().
  void set_limits(const Limits& limits) noexcept { limits_ = limits; }
  void recheck_all();

  /// True if the total limit is reached.
  [[nodiscard]] bool full() const noexcept { return running_ >= limits_.attempts; }
  [[nodiscard]] bool has_room(const Endpoint& primary) const;
  [[nodiscard]] std::uint32_t running_at(const Endpoint& primary) const;
  void begin(const Endpoint& primary);
  void end(const Endpoint& primary);

  /// Appends `zone` to the queue of `primary`.
  void wait(const Endpoint& primary, const dns::Name& zone);
  /// Returns the primary that a zone needs now, which may have changed while the zone waited; null:
  /// the zone no longer waits.
  using WantedPrimary = std::function<const Endpoint*(const dns::Name& zone)>;
  /// Takes the zone that waited longest for a primary with a free slot; nullopt: none. The zone may
  /// need another, busy primary by now; the caller then queues the zone again.
  std::optional<dns::Name> next(const WantedPrimary& wanted);

 private:
  Limits limits_;
  std::uint32_t running_ = 0;
  std::map<Endpoint, std::uint32_t> by_primary_;
  std::map<Endpoint, std::deque<dns::Name>> waiting_;  // oldest first
  // primaries of waiting_ with a slot freed since the last search
  std::set<Endpoint> freed_;
};

}  // namespace pando::manager
