#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipc/worker_link.h"
#include "manager/launcher.h"
#include "manager/listeners.h"
#include "manager/worker_link.h"
#include "shm/slots.h"

namespace pando::manager {

struct WorkerPoolOptions {
  std::string run_directory;
  std::string store_path;
  std::uint64_t layout = 0;   ///< zone::layout_fingerprint(): workers of another are refused
  std::string worker_binary;  ///< empty: pando-worker beside the manager's own binary
  bool external = false;      ///< `workers: external`: never start a process
  bool cpu_affinity = false;
  std::chrono::milliseconds pin_time{600'000};
  std::uint32_t stop_grace_ms = 2'000;  ///< how long a stopped worker may finish its connections
  std::uint32_t worker_uid = 0;  ///< who may say Hello beside root and the manager's own user
};

/// TSIG keys as workers get them. A key named in any allow-update is held: it never leaves the
/// manager.
struct WorkerKeys {
  std::vector<dns::TsigKey> shared;
  std::vector<ipc::HeldKey> held;
};

struct WorkerStatus {
  enum class State : std::uint8_t { kStarting, kServing, kDraining, kDead };
  std::uint32_t slot = 0;
  State state = State::kDead;
  std::int32_t pid = 0;
  bool adopted = false;  ///< was alive before this manager
  std::uint32_t restarts = 0;
};

/// Starts, watches, replaces and stops workers. Everything runs on `io`'s one thread.
class WorkerPool {
 public:
  /// Called for each request that workers cannot answer alone (manager/worker_link.h). Called when
  /// a worker has died and its pins are cleared, so memory may be reusable.
  struct Hooks {
    ForwardHandler forward;
    std::function<void(std::uint32_t slot, const ipc::TransferFinished&)> transfer_finished;
    std::function<void()> pins_cleared;
    std::function<void(std::uint32_t slot)> serving;  ///< a worker said Hello and got its sockets
  };

  /// Opens the listening socket for workers in the run directory. `launcher` may be null: then the
  /// manager starts workers itself. References must outlive the pool.
  static Result<std::unique_ptr<WorkerPool>> open(asio::io_context& io, WorkerPoolOptions options,
                                                  shm::SlotTable& slots, Listeners& listeners,
                                                  Launcher* launcher, Hooks hooks);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Keys for present and future workers. Call before start() and on each reload.
  void set_keys(WorkerKeys keys);
  /// Sends sockets that Listeners::set_addresses opened, and closes those it closed.
  void sockets_changed(const Listeners::Change& change);

  /// Call when the store has a version to serve. Slots whose worker outlived the last manager are
  /// waited for (they say Hello within 100 ms of the socket's appearance), the others are started.
  void start(std::uint32_t count);
  /// Adds or drains workers until there are `count` (reload, `pandoctl workers N`).
  void set_count(std::uint32_t count);
  /// Starts one more worker; the slot it got.
  Result<std::uint32_t> add();
  /// Drains and ends one worker: no query that reached its sockets is lost. `done` is called when
  /// its sockets are closed.
  Status remove(std::uint32_t slot, std::function<void()> done = {});

  /// Stops all workers; `done` when all have gone (by force after the grace).
  void stop(std::function<void()> done);
  /// Leaves workers running for the next manager (upgrade): forgets them without a word.
  void abandon();

  [[nodiscard]] std::vector<WorkerStatus> status() const;

 private:
  struct Impl;
  explicit WorkerPool(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::manager
