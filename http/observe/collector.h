#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/address.h"
#include "dns/name.h"
#include "http/observe/observed.h"
#include "http/observe/zone_content.h"
#include "http/observe/zone_facts.h"
#include "http/observe/zone_past.h"
#include "shm/inspect/observer.h"

namespace pando::http {

struct CollectorOptions {
  std::string store_path;
  std::string run_directory;
  std::vector<Endpoint> listen;  ///< of the DNS server
  std::uint64_t layout = 0;
  std::size_t zones = 0;  ///< most zones with facts of their own
  std::chrono::milliseconds manager_timeout{1000};
  /// Time for the pages of the manager's list that one request reads. A busy manager may need
  /// longer for all of them; then the next request continues.
  std::chrono::milliseconds list_time{1000};
};

/// Observes the server from outside: reads the store and the workers' pages directly, and queries
/// the manager for its own numbers only. Any thread.
class Collector {
 public:
  explicit Collector(CollectorOptions options) : options_(std::move(options)) {}
  /// Facts that are at most kFresh old, so that many requests cost no more than a few.
  std::shared_ptr<const Observed> observe();
  /// See http/observe/zone_content.h.
  Result<ZoneContent> read_zone(const dns::Name& apex, std::size_t most_bytes);
  Result<ContentPart> read_zone_part(const dns::Name& apex, const ContentPlace& place);
  /// See http/observe/zone_facts.h.
  Result<ZonePage> read_zone_page(const ZonePageRequest& request);
  /// The facts about one zone; kNotFound.
  Result<ZoneFacts> read_facts(const dns::Name& zone);
  /// See http/observe/zone_past.h.
  Result<ZonePast> read_zone_past(const dns::Name& apex, std::size_t most);
  /// See http/observe/manager_client.h.
  Result<std::vector<ipc::ZoneRow>> ask_zones(const std::vector<std::string>& names);
  Result<ipc::ZoneListResult> ask_zone_list(const std::string& after);
  /// CollectorOptions::list_time.
  [[nodiscard]] std::chrono::milliseconds list_time() const noexcept { return options_.list_time; }

  static constexpr std::chrono::milliseconds kFresh{200};

 private:
  Observed look();
  Result<std::shared_ptr<const shm::Observer>> find_store();
  void read_manager(Observed& observed);

  CollectorOptions options_;
  std::mutex looking_;  ///< one observation at a time
  std::mutex finding_;  ///< of store_
  std::shared_ptr<const shm::Observer> store_;
  std::shared_ptr<const Observed> last_;
  std::chrono::steady_clock::time_point last_at_;
};

}  // namespace pando::http
