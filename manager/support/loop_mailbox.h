#pragma once

#include <asio/execution_context.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <utility>

#include "manager/support/task_list.h"

namespace pando::manager {

/// Tasks that other threads hand to the thread of an event loop. asio::post() does the same under
/// the loop's lock, and wakes the loop before it unlocks. A sender that the woken thread preempts
/// there gets its processor back late on a busy host, above all one of BackgroundThreads; until
/// then the loop's thread waits. A sender to a mailbox holds nothing.
///
/// The loop does not run out of work while there is a mailbox. Tasks that remain when the loop
/// is destroyed are dropped.
class LoopMailbox : public asio::execution_context::service {
 public:
  static inline asio::execution_context::id id;

  /// The loop's mailbox, made by the first call. For the loop's thread.
  static LoopMailbox& of(asio::io_context& io) { return asio::use_service<LoopMailbox>(io); }
  /// To be called by of() alone.
  explicit LoopMailbox(asio::io_context& io);

  /// Any thread: runs the task in the loop's thread; those of one sender in order.
  template <class Task>
  void post(Task task) {
    if (tasks_.push(std::move(task))) wake();
  }

 private:
  void shutdown() override;
  void wake() noexcept;
  void await();

  TaskList tasks_;
  asio::posix::stream_descriptor wakeups_;  // an eventfd(2)
  std::uint64_t count_ = 0;                 // of wake-ups; not used
};

}  // namespace pando::manager
