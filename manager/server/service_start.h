#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>

#include "manager/server/previous_store.h"
#include "manager/start/host.h"
#include "manager/start/server_parts.h"

namespace pando::manager {

/// The way from opened parts to a server that has all zones: workers serve what the start has,
/// the zone lists are read, the store is brought in line with them, and zones are loaded.
///
/// Lives on the commit thread.
class ServiceStart {
 public:
  struct Calls {
    /// The image from which workers serve is damaged. The process has to end: the next start makes
    /// the store anew from zone files and journal.
    std::function<void(const Error& reason)> image_damaged;
    /// Reloads may begin.
    std::function<void()> allow_reloads;
  };

  /// All references outlive the object.
  ServiceStart(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
               PreviousStore& previous_store, const Host& host, Calls calls);
  ServiceStart(const ServiceStart&) = delete;
  ServiceStart& operator=(const ServiceStart&) = delete;

  /// Starts the upkeep, and the workers as soon as they have something to serve.
  void begin();
  /// The zone lists were read: `complete` has all zones.
  void lists_read(const RuntimePtr& complete);
  /// The zone lists have errors: what is served stays.
  void lists_failed();
  /// Workers of the last manager need its store no longer.
  void leave_previous_store();
  /// No worker of another build serves any more.
  void previous_layout_ended();

 private:
  void keep_previous_store();
  void start_workers();
  void start_awaited_workers();
  void image_copied(const Status& status);
  void count_loaded();
  void bring_in_line();
  void in_line(const Status& status, std::uint64_t zones_with_data);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  ServerParts parts_;
  PreviousStore& previous_store_;
  const Host& host_;
  Calls calls_;
  bool wait_for_zones_ = false;  // workers of another build serve until all zones are loaded
  bool may_start_ = false;       // the store has a list of zones: ours answer SERVFAIL, not REFUSED
};

}  // namespace pando::manager
