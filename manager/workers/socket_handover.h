#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_table.h"

/// Leaving without losing what is queued. Closing a SO_REUSEPORT socket throws its queue away, so:
///   1. steer new traffic to the other slots (a BPF program for the group);
///   2. wait until packets that chose this socket before are in its queue;
///   3. let its worker read the queue to the end and leave; when there is no worker, let another
///      slot's worker read it (the drain worker of this slot);
///   4. check the queue once more: the kernel may have held up a packet for longer;
///   5. withdraw the socket from its group: while a socket is being closed there are moments when
///      the kernel still finds it, outside its group, so that no program steers;
///   6. wait and check again; close it.
namespace pando::manager {

/// Passes listening sockets between the manager and workers, and brings each queue to a reader
/// before its sockets are closed.
class SocketHandover {
 public:
  /// The kernel's receive path sees a new program immediately, apart from packets that are just
  /// being handed to a socket: microseconds. The margin is for virtual machines that lose their
  /// processor.
  static constexpr std::chrono::milliseconds kSteerSettle{20};

  /// `forget_slot` ends the slot everywhere, here by forget(), when its sockets are closed.
  SocketHandover(WorkerTable& table, Listeners& listeners,
                 std::function<void(std::uint32_t number)> forget_slot)
      : table_(table), listeners_(listeners), forget_slot_(std::move(forget_slot)) {}

  /// Opens what the slot lacks. A failure is logged, stored for take_failure() and tried again by
  /// retry_openings().
  void open(std::uint32_t number);
  /// The first failure of open() since the last call.
  Status take_failure();
  void retry_openings();
  /// Takes the sockets that a worker of the last manager hands back. A socket that cannot be taken
  /// is closed in the worker, which must not read a socket that nobody knows. Gives our numbers of
  /// the sockets taken.
  std::vector<std::uint32_t> adopt(std::uint32_t number, WorkerLink& link,
                                   std::vector<Listeners::Socket>&& adopted);
  /// The slot's worker has the descriptors of these sockets and of no others.
  void set_known(std::uint32_t number, const std::vector<std::uint32_t>& sockets);
  /// Sends descriptors of sockets that the worker lacks, and numbers and positions of the others.
  void send(WorkerSlot& slot);
  /// Passes on what Listeners::set_addresses opened and closed.
  void sockets_changed(const Listeners::Change& change);

  /// Sends new traffic to the slots that are not about to leave.
  void steer();
  /// A worker has come to the slot, and takes its sockets back from the drain worker. If that was
  /// given their descriptors, the slot gets other sockets soon: a hijacked drain worker keeps the
  /// descriptors, and would read the slot's queries for as long as it lives.
  void worker_came(WorkerSlot& slot);
  /// The worker's connection has broken: it no longer says which queues of others are empty.
  void worker_lost(std::uint32_t number);
  /// The slot's worker has ended. A hijacked one must not silence an address beyond its end: neither
  /// with sockets of its slot, nor with those of others that it was lent.
  void replace_impaired(std::uint32_t ended);
  /// Slots whose workers have impaired sockets of which they were lent the descriptors, or may have:
  /// the borrower of each, and the owner. No sound worker does that. The sockets stay in their
  /// groups, without a reader, until both have ended.
  [[nodiscard]] std::set<std::uint32_t> find_impairing();
  /// The slot's worker has ended: its queue goes to another worker immediately, or to the first
  /// that serves.
  void await_worker(WorkerSlot& slot);
  /// Gives `state` to slots that have nothing but sockets, which the service manager has kept: they
  /// are read by the first worker that serves. A draining slot ends then.
  void await_readers(WorkerSlot::State state);
  /// A worker serves: it gets the queues that found no reader.
  void hand_over_waiting();
  /// The slot's queue is being read, or its sockets are about to be closed.
  [[nodiscard]] bool is_ending(std::uint32_t number) const;
  /// The slot needs no hand-over now; a later call may begin one again.
  void cancel(std::uint32_t number);
  /// The worker of slot `drain_worker` has read an orphaned socket to its end.
  void socket_drained(std::uint32_t drain_worker, std::uint32_t socket);
  /// Nobody is in the slot, and its queue seems to be empty: its sockets are closed, after a last
  /// look. A draining slot ends then.
  void retire(WorkerSlot& slot);

  void forget(std::uint32_t number) { records_.erase(number); }
  void forget_all() { records_.clear(); }

 private:
  struct Record {
    explicit Record(asio::io_context& io) : absence(io) {}
    asio::steady_timer absence;     ///< the next step of an absence
    bool absent = false;            ///< the slot's worker has ended, and the next has not come
    std::set<std::uint32_t> known;  ///< numbers of sockets whose descriptors the worker has
    /// Numbers of sockets that the drain worker reads to the end because the slot has no worker.
    std::set<std::uint32_t> orphaned;
    /// Sockets whose descriptors workers of other slots were given: number → slot of the borrower.
    std::map<std::uint32_t, std::uint32_t> lent;
    std::optional<std::uint32_t> drain_worker;
    bool withdrawn = false;         ///< its UDP sockets have left their groups: about to be closed
    bool renewing = false;          ///< its worker reads the queue before it gets other sockets
    std::uint32_t late_rounds = 0;  ///< how often the queue was not empty after it had been read
  };

  Record& record_of(std::uint32_t number);
  [[nodiscard]] std::vector<const Listeners::Socket*> served_by(std::uint32_t number) const;
  void replace_impaired_of(WorkerSlot& slot);
  [[nodiscard]] bool is_turned_away(const WorkerSlot& slot) const;
  void hand_over(WorkerSlot& slot);
  void give_to_drain_worker(std::uint32_t number);
  void hand_over_again(std::uint32_t number);
  void rest(std::uint32_t number, Record& record);
  void take_back(Record& record);
  void renew_after(std::uint32_t number, std::chrono::milliseconds pause);
  void renew(std::uint32_t number);
  void replace_lent(WorkerSlot& slot);
  void withdraw(std::uint32_t number);
  void tell_positions();
  void close_sockets(std::uint32_t number);
  void close_slot(WorkerSlot& slot);

  WorkerTable& table_;
  Listeners& listeners_;
  std::function<void(std::uint32_t)> forget_slot_;
  std::map<std::uint32_t, Record> records_;
  bool retry_open_ = false;  ///< a listening socket could not be opened
  Status first_failure_;
};

}  // namespace pando::manager
