#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipc/worker_messages.h"
#include "manager/workers/launcher.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_link.h"
#include "shm/image_state.h"
#include "shm/slots.h"

namespace pando::manager {

struct WorkerPoolOptions {
  std::string run_directory;
  std::string store_path;
  std::uint64_t layout = 0;   ///< zone::layout_fingerprint(): workers of another build are refused
  std::string worker_binary;  ///< empty: pando-worker beside the manager's own program
  std::string
      worker_user;  ///< `--user` for workers when this process is root and no launcher is used
  bool external = false;      ///< `workers: external`: never start a process
  bool cpu_affinity = false;  ///< pin worker N to the N-th processor
  std::chrono::milliseconds pin_time{600'000};
  std::uint32_t stop_grace_ms = 2'000;  ///< how long a stopped worker may finish its connections
  std::uint32_t worker_uid = 0;  ///< who may say Hello beside root and the manager's own user
};

struct WorkerStatus {
  enum class State : std::uint8_t { kStarting, kServing, kDraining, kDead };
  std::uint32_t slot = 0;
  State state = State::kDead;
  std::int32_t pid = 0;
  bool adopted = false;  ///< was not started by this manager
  std::uint32_t restarts = 0;
};
[[nodiscard]] std::string_view to_text(WorkerStatus::State state) noexcept;

/// Starts, watches, replaces and stops workers. Everything runs on `io`'s one thread.
class WorkerPool {
 public:
  struct Hooks {
    /// A request that workers cannot answer alone (manager/workers/worker_link.h).
    ForwardHandler forward;
    /// All keys, for transfers that are signed with a held one (manager/workers/transfer_signer.h).
    KeyringSource keyring;
    std::function<void(std::uint32_t slot, const ipc::TransferFinished&)> transfer_finished;
    /// A worker has died and its pins are cleared: memory may be reusable (Store::reclaim).
    std::function<void()> pins_cleared;
    /// What a reader of the store maps beside it (shm/borrowing.h); without a descriptor: nothing.
    std::function<Result<shm::ImageFile>()> image;
    /// A worker has said Hello and got its sockets.
    std::function<void(std::uint32_t slot)> serving;
    /// All that has_predecessors() took for workers of another build are of this one.
    std::function<void()> no_predecessors;
  };

  /// Opens the listening socket for workers in the run directory. `launcher` may be null: then the
  /// manager starts workers itself. References must outlive the pool.
  static Result<std::unique_ptr<WorkerPool>> open(asio::io_context& io, WorkerPoolOptions options,
                                                  shm::SlotTable& slots, Listeners& listeners,
                                                  const Launcher* launcher, Hooks hooks);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Keys for present and future workers. Call before start() and on each reload.
  void set_keys(WorkerKeys keys);
  /// Passes on what Listeners::set_addresses opened and closed.
  void sockets_changed(const Listeners::Change& change);
  void set_pin_time(std::chrono::milliseconds pin_time);
  /// The store borrows no chunks any more: workers look into it alone, also those that have no
  /// query to make them look.
  void store_settled();

  /// Workers of another layout serve in this run directory (manager/workers/worker_succession.cpp),
  /// or may do so: one that was started before this manager listened is told from them by its
  /// Hello.
  [[nodiscard]] bool has_predecessors();

  /// Call once, when the store has a version to serve. Slots whose worker outlived the last manager
  /// are waited for (they say Hello within 10 to 100 ms of the socket's
  /// appearance), the others are
  /// started. The error is that of the first listening socket that could not be opened; it is tried
  /// again every second, so the caller may go on. With `external`, `count` is not looked at.
  Status start(std::uint32_t count);
  /// Adds or drains workers until there are `count` (reload, `pandoctl`).
  void set_count(std::uint32_t count);
  /// Starts one more worker; the slot it got.
  Result<std::uint32_t> add();
  /// Drains and ends one worker: no query that reached its sockets is lost. `done` is called when
  /// its sockets are closed.
  Status remove(std::uint32_t slot, std::function<void()> done = {});

  /// Asks back the leases on the oldest version that any worker holds (`pinned-bytes` is passed);
  /// a worker that still holds it after ten seconds, or when it is `urgent` after a tenth of one,
  /// is ended when this is called again.
  void release_oldest(std::uint64_t before, bool urgent);

  /// Stops all workers; `done` when all have gone (by force after the grace). External workers are
  /// left alone.
  void stop(std::function<void()> done);
  /// Leaves workers running for the next manager (upgrade): forgets them without a word.
  void abandon();

  [[nodiscard]] std::vector<WorkerStatus> status() const;

 private:
  class Impl;
  explicit WorkerPool(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::manager
