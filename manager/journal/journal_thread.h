#pragma once

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <cstdint>
#include <utility>

namespace pando::manager {

/// The thread that appends to the journal and takes its files away. Tasks run one by one in the
/// order they were posted.
///
/// Only the commit thread posts, so what it sees idle stays idle until it posts itself: then it
/// may use the journal without the two changes of thread that a task costs.
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
  /// Commit thread only: every task is done, and what it did is seen by the caller.
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
