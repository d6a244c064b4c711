#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "manager/launch/launcher.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_table.h"
#include "shm/slots.h"

namespace pando::manager {

/// Starts, watches, replaces and stops workers. Everything runs on `io`'s one thread.
class WorkerPool {
 public:
  using Hooks = WorkerPoolHooks;

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
  /// What present and future workers log (server.log).
  void set_logging(ipc::Logging logging);
  /// Sets the dnstap messages that present and future workers write; none: they write nothing.
  void set_dnstap(std::optional<DnstapOptions> dnstap);
  /// Sets where lines of the query log go and what workers write; none: they write nothing.
  void set_query_log(std::optional<QueryLogOptions> query_log);
  [[nodiscard]] QueryLogThread::Counters query_log_counters() const noexcept;
  /// Sets the interfaces whose queries go past the kernel's sockets (server.xdp).
  void set_xdp(XdpOptions xdp);
  [[nodiscard]] std::vector<ipc::XdpRow> xdp_status() const;
  /// Passes on what Listeners::set_addresses opened and closed.
  void sockets_changed(const Listeners::Change& change);
  /// Gives the slot's worker its end of a connection to pando-tls; false: the slot has no worker.
  bool lend_tls(std::uint32_t slot, const ipc::TlsIntake& intake, Fd connection);
  /// The slots whose workers serve.
  [[nodiscard]] std::vector<std::uint32_t> serving() const;
  void set_pin_time(std::chrono::milliseconds pin_time);
  /// The store borrows no chunks any more: all workers, idle ones too, look into the store alone.
  void store_copied();

  /// Workers of another layout serve in this run directory (manager/workers/layout_succession.h),
  /// or may do so: only its Hello shows the layout of a worker that was started before this manager
  /// listened.
  [[nodiscard]] bool has_previous_layout_workers();

  /// Workers of the last manager that read another store serve from that store until
  /// leave_previous_store(). Call before start(), when our store lacks data. While such a worker
  /// lives no other one is started or served, since that one would answer without the data.
  void keep_previous_store();
  /// All workers get our store.
  void leave_previous_store();

  /// Call once, when the store has a version to serve. Slots whose worker outlived the last manager
  /// are waited for (they say Hello within 10 to 100 ms of the socket's appearance), the others are
  /// started. The error is that of the first listening socket that could not be opened; the opening
  /// is tried again every second, so the caller may go on. With `external`, `count` is not used.
  Status start(std::uint32_t count);
  /// Adds or drains workers until there are `count` (reload, `pandoctl`).
  void set_count(std::uint32_t count);
  /// Starts one more worker; the slot it got.
  Result<std::uint32_t> add();
  /// Drains and ends one worker: no query that reached its sockets is lost. `done` is called when
  /// its sockets are closed.
  Status remove(std::uint32_t slot, std::function<void()> done = {});

  /// Asks back the leases on the oldest version that any worker holds, when `limits.pinned-bytes` is
  /// passed. A later call ends a worker that still holds it after 10 s, or after 0.1 s if `urgent`.
  void release_oldest(std::uint64_t before, bool urgent);

  /// Stops all workers; `done` when all have gone (by force after the grace). External workers are
  /// left alone.
  void stop(std::function<void()> done);
  /// Leaves workers running for the next manager (upgrade): forgets them without a word.
  void abandon();

  [[nodiscard]] std::vector<WorkerStatus> status() const;
  /// Whether workers run as another user than this process.
  [[nodiscard]] bool have_own_user() const noexcept;

 private:
  struct Parts;
  explicit WorkerPool(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pando::manager
