#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "dns/name.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/notify/notify_handler.h"
#include "manager/secondary/refresher.h"

namespace pando::manager {

/// Maintains the set of secondary zones and their primaries. A configuration is taken over in
/// slices, since it may have a million zones. Refresher does the refreshing.
///
/// Lives on the commit thread.
class SecondaryZones {
 public:
  using HasData = std::function<bool(const dns::Name& zone)>;
  /// The references outlive the object; the refresher is not called after stop(). `has_data`: the
  /// store has data of the zone.
  SecondaryZones(asio::io_context& commit_loop, Network& network, Refresher& refresher,
                 HasData has_data);
  ~SecondaryZones();
  SecondaryZones(const SecondaryZones&) = delete;
  SecondaryZones& operator=(const SecondaryZones&) = delete;

  /// Called before a configuration is taken over. From `done` on, no data comes in for zones that
  /// are not secondary in `next` or have other primaries there.
  void let_go(const RuntimePtr& next, std::function<void()> done);
  /// Takes over a configuration: new secondaries are asked immediately or at their saved time, and
  /// secondaries that are gone are forgotten. The zones' settings must be published already. A zone
  /// without data is added only by looked_at(): the zone's copy or the journal may still supply its
  /// data.
  void configure(const RuntimePtr& runtime);
  /// let_go() for some zones alone, done on return. False, and nothing was done: a configuration is
  /// being taken over.
  bool let_go_of(const std::vector<dns::Name>& zones, const RuntimePtr& next);
  /// configure() after let_go_of(): `runtime` differs in those zones alone. They are added by
  /// looked_at().
  void configure_released(const RuntimePtr& runtime);
  /// Called when the data of the zone's copy and journal is in the store. No effect between
  /// let_go() and configure(), and for the zones of let_go_of() until configure_released().
  void looked_at(const dns::Name& zone);
  /// A NOTIFY for an unknown zone during a takeover is remembered until the zone is known.
  void notified(const NotifyRequest& request);
  /// Ends any takeover in progress.
  void stop();

 private:
  void put(const config::ZoneRef& zone);
  [[nodiscard]] std::optional<config::ZoneRef> secondary(const dns::Name& zone) const;
  void take_over_slice(std::uint64_t generation, std::size_t from);
  void forget_slice(std::uint64_t generation, const RuntimePtr& configuration,
                    std::optional<dns::Name> after, std::function<void()> done);
  void taken_over();
  void tell_network() const;

  asio::io_context& commit_loop_;
  Network& network_;
  Refresher& refresher_;
  HasData has_data_;
  RuntimePtr runtime_;
  std::uint64_t generation_ = 0;  // counts configure() and let_go(); each ends the earlier ones
  bool let_go_ = true;       // no configuration: before the first configure(), or after let_go()
  bool taking_over_ = true;  // some configured zones with data are not known yet
  std::set<dns::Name, dns::CanonicalLess> early_;     // zones with a NOTIFY during a takeover
  std::set<dns::Name, dns::CanonicalLess> released_;  // see let_go_of()
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
