#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "dns/name.h"
#include "manager/net/endpoint_less.h"

namespace pando::manager {

/// How many visits to primaries are under way, and which zones wait for a primary that has as many
/// as it may: a queue for each primary, so that each look costs what it starts, however many zones
/// wait. No clock and no I/O.
class RefreshSlots {
 public:
  struct Limits {
    std::uint32_t visits = 0;  ///< at once
    std::uint32_t per_primary = 0;
  };
  /// What holds from now on. Queues are looked at by other limits only after look_at_all().
  void set_limits(const Limits& limits) noexcept { limits_ = limits; }
  void look_at_all();

  /// No primary at all may have another visit.
  [[nodiscard]] bool full() const noexcept { return running_ >= limits_.visits; }
  [[nodiscard]] bool has_room(const Endpoint& primary) const;
  void begin(const Endpoint& primary);
  void end(const Endpoint& primary);

  /// Puts `zone` behind those that wait for `primary` already.
  void wait(const Endpoint& primary, const dns::Name& zone);
  /// Which primary a zone wants now, which may have changed while it waited; null: it does not
  /// wait.
  using WantedPrimary = std::function<const Endpoint*(const dns::Name& zone)>;
  /// Takes the zone out that waited longest for a primary which has become free; nullopt: there is
  /// none. If it wants another primary by now that one may be busy: then it has to wait again.
  std::optional<dns::Name> next(const WantedPrimary& wanted);

 private:
  Limits limits_;
  std::uint32_t running_ = 0;
  std::map<Endpoint, std::uint32_t, EndpointLess> by_primary_;
  std::map<Endpoint, std::deque<dns::Name>, EndpointLess> waiting_;  // oldest first
  std::set<Endpoint, EndpointLess> freed_;  // of waiting_, those that had a visit's end since
};

}  // namespace pando::manager
