#pragma once

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <string>
#include <utility>

#include "base/result.h"
#include "manager/launch/launcher.h"

namespace pando::manager {

/// A process, ours or one of an earlier manager, behind its pidfd.
class WatchedProcess {
 public:
  WatchedProcess(asio::io_context& io, Child child)
      : pid_(child.pid), pidfd_(io, child.pidfd.release()) {}

  /// Calls `handler` as a completion handler without error once the process has ended, and with one
  /// when this object goes before.
  template <class Handler>
  void on_end(Handler handler) {
    pidfd_.async_wait(asio::posix::descriptor_base::wait_read, std::move(handler));
  }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  Status kill(const Launcher* launcher) { return kill_process(pidfd_.native_handle(), launcher); }
  std::string reap() { return manager::reap(pidfd_.native_handle()); }

 private:
  pid_t pid_;
  asio::posix::stream_descriptor pidfd_;
};

}  // namespace pando::manager
