#pragma once

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "manager/support/task_list.h"

namespace pando::manager {

/// A thread that runs the tasks of one other thread, one by one in the order of their post(). The
/// poster shares no lock with it, hence the eventfd(2). With a condition variable, glibc 2.36 lets
/// the sender of a signal wait until the thread that was woken before has run. With an atomic's
/// wait(), libstdc++ yields before it sleeps: on busy processors a task that comes then waits for
/// the thread's next turn.
class TaskThread {
 public:
  /// `nice`: added to the nice value of the creating thread. Throws as std::thread does.
  explicit TaskThread(int nice = 0) : nice_(nice) {}
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread() { join(); }

  /// The poster's thread only, as the next two.
  template <class Task>
  void post(Task task) {
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    const bool sleeps = tasks_.push([this, task = std::move(task)]() mutable {
      task();
      unfinished_.fetch_sub(1, std::memory_order_release);
    });
    if (sleeps) wake();
  }
  /// True when every task is done; the caller then sees all effects of the tasks.
  [[nodiscard]] bool idle() const noexcept {
    return unfinished_.load(std::memory_order_acquire) == 0;
  }
  /// Waits for the tasks; none may be posted afterwards.
  void join() {
    if (!thread_.joinable()) return;
    ends_.store(true, std::memory_order_release);
    wake();
    thread_.join();
  }

 private:
  static Fd make_wakeups() {
    Fd made(::eventfd(0, EFD_CLOEXEC));
    if (!made) throw std::system_error(errno, std::generic_category(), "eventfd");
    return made;
  }
  void wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wakeups_.get(), &one, sizeof one);
  }
  void sleep() noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wakeups_.get(), &count, sizeof count);
  }
  void run() {
    stand_back();
    for (bool ends = false; !ends;) {
      // Read before the tasks are taken: all tasks came before the end. A task that comes after
      // they were taken ends the sleep.
      ends = ends_.load(std::memory_order_acquire);
      tasks_.run();
      if (!ends) sleep();
    }
  }
  void stand_back() const noexcept {
    if (nice_ == 0) return;
    const auto self = static_cast<id_t>(::gettid());
    static_cast<void>(::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + nice_));
  }

  TaskList tasks_;
  int nice_;
  std::atomic<std::uint32_t> unfinished_{0};
  Fd wakeups_ = make_wakeups();
  std::atomic<bool> ends_{false};
  std::thread thread_{[this] { run(); }};  // last: uses the others
};

}  // namespace pando::manager
