#pragma once

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "manager/launch/watched_process.h"
#include "manager/workers/rules/restart_pause.h"
#include "manager/workers/rules/slot_rules.h"
#include "manager/workers/worker_link.h"

namespace pando::manager {

struct WorkerStatus {
  using State = SlotState;
  std::uint32_t slot = 0;
  State state = State::kDead;
  std::int32_t pid = 0;
  bool adopted = false;  ///< was not started by this manager
  std::uint32_t restarts = 0;
  std::string build{};  ///< build ID of its program, once it has said Hello
  bool left = false;    ///< as WorkerSlot::left

  /// Whether the slot should have a worker, or has one.
  [[nodiscard]] bool is_wanted() const noexcept { return state != State::kDraining && !left; }
  [[nodiscard]] bool is_missing() const noexcept { return state == State::kDead && !left; }
};
[[nodiscard]] std::string_view to_text(SlotState state) noexcept;

/// One slot and the process in it, if any. SocketHandover and LayoutSuccession keep their own
/// records of a slot.
struct WorkerSlot {
  using State = SlotState;

  WorkerSlot(asio::io_context& io, std::uint32_t slot_number) : number(slot_number), step(io) {}

  std::uint32_t number;
  State state = State::kDead;
  pid_t pid = 0;  ///< of the process, or of the last one
  std::optional<WatchedProcess> process;
  std::shared_ptr<WorkerLink> link;
  bool adopted = false;
  bool greeted = false;  ///< this process has said Hello
  bool awaited = false;  ///< a worker of the last manager that has not said Hello yet
  /// A process that cannot be found or ended holds the slot; another slot has its work.
  bool lost = false;
  bool attached = false;  ///< this process was lent store and slot file
  /// It serves from the store of the last manager; see WorkerPhase::keeps_previous_store.
  bool keeps_store = false;
  bool told_to_stop = false;
  /// Nobody misses the slot's last worker: somebody else had started it, and ordered it to stop.
  bool left = false;
  std::string build;  ///< build ID of the program, as its last Hello said
  RestartPause restarts;
  asio::steady_timer step;  ///< next step of its life: restart, Hello's deadline, stop's deadline
  std::vector<std::function<void()>> on_removed;

  [[nodiscard]] bool serving() const noexcept { return state == State::kServing && link; }
};

/// How far the pool is; WorkerSupervisor alone writes it, but for the store.
struct WorkerPhase {
  bool started = false;
  /// All adopted workers have handed back their sockets. Until then no socket is opened and nothing
  /// is steered: the order of the SO_REUSEPORT groups is not known.
  bool settled = false;
  bool stopping = false;
  /// Our store lacks zones that the last manager's store has. Workers that read that store go on
  /// with it, and no other worker begins to serve beside them (WorkerPool::keep_previous_store).
  bool keeps_previous_store = false;
};

/// The slots, for the classes that share the work on them. Everything runs on `io`'s one thread.
class WorkerTable {
 public:
  explicit WorkerTable(asio::io_context& io) : io_(io) {}
  WorkerTable(const WorkerTable&) = delete;
  WorkerTable& operator=(const WorkerTable&) = delete;

  /// The slot; a new one is made where there is none.
  WorkerSlot& at(std::uint32_t number);
  [[nodiscard]] WorkerSlot* find(std::uint32_t number);
  /// The slot whose worker speaks through `link`.
  [[nodiscard]] WorkerSlot* of(const WorkerLink* link);
  /// The slot whose process is `process`.
  [[nodiscard]] WorkerSlot* of_process(pid_t process);
  /// The lowest slot but `slot` whose worker serves.
  [[nodiscard]] WorkerSlot* other_serving(const WorkerSlot& slot);
  [[nodiscard]] std::uint32_t lowest_free() const;
  /// A worker serves from the last manager's store, or may do so once it has said Hello.
  [[nodiscard]] bool has_previous_store() const;
  /// Slots whose worker does not leave.
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] std::map<std::uint32_t, WorkerSlot>& slots() noexcept { return slots_; }
  [[nodiscard]] const std::map<std::uint32_t, WorkerSlot>& slots() const noexcept { return slots_; }
  [[nodiscard]] asio::io_context& io() const noexcept { return io_; }

  /// A completion handler that does nothing after an error or when the table has gone.
  template <class Step>
  [[nodiscard]] auto guarded(Step step) const {
    return [alive = std::weak_ptr<int>(alive_), step](const asio::error_code& error) {
      if (!error && !alive.expired()) step();
    };
  }

  /// Runs `step` after `pause`, in place of what `timer` waits for.
  template <class Step>
  void after(asio::steady_timer& timer, std::chrono::milliseconds pause, Step step) const {
    timer.expires_after(pause);
    timer.async_wait(guarded(std::move(step)));
  }
  WorkerPhase phase;

 private:
  asio::io_context& io_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::map<std::uint32_t, WorkerSlot> slots_;
};

}  // namespace pando::manager
