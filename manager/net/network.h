#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <thread>

#include "manager/net/connection_pool.h"
#include "manager/support/background_threads.h"

namespace pando::manager {

/// Thread for exchanges with other servers: transfers in, NOTIFY out, forwarded updates. The users
/// live on the commit thread, and results are posted back whole. Slow or numerous peers therefore
/// take no time from updates.
class Network {
 public:
  Network() = default;
  ~Network() { stop(); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] asio::io_context& loop() noexcept { return loop_; }
  /// The builder threads, for long work that would block a loop. They build and compare transferred
  /// zones. For the road of changes they compute, sign and judge; for the signer they sign zones.
  [[nodiscard]] asio::thread_pool& builders() noexcept { return builders_.pool(); }
  /// Pool of connections to primaries; for the loop's thread alone.
  [[nodiscard]] ConnectionPool& connections() noexcept { return connections_; }
  /// Ends the threads. Running exchanges are dropped without a result.
  void stop() {
    work_.reset();
    loop_.stop();
    if (thread_.joinable()) thread_.join();
    builders().stop();
    builders().join();
  }

 private:
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.get_executor()};
  BackgroundThreads builders_{2};
  ConnectionPool connections_{loop_, {}};
  std::thread thread_{[this] { loop_.run(); }};
};

}  // namespace pando::manager
