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

/// Brings zone files into the store: pool threads look at them (ZoneFileCheck), and what comes of
/// that is put on the commit thread. A zone that has no data yet is put whole, with its updates
/// from the journal. One that is being served is compared with its file and changed by what was
/// edited there, beside the updates it had (file_merge.h), so that nothing acknowledged is lost,
/// what did not change is shared, and secondaries get an IXFR.
class ZoneLoader {
 public:
  using Job = LoadJob;
  using Outcome = LoadOutcome;
  using Done = std::function<void(const Job&, const Outcome&)>;
  struct Counters {
    std::uint64_t hashed = 0;   ///< files read for their hash alone
    std::uint64_t built = 0;    ///< files that were scanned, and their zones built
    std::uint64_t renewed = 0;  ///< files found the same under another time or stamp
  };

  /// What a lane has at work is not waited for by the other one: secondaries, whose primaries are
  /// asked when their copies have been looked at, and everything else.
  enum class Lane : std::uint8_t { kCopies, kFiles };

  /// `threads` jobs run at once, and one more when it is the only one of its lane: the pool should
  /// have as many threads. References outlive the loader, and the pool is joined before it goes.
  /// Its methods belong to the commit thread.
  ZoneLoader(asio::io_context& io, asio::thread_pool& pool, std::size_t threads, shm::Store& store,
             shm::SlotTable& slots, Committer& committer, LargeChangesets& changes,
             zone::DataLimits limits);
  ZoneLoader(const ZoneLoader&) = delete;
  ZoneLoader& operator=(const ZoneLoader&) = delete;
  ~ZoneLoader();

  void set_limits(const zone::DataLimits& limits) { limits_ = limits; }
  /// Where jobs come from: asked for some whenever a thread is free, so that a million zones cost
  /// no list here. Nullopt = none left.
  using Source = std::function<std::optional<Job>()>;
  /// Runs all jobs of `source`; `done` for each, `all_done` after the last. Of a lane's sources one
  /// is drained after the other and ends after the other; a zone that an earlier one is still
  /// loading waits for that. `history`: the journal, for zones that are not in the store yet or
  /// whose file changed.
  void run(Lane lane, Source source, std::shared_ptr<HistorySource> history, Done done,
           std::function<void()> all_done);
  /// The process ends: nothing is put any more, nobody is told, and threads that load a zone give
  /// it up.
  void stop();
  [[nodiscard]] bool idle() const noexcept { return batch_count() == 0; }
  /// Of all jobs that are finished.
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Null: the zone's file is not being read, or is a small one.
  [[nodiscard]] std::shared_ptr<const LoadProgress> progress(dns::NameView zone) const {
    return loads_.find(zone);
  }
  /// Logs how far long loads are; to be called every now and then.
  void tell_progress(LoadProgress::Clock::time_point now);

 private:
  struct Task;
  struct Merged;
  /// Lines of one kind about single zones. Behind the first ones they are at debug level, so that a
  /// million zones with one problem do not fill the disk; their number is told at the end.
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
    std::deque<std::shared_ptr<Task>> again{};    ///< taken from the source, looked at in vain
    std::deque<std::shared_ptr<Task>> waiting{};  ///< of zones that another batch is loading
    bool drained = false;
    std::size_t running = 0;  ///< taken from the source and not finished
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
  std::array<std::size_t, 2> running_{};  ///< threads at work: each has one task, or many together
};

}  // namespace pando::manager
