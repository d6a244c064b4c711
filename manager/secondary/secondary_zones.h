#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "dns/name.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/notify/notify_handler.h"
#include "manager/secondary/refresher.h"

namespace pando::manager {

/// Which zones are secondary here, and who their primaries are: takes a configuration over, in
/// slices, since it may have a million zones. What is done for them is left to Refresher.
///
/// Lives on the commit thread.
class SecondaryZones final : public NotifyHandler {
 public:
  using HasData = std::function<bool(const dns::Name& zone)>;
  /// The references outlive the object; nothing is asked of the visits after stop(). `has_data`:
  /// the store has some of the zone.
  SecondaryZones(asio::io_context& commit_loop, Network& network, Refresher& visits,
                 HasData has_data);
  ~SecondaryZones() override;
  SecondaryZones(const SecondaryZones&) = delete;
  SecondaryZones& operator=(const SecondaryZones&) = delete;

  /// Before a configuration is taken over: nothing comes in any more, from `done` on, for zones
  /// that are not secondary in it, or have other primaries there.
  void let_go(const RuntimePtr& next, std::function<void()> done);
  /// Takes over a configuration: new secondaries are asked at once or when their saved timer says,
  /// those that are gone are forgotten. The zones' settings must have been published. A zone
  /// without data is one of these when it was looked_at(): until then its copy or the journal may
  /// have it.
  void configure(const RuntimePtr& runtime);
  /// What the zone's copy and the journal have of it is in the store now. Between let_go() and
  /// configure() nothing comes of it.
  void looked_at(const dns::Name& zone);
  /// One that comes while a configuration is being taken over, for a zone that is not known yet, is
  /// heeded when it is.
  void notified(const NotifyRequest& request) override;
  /// No configuration is taken over any further.
  void stop();

 private:
  struct CanonicalLess {
    bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
      return dns::compare_canonical(a, b) < 0;
    }
  };
  void put(const config::ZoneRef& zone);
  [[nodiscard]] std::optional<config::ZoneRef> secondary(const dns::Name& zone) const;
  void take_over_slice(std::uint64_t round, std::size_t from);
  void forget_slice(std::uint64_t round, const RuntimePtr& configuration,
                    std::optional<dns::Name> after, std::function<void()> done);
  void taken_over();
  void tell_network() const;

  asio::io_context& commit_loop_;
  Network& network_;
  Refresher& visits_;
  HasData has_data_;
  RuntimePtr runtime_;
  std::uint64_t round_ = 0;  // of configure() and let_go(): each ends those before it
  bool let_go_ = true;       // no configuration is in use
  bool taking_over_ = true;  // not all zones of the configuration that have data are known yet
  std::set<dns::Name, CanonicalLess> early_;  // told of meanwhile
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
