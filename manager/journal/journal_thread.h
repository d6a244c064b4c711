#pragma once

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <cstdint>
#include <utility>

namespace pando::manager {

/// The thread that appends to the journal and removes its files. Tasks run one by one in the order
/// they were posted.
///
/// Only the commit thread posts, so an idle thread stays idle until the commit thread posts again.
class JournalThread {
 public:
  JournalThread() = default;
  JournalThread(const JournalThread&) = delete;
  JournalThread& operator=(const JournalThread&) = delete;
  ~JournalThread() { join(); }

  /// Commit thread only.
  template <class Task>
  void post(Task task) {
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    asio::post(pool_, [this, task = std::move(task)]() mutable {
      task();
      unfinished_.fetch_sub(1, std::memory_order_release);
    });
  }
  /// Commit thread only. True when every task is done; the caller then sees all effects of the
  /// tasks.
  [[nodiscard]] bool idle() const noexcept {
    return unfinished_.load(std::memory_order_acquire) == 0;
  }
  /// Waits for the tasks; none may be posted afterwards.
  void join() { pool_.join(); }

 private:
  std::atomic<std::uint32_t> unfinished_{0};
  asio::thread_pool pool_{1};
};

}  // namespace pando::manager
