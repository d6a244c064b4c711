#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "manager/catalog/catalog_zone.h"
#include "manager/commit/committer.h"
#include "manager/start/added_zone_list.h"
#include "manager/start/server_parts.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Serves the member zones of consumed catalogs (RFC 9432). All catalog zones are checked once a
/// second. If data or the configuration have changed, the catalog's part of the list of added zones
/// is made equal to its members. Catalogs that changed together are applied together, so that the
/// time does not grow with their number.
///
/// A broken catalog changes nothing. If more than half of the members leave together, or the last
/// one, they stay for `removal-grace`: a catalog that was emptied by mistake must not take its
/// zones away.
///
/// Lives on the commit thread; catalogs are read in a pool thread.
class CatalogConsumer {
 public:
  struct Parts {
    const CurrentConfiguration& configuration;
    shm::Store& store;
    shm::SlotTable& slots;
    const Committer& committer;
  };
  struct Calls {
    using Done = std::function<void(const Status&)>;
    /// Makes the list of added zones as the update says, and fills the update's counts.
    std::function<void(std::shared_ptr<CatalogUpdate>, Done)> update;
    /// The member is another zone of the same name now: its data are transferred anew (§5.4).
    std::function<void(const dns::Name& zone)> reset;
    /// Seconds of a clock that is never put back: pauses must not change with the host's time.
    std::function<std::uint64_t()> now;
    std::function<std::uint64_t()> host_time;  ///< seconds since 1970, for people
    /// A number that grows when commands add or remove zones: members may lie below these.
    std::function<std::uint64_t()> zone_commands = [] { return std::uint64_t{0}; };
  };

  /// References outlive the object.
  CatalogConsumer(asio::io_context& io, asio::thread_pool& pool, const Parts& parts, Calls calls);
  ~CatalogConsumer();
  CatalogConsumer(const CatalogConsumer&) = delete;
  CatalogConsumer& operator=(const CatalogConsumer&) = delete;
  void start();
  /// For the end of the process.
  void stop();
  /// Looks at all catalogs; also called by a timer.
  void look();

  /// What is wrong with the catalog or its members; empty: nothing, or the zone is no catalog.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  [[nodiscard]] bool idle() const noexcept { return round_ == nullptr; }

 private:
  struct State;
  struct Task;
  struct Round;
  using TaskPtr = std::shared_ptr<Task>;
  [[nodiscard]] bool is_due(const config::Catalog& catalog, const zone::ZoneView& zone,
                            const State& state) const;
  [[nodiscard]] TaskPtr begin(const config::Catalog& catalog, const zone::ZoneView& zone,
                              State& state) const;
  void read_all();
  void all_read();
  void apply_next();
  void apply(const TaskPtr& task);
  void applied(const TaskPtr& task, const Status& status);
  void refuse(const Task& task, State& state, const Error& error);
  void tell(const Task& task, State& state);
  [[nodiscard]] std::set<std::string> yielded_to(const std::string& catalog) const;
  void reset_changed(const Task& task, const State& state);
  void look_later();

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Parts parts_;
  Calls calls_;
  asio::steady_timer timer_;
  std::map<std::string, State> states_;  // by dns::folded_key() of the catalog
  std::shared_ptr<Round> round_;         // null: no catalog is read or applied
  bool stopped_ = false;
};

}  // namespace pando::manager
