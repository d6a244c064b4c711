#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "manager/committer.h"
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
  /// On the commit thread, once. What `stage` holds is let go in a pool thread.
  std::function<void(const Result<std::uint64_t>& version)> done;
};

/// Steps that change a zone by much take no time from updates: they are worked out in a pool
/// thread, from a version that stays pinned, and the commit thread only exchanges the zone's data.
/// A zone that was changed meanwhile, or moved by compaction, is worked out anew; after the third
/// time it is changed on the commit thread.
///
/// Lives on the commit thread.
class LargeChanges {
 public:
  struct Options {
    /// Records that the commit thread changes itself: about 3 ms, 10 where nothing of the zone is
    /// in the processor's caches. The detour costs two changes of thread and a version of its own.
    std::uint64_t at_once = 1000;
    int tries = 3;
  };
  struct Counters {
    std::uint64_t beside = 0;  ///< worked out beside the commit thread
    std::uint64_t again = 0;   ///< and again, since the zone had changed
  };

  /// All references outlive the object; `pool` is joined before it goes.
  LargeChanges(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
               shm::SlotTable& slots, Committer& committer, Options options);

  /// Each change is a version of its own.
  void submit(ZoneChange change);
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// The zone is being worked on: what moves its blocks would have the work done again.
  [[nodiscard]] bool at_work_on(dns::NameView zone) const noexcept;

 private:
  struct Work;
  void work_out(const std::shared_ptr<Work>& work);
  void worked_out(const std::shared_ptr<Work>& work);
  void adopt(const std::shared_ptr<Work>& work);
  void change_here(const std::shared_ptr<Work>& work);
  void finish(const std::shared_ptr<Work>& work, const Result<std::uint64_t>& version);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  Options options_;
  Counters counters_;
  std::vector<dns::Name> zones_;  // being worked on; seldom more than two
};

}  // namespace pando::manager
