#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "manager/commit/committer.h"
#include "shm/slots.h"

namespace pando::manager {

/// A change of one zone, by a few records or by millions.
struct ZoneChange {
  dns::Name zone;
  std::uint64_t records = 0;  ///< approximate number of records removed and added
  /// Runs on the commit thread when the next version is staged; may be empty.
  std::function<Status()> check;
  /// Like CommitRequest::stage, with two restrictions for pool threads. The function reads this
  /// zone alone, and no state of the commit thread. Only the effects of the last call count.
  std::function<Status(Stage&)> stage;
  /// Runs on the commit thread each time that the zone changed meanwhile and the work is repeated.
  /// May be empty.
  std::function<void()> again{};
  /// Runs once, on the commit thread. The data held by `stage` are freed afterwards, in a pool
  /// thread.
  std::function<void(const Result<std::uint64_t>& version)> done;
};

/// Changes zones by large changesets without delaying updates. A pool thread computes each change
/// from a pinned version; the commit thread only exchanges the zone's data.
///
/// A zone that was changed meanwhile, or moved by compaction, is computed anew. After the third try
/// the zone is changed on the commit thread. Only a few changes are computed at a time. Waiting
/// changes pin no version and keep no zone from compaction.
///
/// The object lives on the commit thread.
class LargeChangesets {
 public:
  struct Options {
    /// Changes of up to this many records are made on the commit thread itself. A thousand records
    /// take about 3 ms, or 10 ms with the zone outside the processor's caches. The detour through a
    /// pool thread costs two thread changes and a version of its own.
    std::uint64_t at_once = 1000;
    int tries = 3;
    std::size_t at_work = 2;  ///< limit of changes computed at a time
  };
  struct Counters {
    std::uint64_t beside = 0;  ///< changes computed in a pool thread
    std::uint64_t again = 0;   ///< repetitions, since the zone had changed
  };

  /// All references outlive the object; `pool` is joined before its destruction.
  LargeChangesets(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
                  shm::SlotTable& slots, Committer& committer, Options options);

  /// Each change is a version of its own. Requests submitted to the committer earlier are done
  /// earlier.
  void submit(ZoneChange change);
  [[nodiscard]] std::uint64_t at_once() const noexcept { return options_.at_once; }
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// True after stop(): changes submitted now are never done.
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  /// Cancels the computations under way. No change is made and no `done` called afterwards. Commit
  /// thread only.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }
  /// Whether a change of the zone is being computed: moving the zone's blocks would repeat the
  /// work.
  [[nodiscard]] bool at_work_on(dns::NameView zone) const noexcept;

 private:
  struct Work;
  void start_waiting();
  void work_out(const std::shared_ptr<Work>& work);
  void end(const std::shared_ptr<Work>& work);
  Status adopt(Work& work, Stage& stage);
  void change_here(const std::shared_ptr<Work>& work);
  void finish(const std::shared_ptr<Work>& work, const Result<std::uint64_t>& version);
  void again(const std::shared_ptr<Work>& work);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  Options options_;
  Counters counters_;
  std::vector<std::shared_ptr<Work>> working_;
  std::deque<std::shared_ptr<Work>> waiting_;
  std::atomic<bool> stopping_ = false;  // read by the pool's threads
};

}  // namespace pando::manager
