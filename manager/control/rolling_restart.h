#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "manager/workers/worker_table.h"

namespace pando::manager {

/// Replaces all workers, one after the other, by processes of the program that is installed now.
/// One worker more than before runs meanwhile, so that as many serve as before. A worker is drained
/// once its substitute serves: no query that reached its sockets is lost.
class RollingRestart {
 public:
  /// The worker pool as this class sees it.
  struct Pool {
    std::function<std::vector<WorkerStatus>()> status;
    std::function<Result<std::uint32_t>()> add;      ///< the slot of a new worker
    std::function<Status(std::uint32_t slot)> remove;  ///< drains and ends a worker
  };
  /// Called once: success when each worker that was there at the beginning has been replaced.
  using Done = std::function<void(Status)>;

  RollingRestart(asio::io_context& io, Pool pool) : pool_(std::move(pool)), timer_(io) {}
  RollingRestart(const RollingRestart&) = delete;
  RollingRestart& operator=(const RollingRestart&) = delete;

  /// kExists: a restart is under way. `step_time`: limit for a new worker until it serves, and for
  /// an old one until it has gone. Beyond the limit the restart ends with an error, and the workers
  /// that were not replaced go on.
  Status begin(Done done, std::chrono::milliseconds step_time = std::chrono::seconds(60));

 private:
  struct Worker {
    std::uint32_t slot;
    std::int32_t pid;
  };
  void look_again();
  void look();
  Status start_substitute();
  Status drain_next();
  void end(Status result);

  Pool pool_;
  asio::steady_timer timer_;
  Done done_;  ///< empty: no restart is under way
  std::chrono::milliseconds step_time_{};
  std::chrono::steady_clock::time_point step_began_;
  std::vector<Worker> old_;                  ///< workers to be replaced, the next one last
  std::optional<std::uint32_t> substitute_;  ///< slot of a new worker that does not serve yet
  std::optional<Worker> draining_;
};

}  // namespace pando::manager
