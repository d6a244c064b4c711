#pragma once

#include <asio/generic/seq_packet_protocol.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <set>

#include "manager/workers/adopted_worker.h"
#include "manager/workers/pin_watch.h"
#include "manager/workers/worker_admission.h"
#include "manager/workers/worker_pool.h"

/// The inside of WorkerPool, shared by its source files.
namespace pando::manager {

/// A worker of another layout that serves the slot's sockets until a worker of ours does.
struct WorkerPredecessor {
  pid_t pid = 0;
  std::optional<asio::posix::stream_descriptor> process;
  std::shared_ptr<WorkerLink> link;  ///< null: it has not said Hello yet
  bool awaited = false;              ///< and is waited for
};

/// One slot and the process in it, if any.
struct WorkerSlot {
  using State = WorkerStatus::State;

  WorkerSlot(asio::io_context& io, std::uint32_t slot_number)
      : number(slot_number), step(io), absence(io), succession(io) {}

  std::uint32_t number;
  State state = State::kDead;
  pid_t pid = 0;
  std::optional<asio::posix::stream_descriptor> process;  ///< pidfd: readable when it has ended
  std::shared_ptr<WorkerLink> link;
  bool adopted = false;
  bool greeted = false;  ///< this process has said Hello
  bool awaited = false;  ///< a survivor of the last manager that has not said Hello yet
  bool told_to_stop = false;
  std::uint32_t restarts = 0;
  std::chrono::milliseconds backoff{0};
  std::chrono::steady_clock::time_point started{};
  std::set<std::uint32_t> known_sockets;  ///< ids whose descriptors the worker has
  PinWatch pins;

  asio::steady_timer step;  ///< next step of its life: restart, Hello's deadline, stop's deadline
  asio::steady_timer absence;  ///< since the process died: then its queue goes to another worker

  /// Ids of sockets that another worker (`guardian`) reads to the end because nobody is here.
  std::set<std::uint32_t> orphans;
  std::optional<std::uint32_t> guardian;
  bool withdrawn = false;         ///< its UDP sockets have left their groups: about to be closed
  std::uint32_t late_rounds = 0;  ///< how often the queue was not empty after it had been read
  std::vector<std::function<void()>> on_removed;

  std::optional<WorkerPredecessor> predecessor;
  asio::steady_timer succession;  ///< next step of what becomes of it

  [[nodiscard]] bool serving() const noexcept { return state == State::kServing && link; }
  /// New traffic should go elsewhere.
  [[nodiscard]] bool turned_away() const noexcept {
    return state == State::kDraining || guardian.has_value() || withdrawn;
  }
};

class WorkerPool::Impl {
 public:
  Impl(asio::io_context& io, WorkerPoolOptions options, shm::SlotTable& slots, Listeners& listeners,
       const Launcher* launcher, Hooks hooks);
  ~Impl();

  // worker_pool.cpp: the public side, and connections
  Status listen();
  void set_keys(WorkerKeys keys);
  void sockets_changed(const Listeners::Change& change);
  void store_settled();
  Status start(std::uint32_t count);
  void set_count(std::uint32_t count);
  Result<std::uint32_t> add();
  Status remove(std::uint32_t number, std::function<void()> done);
  void release_oldest(std::uint64_t before, bool urgent);
  [[nodiscard]] bool has_predecessors();
  void stop(std::function<void()> done);
  void abandon();
  [[nodiscard]] std::vector<WorkerStatus> status() const;
  WorkerPoolOptions options_;

 private:
  using Slot = WorkerSlot;

  void accept_next();
  void accept_all();
  void take_connection(Fd socket);
  WorkerLink::Handlers handlers_for(const std::shared_ptr<std::weak_ptr<WorkerLink>>& self);
  void greet(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
             std::vector<Listeners::Socket>&& adopted);
  WorkerAdmission::Place place_of(std::uint32_t number);
  void refuse(WorkerLink& link, const ipc::Hello& hello, const Error& reason);
  std::vector<std::uint32_t> take_sockets(const Slot& slot, WorkerLink& link,
                                          std::vector<Listeners::Socket>&& adopted);
  void serve(Slot& slot);
  void send_setup(Slot& slot, Fd slot_file);
  void send_sockets(Slot& slot);
  void link_closed(WorkerLink* link, const Error& error);
  Slot* slot_of(const WorkerLink* link);
  Slot* slot_succeeding(const WorkerLink* link);

  // worker_life.cpp: processes from start to end
  Slot& slot_at(std::uint32_t number);
  [[nodiscard]] std::uint32_t lowest_free() const;
  [[nodiscard]] std::uint32_t count() const;
  void launch(Slot& slot);
  Result<Child> spawn(std::uint32_t number);
  void watch(Slot& slot, Child child);
  void ended(Slot& slot);
  void retry_later(Slot& slot);
  std::optional<Child> recorded_worker(std::uint32_t number);
  void await_survivors();
  void await_survivor(Slot& slot);
  void settle_if_complete();
  void open_sockets(std::uint32_t number);
  void survivor_gone(Slot& slot);
  void end_silent_survivor(std::uint32_t number);
  void kill(Slot& slot);
  void kill_process(const Slot& slot, asio::posix::stream_descriptor& process);
  void await_successor(Slot& slot);
  void tick();
  void check_page(Slot& slot);
  void check_pins(Slot& slot);

  // worker_succession.cpp: workers of another layout
  [[nodiscard]] bool is_recorded(const FoundWorker& found) const;
  void await_predecessors();
  void watch_strange();
  void is_not_strange(pid_t pid);
  void is_ours(Slot& slot, pid_t pid);
  void follow(Slot& slot, Child process);
  void greet_predecessor(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
                         std::vector<Listeners::Socket>&& adopted);
  void succeed(Slot& slot);
  void await_attachment(Slot& slot);
  void stop_predecessor(Slot& slot);
  void predecessor_ended(Slot& slot);

  // worker_drain.cpp: leaving without losing what is queued
  void steer();
  void hand_over(Slot& slot);
  void hand_over_again(Slot& slot);
  void give_to_guardian(std::uint32_t number);
  void socket_drained(std::uint32_t guardian, std::uint32_t socket);
  void take_back(Slot& slot);
  void guardian_lost(std::uint32_t guardian);
  void drain(Slot& slot);
  void tell_to_stop(Slot& slot);
  void retire(Slot& slot);
  void withdraw(Slot& slot);
  void tell_positions();
  void close_slot(Slot& slot);
  void finish_stop_if_empty();
  Slot* other_serving(const Slot& slot);

  /// A completion handler that does nothing after an error or when the pool has gone.
  template <class Step>
  auto guarded(Step step) {
    return [alive = std::weak_ptr<int>(alive_), step](const asio::error_code& error) {
      if (!error && !alive.expired()) step();
    };
  }

  WorkerAdmission admission_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  asio::io_context& io_;
  shm::SlotTable& slots_;
  Listeners& listeners_;
  const Launcher* launcher_;
  Hooks hooks_;
  asio::generic::seq_packet_protocol::socket listening_;
  asio::steady_timer tick_timer_;
  std::set<std::shared_ptr<WorkerLink>> strangers_;  ///< connections before Hello
  std::map<std::uint32_t, Slot> workers_;
  WorkerKeys keys_;
  ipc::CookieSecret random_secret_{};
  bool started_ = false;
  /// Workers that no page named when it was looked, and that have neither ended nor said Hello with
  /// our layout, with their pidfds.
  std::map<pid_t, Fd> strange_;
  asio::steady_timer strange_timer_;
  bool none_before_ = false;  ///< there are none of these
  /// All survivors have handed back their sockets. Until then none is opened and nothing is
  /// steered: the order of the SO_REUSEPORT groups is not known.
  bool settled_ = false;
  bool stopping_ = false;
  bool retry_open_ = false;  ///< a listening socket could not be opened
  std::function<void()> on_stopped_;
  Status first_opening_;  ///< first failure to open a listening socket
  OldestHold oldest_;
};

}  // namespace pando::manager
