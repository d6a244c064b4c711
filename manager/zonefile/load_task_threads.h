#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cstddef>
#include <utility>

#include "manager/support/load_threads.h"
#include "manager/support/loop_mailbox.h"
#include "manager/zonefile/load_queue.h"

namespace pando::manager {

/// The threads that work on tasks of LoadQueue, which counts them. Lives on the commit thread.
class LoadTaskThreads {
 public:
  /// `threads`: see LoadQueue.
  LoadTaskThreads(asio::io_context& io, std::size_t threads)
      : mailbox_(LoopMailbox::of(io)), threads_(mailbox_, std::max<std::size_t>(threads, 1) + 1) {}

  /// Runs `work` for `task` beside the commit thread, and then `then` in it. Programs of the
  /// operator may take their time, so their tasks have threads of their own.
  template <class Work, class Then>
  void run(const LoadTask& task, Work work, Then then) {
    if (task.kind != LoadKind::kJudged) return threads_.run(std::move(work), std::move(then));
    asio::post(task.job.verifier->pool(),
               [this, work = std::move(work), then = std::move(then)]() mutable {
                 work();
                 mailbox_.post(std::move(then));
               });
  }
  /// After the last task of the event loop: waits for the threads.
  void join() { threads_.join(); }

 private:
  LoopMailbox& mailbox_;
  LoadThreads threads_;
};

}  // namespace pando::manager
