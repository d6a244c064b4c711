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

/// A step that changes one zone, by a few records or by millions.
struct ZoneChange {
  dns::Name zone;
  std::uint64_t records = 0;  ///< that it takes out or brings in, about
  /// On the commit thread, when the next version is staged; may be empty.
  std::function<Status()> check;
  /// Like CommitRequest::stage, but looks at this zone alone, at nothing of the commit thread's,
  /// and may be called in another thread. The last call's effects are those that count.
  std::function<Status(Stage&)> stage;
  /// On the commit thread, each time that the work was in vain because the zone had changed; may be
  /// empty.
  std::function<void()> again{};
  /// On the commit thread, once. What `stage` holds is let go after that, in a pool thread.
  std::function<void(const Result<std::uint64_t>& version)> done;
};

/// Steps that change a zone by much take no time from updates: they are worked out in a pool
/// thread, from a version that stays pinned, and the commit thread only exchanges the zone's data.
/// A zone that was changed meanwhile, or moved by compaction, is worked out anew; after the third
/// time it is changed on the commit thread. Few are at work at a time, and those that wait pin no
/// version and keep no zone from compaction.
///
/// Lives on the commit thread.
class LargeChangesets {
 public:
  struct Options {
    /// Records that the commit thread changes itself: about 3 ms, 10 where nothing of the zone is
    /// in the processor's caches. The detour costs two changes of thread and a version of its own.
    std::uint64_t at_once = 1000;
    int tries = 3;
    std::size_t at_work = 2;  ///< changes that have begun
  };
  struct Counters {
    std::uint64_t beside = 0;  ///< worked out beside the commit thread
    std::uint64_t again = 0;   ///< and again, since the zone had changed
  };

  /// All references outlive the object; `pool` is joined before it goes.
  LargeChangesets(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
                  shm::SlotTable& slots, Committer& committer, Options options);

  /// Each change is a version of its own. What was submitted to the committer before is done
  /// before.
  void submit(ZoneChange change);
  [[nodiscard]] std::uint64_t at_once() const noexcept { return options_.at_once; }
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// What is submitted now is not done any more.
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  /// Ends what is being worked out, soon: nothing is done or told of any more. Of the commit
  /// thread.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }
  /// The zone is being worked on: what moves its blocks would have the work done again.
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
  std::atomic<bool> stopping_ = false;  // told to the pool's threads
};

}  // namespace pando::manager
