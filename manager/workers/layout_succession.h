#pragma once

#include <sys/types.h>

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "manager/launch/adopted_worker.h"
#include "manager/launch/watched_process.h"
#include "manager/workers/socket_handover.h"
#include "manager/workers/worker_admission.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_table.h"
#include "shm/slots.h"

/// Workers of another layout, which a manager of the old build has left. They go on answering from
/// the store that they have mapped, which has no name any more, and cannot be given ours. So each
/// is followed by a worker of ours in the same slot:
///   1. the previous-layout worker says Hello, as adopted workers do, and hands back its sockets:
///      they become the slot's;
///   2. a worker of ours is started in the slot, attaches, and gets these very sockets, so that for
///      a while two processes read from one queue;
///   3. the previous-layout worker is told to stop: it reads what is queued once more, lets its
///      connections end, and leaves.
/// The sockets never leave their groups and are never without a reader, so no query is lost.
namespace pando::manager {

/// Follows each worker of another layout until a worker of ours has taken its place.
class LayoutSuccession {
 public:
  struct Calls {
    /// All processes that has_workers() found have ended or are of our layout.
    std::function<void()> none_left;
    /// One more worker need not be waited for.
    std::function<void()> settle;
    std::function<void(WorkerSlot&)> launch;  ///< starts a worker of ours
    std::function<void(WorkerSlot&)> drain;   ///< ends the slot
    std::function<void(std::uint32_t slot, WatchedProcess&)> kill;
    /// The slot's previous-layout worker has ended and is forgotten.
    std::function<void(WorkerSlot&)> ended;
  };

  /// References must outlive this object.
  LayoutSuccession(WorkerTable& table, shm::SlotTable& slots, SocketHandover& handover,
                   const WorkerAdmission& admission, const WorkerPoolOptions& options, Calls calls);

  /// Whether processes of this run directory work in slots whose pages do not name them. Such an
  /// unidentified worker is of another layout, unless its Hello says otherwise.
  [[nodiscard]] bool has_workers();
  /// Waits for the Hello of each previous-layout worker, but not for long.
  void await_workers();
  /// A worker in `slot` has said Hello with our layout: nobody had written down that process.
  void is_of_our_layout(std::uint32_t number, pid_t pid);
  /// A Hello of another layout. An error: the worker is refused.
  Status greet(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
               std::vector<Listeners::Socket>&& adopted);
  /// Takes the next step towards a worker of ours in the slot.
  void succeed(WorkerSlot& slot);
  /// Tells the slot's previous-layout worker, if any, to stop.
  void stop(WorkerSlot& slot);

  [[nodiscard]] bool serves(std::uint32_t number) const { return records_.contains(number); }
  /// The slot's previous-layout worker has not said Hello yet, and is waited for.
  [[nodiscard]] bool is_awaited(std::uint32_t number) const;
  /// The slot whose previous-layout worker speaks through `link`.
  [[nodiscard]] std::optional<std::uint32_t> slot_of(const WorkerLink* link) const;
  [[nodiscard]] std::optional<std::uint32_t> slot_of(pid_t process) const;
  /// False when `link` is not a previous-layout worker's.
  bool connection_lost(const WorkerLink* link);

  /// Takes no next step of the slot's succession by time.
  void cancel(std::uint32_t number);
  /// Looks for the end of unidentified workers no longer.
  void stop_looking();
  /// Ends all connections; the workers go on.
  void leave_all();
  void forget(std::uint32_t number) { records_.erase(number); }
  void forget_all() { records_.clear(); }

 private:
  /// A worker of another layout that serves the slot's sockets until a worker of ours does.
  struct Record {
    Record(asio::io_context& io, Child child) : process(io, std::move(child)), step(io) {}
    WatchedProcess process;
    std::shared_ptr<WorkerLink> link;  ///< null: it has not said Hello yet
    bool awaited = false;              ///< it has not said Hello yet and is waited for
    asio::steady_timer step;  ///< its next step: Hello's deadline, a check, stop's deadline
  };

  [[nodiscard]] bool is_recorded(const FoundWorker& found) const;
  void look_again();
  void drop_unidentified(pid_t pid);
  [[nodiscard]] Record* find(std::uint32_t number);
  Record& follow(std::uint32_t number, Child process);
  void await_hello(std::uint32_t number, Record& record);
  void await_attachment(WorkerSlot& slot);
  void worker_ended(std::uint32_t number);

  WorkerTable& table_;
  shm::SlotTable& slots_;
  SocketHandover& handover_;
  const WorkerAdmission& admission_;
  const WorkerPoolOptions& options_;
  Calls calls_;
  std::map<std::uint32_t, Record> records_;
  /// Workers that no page named at the first check, and that have neither ended nor said Hello with
  /// our layout, with their pidfds.
  std::map<pid_t, Fd> unidentified_;
  asio::steady_timer look_timer_;
  bool none_before_ = false;  ///< no process can be a worker of another layout
};

}  // namespace pando::manager
