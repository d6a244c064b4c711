#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/log.h"
#include "manager/commit/committer.h"
#include "manager/commit/large_changesets.h"
#include "manager/zonefile/load_progress.h"
#include "manager/zonefile/zone_file_check.h"
#include "shm/slots.h"

namespace pando::manager {

/// Loads zone files into the store. Pool threads check the files (ZoneFileCheck); the commit thread
/// puts the results. A zone without data is put whole, with its updates from the journal. A served
/// zone is compared with its file, and the edit is merged with the updates (file_merge.h).
/// Acknowledged updates are kept, unchanged data is shared, and secondaries get an IXFR.
class ZoneLoader {
 public:
  using Job = LoadJob;
  using Outcome = LoadOutcome;
  using Done = std::function<void(const Job&, const Outcome&)>;
  struct Counters {
    std::uint64_t hashed = 0;   ///< files read for their hash alone
    std::uint64_t built = 0;    ///< files scanned to compare or build a zone
    std::uint64_t renewed = 0;  ///< unchanged files with another time or stamp
  };

  /// Separate queues, so that neither waits for the other: copies of secondaries, whose primaries
  /// are asked after the check, and all other files.
  enum class Lane : std::uint8_t { kCopies, kFiles };

  /// Runs `threads` checks at once, and one more if its lane has none running; the pool should have
  /// as many threads. References outlive the loader, and the pool is joined before the loader's
  /// destruction. All methods belong to the commit thread.
  ZoneLoader(asio::io_context& io, asio::thread_pool& pool, std::size_t threads, shm::Store& store,
             shm::SlotTable& slots, Committer& committer, LargeChangesets& changes,
             zone::DataLimits limits);
  ZoneLoader(const ZoneLoader&) = delete;
  ZoneLoader& operator=(const ZoneLoader&) = delete;
  ~ZoneLoader();

  void set_limits(const zone::DataLimits& limits) { limits_ = limits; }
  /// Supplies jobs, nullopt at the end. The source is asked only when a thread is free, so a
  /// million zones need no list here.
  using Source = std::function<std::optional<Job>()>;
  /// Runs all jobs of `source`, calling `done` for each and `all_done` after the last. The sources
  /// of a lane are drained, and end, in order. A zone that an earlier source is still loading waits
  /// for the end of that load. `history`: the journal, for zones without data or with a changed
  /// file.
  void run(Lane lane, Source source, std::shared_ptr<HistorySource> history, Done done,
           std::function<void()> all_done);
  /// For the end of the process: nothing is put and no callback is called any more, and pool
  /// threads give up their loads.
  void stop();
  [[nodiscard]] bool idle() const noexcept { return batch_count() == 0; }
  /// Sums over all finished jobs.
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Null if the zone's file is not being read, or is a small file.
  [[nodiscard]] std::shared_ptr<const LoadProgress> progress(dns::NameView zone) const {
    return loads_.find(zone);
  }
  /// Logs the progress of long loads; to be called regularly.
  void tell_progress(LoadProgress::Clock::time_point now);

 private:
  struct Task;
  struct Merged;
  /// Limits log lines of one kind about single zones. After the first kMost lines, further ones are
  /// at debug level: a million zones with one problem must not fill the disk. The number of omitted
  /// lines is logged at the end.
  class Lines {
   public:
    log::Level level_of_next(log::Level level) noexcept {
      return count_++ < kMost ? level : log::Level::kDebug;
    }
    [[nodiscard]] std::uint64_t left_out() const noexcept {
      return count_ > kMost ? count_ - kMost : 0;
    }

   private:
    static constexpr std::uint64_t kMost = 1000;
    std::uint64_t count_ = 0;
  };
  struct Together;
  struct Batch {
    Lane lane = Lane::kFiles;
    Source source;
    std::shared_ptr<HistorySource> history;
    Done done;
    std::function<void()> all_done;
    std::deque<std::shared_ptr<Task>> again{};    ///< taken from the source, to check again
    std::deque<std::shared_ptr<Task>> waiting{};  ///< zones that another batch is loading
    bool drained = false;
    std::size_t running = 0;  ///< jobs taken from the source and unfinished
    std::uint64_t finished = 0;
    std::uint64_t failed = 0;
    Lines loaded{};  ///< in the log
    Lines problems{};
    Lines warnings{};
    LoadProgress::Clock::time_point told = LoadProgress::Clock::now();  ///< in the log
  };
  using Batches = std::deque<std::shared_ptr<Batch>>;
  [[nodiscard]] std::size_t batch_count() const noexcept {
    return lanes_[0].size() + lanes_[1].size();
  }
  [[nodiscard]] Batches& batches(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] std::size_t& running(Lane lane) { return running_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] bool has_room(Lane lane);
  void fill();
  void fill(Lane lane);
  bool start_all(const std::shared_ptr<Batch>& batch);
  bool must_wait(const Task& task) const;
  std::vector<std::shared_ptr<Task>> next_tasks(const std::shared_ptr<Batch>& batch) const;
  void start(std::vector<std::shared_ptr<Task>> tasks);

  void look_together(const std::shared_ptr<Together>& together);
  void looked_together(const std::shared_ptr<Together>& together);
  void put_together(const std::shared_ptr<Together>& together);
  void finish_together(Together& together);

  void build(const std::shared_ptr<Task>& task);
  void built(const std::shared_ptr<Task>& task);
  static std::optional<Outcome> is_stale(const Task& task, const zone::ZoneView& now);
  void put(const std::shared_ptr<Task>& task);
  void merge(const std::shared_ptr<Task>& task);
  void renew(const Task& task);
  static void log_loaded(const Task& task, const zone::ZoneView& live);
  static void tell_left_out(const Batch& batch);
  void finish(const std::shared_ptr<Task>& task, Outcome outcome);
  void report(const std::shared_ptr<Task>& task, const Outcome& outcome);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  std::size_t threads_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  LargeChangesets& changes_;
  zone::DataLimits limits_;
  std::array<Batches, 2> lanes_;
  LoadsUnderWay loads_;
  Counters counters_;
  bool stopped_ = false;
  /// busy threads per lane, each with one task or a batch of tasks
  std::array<std::size_t, 2> running_{};
};

}  // namespace pando::manager
