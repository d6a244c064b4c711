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
#include "manager/support/load_threads.h"
#include "manager/support/loop_mailbox.h"
#include "manager/zonefile/load_queue.h"
#include "manager/zonefile/zone_replacement.h"
#include "shm/slots.h"

namespace pando::manager {

/// Loads zone files into the store. A zone takes these steps, in order:
///
///     LoadQueue ─▶ check: read, compare, plan ─┬─▶ replace ─┬─▶ judge ─▶ stale? ─▶ ... ─▶ finish
///                  (ZoneFileCheck, LoadThreads) └─▶ merge ───┘   (ChangeRoad)
///
/// A changed file that a program has to judge goes back to the queue after the first look, and is
/// checked in a thread of the programs. No other zone and no request waits for it.
/// A zone without data is put whole, with its updates from the journal (ZoneReplacement). A served
/// zone is compared with its file, and the edit is merged with the dynamic changes (zone_merge.h).
/// Acknowledged updates are kept, unchanged data is shared, and secondaries get an IXFR. Many small
/// zones are checked as a batch (LoadBatch).
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

  void set_limits(const zone::DataLimits& limits) { limits_ = limits; }
  /// Queues a request; no callback is called before the return.
  void load(LoadRequest request);
  /// For the end of the process: nothing is put and no callback is called any more, and the threads
  /// give up their loads.
  void stop();
  /// After the last task of the event loop: waits for the threads.
  void join() { threads_.join(); }
  /// True while no request is under way. Programs may judge files all the same.
  [[nodiscard]] bool idle() const noexcept { return queue_.is_empty(); }
  /// Whether the first data of any zone have to be judged by a program, or are being judged.
  [[nodiscard]] bool judges_first_data() const noexcept { return queue_.first_judged() > 0; }
  /// Whether a version of the zone is being judged, or waits for that.
  [[nodiscard]] bool judges(dns::NameView zone) const { return queue_.judged(zone) != nullptr; }
  /// The path of its program; empty: judges() is false.
  [[nodiscard]] std::string judge_of(dns::NameView zone) const;
  /// Gives up all versions that are being judged, except where `stays` is true.
  void supersede_unless(const std::function<bool(const LoadJob& job)>& stays);
  /// The same for one zone.
  void supersede_unless(dns::NameView zone, const std::function<bool(const LoadJob& job)>& stays);
  [[nodiscard]] asio::io_context& io() const noexcept { return io_; }
  [[nodiscard]] bool is_stopped() const noexcept { return stopped_; }
  /// Sums over all finished jobs.
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Null if the zone's file is not being read, or is a small file.
  [[nodiscard]] std::shared_ptr<const LoadProgress> progress(dns::NameView zone) const {
    return loads_.find(zone);
  }
  /// Logs the progress of long loads; to be called regularly.
  void log_progress(LoadProgress::Clock::time_point now);

 private:
  using Task = std::shared_ptr<LoadTask>;
  using Batch = std::shared_ptr<LoadBatch>;

  void schedule();
  void start(LoadTasks tasks);
  template <class Work, class Then>
  void run(const LoadTask& task, Work work, Then then);

  void check_batch(const Batch& batch);
  void commit_batch(const Batch& batch);
  void finish_batch(LoadBatch& batch);

  [[nodiscard]] bool is_outdated(const LoadTask& look) const;
  void withdraw_judged(const LoadTask& unchanged);
  void judge(const Task& task);
  void supersede(const Task& task);

  void check(const Task& task);
  void commit(const Task& task);
  bool may_put(LoadTask& task);
  void end_unless_again(const Task& task);
  void put(const Task& task, ZoneChange change);
  void replace(const Task& task);
  void replaced(const Task& task, ZoneReplacement::Next next, const Status& committed);
  void serve(const Task& task);
  void merge(const Task& task);
  void merged(const Task& task, const zone::Applied& applied, const RecordChanges& overridden);
  void finish(const Task& task, LoadOutcome outcome);
  void report(const Task& task, const LoadOutcome& outcome);

  asio::io_context& io_;
  LoopMailbox& mailbox_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  ChangeRoad& road_;
  zone::DataLimits limits_;
  LoadsUnderWay loads_;
  LoadQueue queue_;
  Counters counters_;
  std::set<Batch> batches_;  // being checked
  bool stopped_ = false;
  LoadThreads threads_;  // ends first: uses the others
};

}  // namespace pando::manager
