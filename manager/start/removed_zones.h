#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/unix_time.h"
#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/journal/journal_history.h"

namespace pando::manager {

/// Zones that left the configuration while the journal has updates or a serial that their files do
/// not have. The journal keeps those records, so a zone that comes back is loaded as after a restart
/// of the host. Here they are listed, purged on command, and dropped after
/// `limits.removed-zones`.
///
/// All methods on the commit thread, with which asynchronous results come back.
class RemovedZones {
 public:
  struct Zone {
    dns::Serial serial;
    std::uint64_t removed_at = 0;        ///< seconds since 1970
    std::optional<std::uint64_t> updates;  ///< records unlike the file; nullopt: unknown
  };
  using Zones = std::map<dns::Name, Zone, dns::CanonicalLess>;

  /// References outlive the object, and the pool is joined before its destruction. `journal`: the
  /// folder with the files of zones that were added with their content.
  RemovedZones(asio::io_context& io, asio::thread_pool& pool, Committer& committer,
               std::string journal)
      : io_(io), pool_(pool), committer_(committer), journal_(std::move(journal)) {}

  /// Finds the removed zones anew, after the store was brought in line with `runtime`. `done` gets
  /// the number of zones that have come to the list. `history` is read in a pool thread.
  void look(RuntimePtr runtime, std::shared_ptr<HistorySource> history,
            std::function<void(std::uint64_t added)> done);
  /// Drops the zone's records from the journal and the file that was made for the zone, durably
  /// when `done` is called. kNotFound: the zone is not in the list, and there was no such file.
  /// kExists: the zone is configured.
  void purge(const dns::Name& zone, std::function<void(const Status&)> done);
  using Clock = std::chrono::steady_clock;
  /// Each hour, drops zones that left more than `limit` before `unix_time` (seconds since 1970). A
  /// limit of 0 drops none. To be called regularly. The first hour drops nothing: a machine may
  /// start with a wrong clock, and learn the time only then.
  void drop_old(Clock::time_point now, std::uint64_t unix_time, std::chrono::milliseconds limit);

  [[nodiscard]] const Zones& zones() const noexcept { return zones_; }

 private:
  static constexpr std::chrono::hours kDropInterval{1};

  struct Found;
  void take(Found& found, const RuntimePtr& runtime);
  void report(const Zones& before, const RuntimePtr& runtime) const;
  void write_records(std::vector<JournalEntry> records);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Committer& committer_;
  std::string journal_;
  Zones zones_;
  bool looked_ = false;
  std::uint64_t started_ = unix_seconds();
  Clock::time_point next_drop_ = Clock::now() + kDropInterval;
};

}  // namespace pando::manager
