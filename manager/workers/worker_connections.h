#pragma once

#include <asio/generic/seq_packet_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "manager/net/dnstap_lender.h"
#include "manager/net/query_log_lender.h"
#include "manager/support/rate_limited_log.h"
#include "manager/workers/layout_succession.h"
#include "manager/workers/socket_handover.h"
#include "manager/workers/worker_admission.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_supervisor.h"
#include "manager/workers/worker_table.h"
#include "manager/xdp/xdp_lender.h"
#include "shm/slots.h"

namespace pando::manager {

/// The parts that lend workers streams, and queues of interfaces.
struct Lenders {
  DnstapLender& dnstap;
  QueryLogLender& query_log;
  XdpLender& xdp;
};

/// Accepts connections of workers, and gives each admitted worker all that it needs to serve.
class WorkerConnections {
 public:
  /// References must outlive this object.
  WorkerConnections(WorkerTable& table, shm::SlotTable& slots, Listeners& listeners,
                    const WorkerPoolOptions& options, const WorkerPoolHooks& hooks,
                    const WorkerAdmission& admission, SocketHandover& handover,
                    LayoutSuccession& succession, WorkerSupervisor& supervisor,
                    Lenders lenders);

  /// Opens the listening socket in the run directory.
  Status listen();
  /// Takes the connections that wait; of a flood, as many as fit into one turn.
  void accept_waiting();
  void stop_listening();
  /// Stops listening, and closes connections that have not said Hello.
  void close();

  // As in WorkerPool.
  void set_keys(WorkerKeys keys);
  void send_logging();
  void store_copied();
  void leave_previous_store();
  /// Sends a worker that has said Hello the store, the keys and its sockets.
  void serve(WorkerSlot& slot);

 private:
  void accept_next();
  void take_connection(Fd socket);
  WorkerLink::Handlers handlers_for(const std::shared_ptr<std::weak_ptr<WorkerLink>>& self);
  void forward(const WorkerLink* link, ipc::Forward&& request, ForwardReply reply);
  void greet(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
             std::vector<Listeners::Socket>&& adopted, std::vector<AdoptedXdpQueue>&& queues);
  void refuse(WorkerLink& link, const ipc::Hello& hello, const Error& reason);
  void refuse_connection(std::uint32_t uid, pid_t pid, std::string_view error);
  void log_refusal(std::uint32_t slot, pid_t pid, const Error& error);
  std::optional<std::uint32_t> other_slot_of(pid_t process, std::uint32_t slot);
  /// Store and slot file for the slot's worker. An error: the worker is ended.
  Result<shm::SlotLoan> lend(WorkerSlot& slot);
  void send_setup(WorkerSlot& slot, shm::SlotLoan files);
  void link_closed(WorkerLink* link, const Error& error);

  WorkerTable& table_;
  shm::SlotTable& slots_;
  Listeners& listeners_;
  const WorkerPoolOptions& options_;
  const WorkerPoolHooks& hooks_;
  const WorkerAdmission& admission_;
  SocketHandover& handover_;
  LayoutSuccession& succession_;
  WorkerSupervisor& supervisor_;
  Lenders lenders_;
  asio::generic::seq_packet_protocol::socket listening_;
  asio::steady_timer pause_;  ///< between turns of accepting
  RateLimitedLog connections_refused_;
  std::map<Errc, RateLimitedLog> refused_;
  std::set<std::shared_ptr<WorkerLink>> before_hello_;  ///< connections that have not said Hello
  WorkerKeys keys_;
  ipc::CookieSecret random_secret_{};
};

}  // namespace pando::manager
