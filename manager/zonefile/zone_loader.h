#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/support/load_progress.h"
#include "manager/zonefile/load_queue.h"
#include "manager/zonefile/load_task_threads.h"
#include "manager/zonefile/zone_load_steps.h"
#include "shm/slots.h"

namespace pando::manager {

/// Loads zone files into the store: decides which zones are loaded when, and reports the outcomes.
/// The steps of one zone are those of ZoneLoadSteps. Many small zones are checked as a batch
/// (LoadBatch). Acknowledged updates are kept, unchanged data is shared, and secondaries get an
/// IXFR.
///
/// A changed file that a program has to judge goes back to the queue after a first check of its
/// content. No other zone and no request waits for it.
class ZoneLoader {
 public:
  struct Counters {
    std::uint64_t hashed = 0;   ///< files read for their hash alone
    std::uint64_t built = 0;    ///< files scanned to compare or build a zone
    std::uint64_t renewed = 0;  ///< unchanged files with another time or stamp
  };

  /// `threads`: see LoadQueue. `pool` frees what was loaded. References outlive the loader. All
  /// methods belong to the commit thread.
  ZoneLoader(asio::io_context& io, asio::thread_pool& pool, std::size_t threads, shm::Store& store,
             shm::SlotTable& slots, Committer& committer, ChangeRoad& road,
             zone::DataLimits limits);
  ZoneLoader(const ZoneLoader&) = delete;
  ZoneLoader& operator=(const ZoneLoader&) = delete;

  void set_limits(const zone::DataLimits& limits) { steps_.set_limits(limits); }
  /// Queues a request; no callback is called before the return.
  void load(LoadRequest request);
  /// For the end of the process: nothing is put and no callback is called any more, and the threads
  /// give up their loads.
  void stop();
  /// After the last task of the event loop: waits for the threads.
  void join() { threads_.join(); }
  /// True while no request is under way. Programs may still verify files.
  [[nodiscard]] bool idle() const noexcept { return queue_.is_empty(); }
  /// Whether a program verifies, or has to verify, the first data of any zone.
  [[nodiscard]] bool judges_first_data() const noexcept { return queue_.first_judged() > 0; }
  /// Whether a program verifies, or has to verify, a version of the zone.
  [[nodiscard]] bool judges(dns::NameView zone) const { return queue_.judged(zone) != nullptr; }
  /// The path of its program; empty: judges() is false.
  [[nodiscard]] std::string judge_of(dns::NameView zone) const;
  /// Gives up all versions under verification, except where `stays` is true.
  void supersede_unless(const std::function<bool(const LoadJob& job)>& stays);
  /// The same for one zone.
  void supersede_unless(dns::NameView zone, const std::function<bool(const LoadJob& job)>& stays);
  [[nodiscard]] asio::io_context& io() const noexcept { return io_; }
  [[nodiscard]] bool is_stopped() const noexcept { return stopped_; }
  /// Sums over all finished jobs.
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Null if the zone's file is not being read, or is a small file.
  [[nodiscard]] std::shared_ptr<const LoadProgress> progress(dns::NameView zone) const {
    return steps_.loads().find(zone);
  }
  /// Logs the progress of long loads; to be called regularly.
  void log_progress(LoadProgress::Clock::time_point now);

 private:
  using Task = std::shared_ptr<LoadTask>;
  using Batch = std::shared_ptr<LoadBatch>;

  void schedule();
  void start(LoadTasks tasks);

  void check_batch(const Batch& batch);
  void commit_batch(const Batch& batch);
  void finish_batch(LoadBatch& batch);

  [[nodiscard]] bool is_outdated(const LoadTask& check) const;
  void withdraw_judged(const LoadTask& unchanged);
  void judge(const Task& task);
  void supersede(const Task& task);

  void finish(const Task& task, LoadOutcome outcome);
  void report(const Task& task, const LoadOutcome& outcome);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  ChangeRoad& road_;
  LoadQueue queue_;
  Counters counters_;
  std::set<Batch> batches_;  // being checked
  bool stopped_ = false;
  ZoneLoadSteps steps_;
  LoadTaskThreads threads_;  // ends first: its work uses the others
};

}  // namespace pando::manager
