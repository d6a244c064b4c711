#pragma once

#include <algorithm>
#include <deque>
#include <utility>

#include "manager/support/background_threads.h"
#include "manager/support/loop_mailbox.h"
#include "manager/support/task_thread.h"

namespace pando::manager {

/// The threads that check zone files. On a busy host they stand back, as BackgroundThreads do, and
/// one may be preempted anywhere. Hence the commit thread shares no lock with them: it gives work
/// to a thread of its choice, and takes the results from its mailbox.
class LoadThreads {
 public:
  LoadThreads(LoopMailbox& mailbox, std::size_t count) : mailbox_(mailbox) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back();
  }

  /// Runs `work` in a free thread and `then` in the commit thread, which calls this. The caller
  /// counts: there is a free thread.
  template <class Work, class Then>
  void run(Work work, Then then) {
    const auto free = std::ranges::find(threads_, false, &Thread::is_busy);
    Thread& thread = free == threads_.end() ? threads_.front() : *free;
    thread.is_busy = true;
    thread.tasks.post([this, &thread, work = std::move(work), then = std::move(then)]() mutable {
      work();
      mailbox_.post([&thread, then = std::move(then)]() mutable {
        thread.is_busy = false;
        then();
      });
    });
  }
  /// Waits for the work under way.
  void join() {
    for (Thread& thread : threads_) thread.tasks.join();
  }

 private:
  struct Thread {
    TaskThread tasks{BackgroundThreads::kNice};
    bool is_busy = false;
  };

  LoopMailbox& mailbox_;
  std::deque<Thread> threads_;
};

}  // namespace pando::manager
