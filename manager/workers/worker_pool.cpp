#include "manager/workers/worker_pool.h"

#include <unistd.h>

#include <utility>

#include "manager/workers/layout_succession.h"
#include "manager/workers/socket_handover.h"
#include "manager/workers/worker_admission.h"
#include "manager/workers/worker_connections.h"
#include "manager/workers/worker_processes.h"
#include "manager/workers/worker_supervisor.h"

namespace pando::manager {

/// The parts and the calls between them. A member has references to members that are declared
/// before it. Functions lead to the later ones.
struct WorkerPool::Parts {
  Parts(asio::io_context& io, WorkerPoolOptions pool_options, shm::SlotTable& slots,
        Listeners& listeners, const Launcher* launcher, Hooks pool_hooks)
      : options(std::move(pool_options)),
        hooks(std::move(pool_hooks)),
        table(io),
        admission(options.external ? WorkerAdmission::Starter::kOther
                                   : WorkerAdmission::Starter::kManager,
                  options.layout, ::geteuid(), options.worker_uid),
        handover(table, listeners,
                 [this](std::uint32_t slot) { supervisor.lifecycle().close_slot(slot); }),
        succession(table, slots, handover, admission, options, succession_calls()),
        processes(io, slots, launcher, options),
        supervisor({table, slots, listeners, processes, options, handover, succession},
                   supervisor_calls()),
        dnstap(io, options.dnstap, dnstap_calls()),
        query_log(options.query_log, query_log_calls()),
        xdp(io, options.xdp, xdp_calls()),
        connections(table, slots, listeners, options, hooks, admission, handover, succession,
                    supervisor, {dnstap, query_log, xdp}) {}
  ~Parts() { abandon(); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void abandon() {
    connections.close();
    xdp.abandon();
    supervisor.abandon();
  }

  LayoutSuccession::Calls succession_calls() {
    LayoutSuccession::Calls calls;
    calls.none_left = hooks.no_previous_layout_workers;
    calls.settle = [this] { supervisor.settle_if_complete(); };
    calls.launch = [this](WorkerSlot& slot) { supervisor.lifecycle().launch(slot); };
    calls.drain = [this](WorkerSlot& slot) { supervisor.lifecycle().drain(slot); };
    calls.kill = [this](std::uint32_t slot, WatchedProcess& process) {
      processes.kill(slot, process);
    };
    calls.ended = [this](WorkerSlot& slot) { supervisor.previous_layout_worker_ended(slot); };
    return calls;
  }
  DnstapLender::Calls dnstap_calls() {
    return {[this](std::uint32_t slot, const ipc::Dnstap& what, Fd stream) {
              return tell_with(slot, what, std::move(stream));
            },
            [this] { return serving(); }};
  }

  QueryLogLender::Calls query_log_calls() {
    return {[this](std::uint32_t slot, const ipc::QueryLog& what, Fd stream) {
              return tell_with(slot, what, std::move(stream));
            },
            [this] { return serving(); }};
  }

  XdpLender::Calls xdp_calls() {
    XdpLender::Calls calls;
    calls.serve = [this](std::uint32_t slot, const ipc::ServeXdp& what,
                         std::vector<Fd> descriptors) {
      return tell(slot, what, std::move(descriptors));
    };
    calls.close = [this](std::uint32_t slot, const ipc::CloseXdp& what) { tell(slot, what, {}); };
    calls.slots = [this] {
      std::vector<std::uint32_t> numbers;
      for (const auto& [number, slot] : table.slots())
        if (slot.state != WorkerSlot::State::kDraining) numbers.push_back(number);
      return numbers;
    };
    calls.serving = [this] { return serving(); };
    return calls;
  }

  /// False: the slot has no worker.
  bool tell(std::uint32_t number, const ipc::ToWorker& message, std::vector<Fd> descriptors) {
    const WorkerSlot* slot = table.find(number);
    const auto link = slot != nullptr ? slot->link : nullptr;
    if (link) link->tell(message, std::move(descriptors));
    return link != nullptr;
  }
  /// `stream` may be none.
  bool tell_with(std::uint32_t number, const ipc::ToWorker& message, Fd stream) {
    std::vector<Fd> descriptors;
    if (stream) descriptors.push_back(std::move(stream));
    return tell(number, message, std::move(descriptors));
  }
  /// The slots whose workers serve.
  [[nodiscard]] std::vector<std::uint32_t> serving() {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, slot] : table.slots())
      if (slot.serving()) numbers.push_back(number);
    return numbers;
  }
  WorkerSupervisor::Calls supervisor_calls() {
    WorkerSupervisor::Calls calls;
    calls.accept_waiting = [this] { connections.accept_waiting(); };
    calls.stop_listening = [this] { connections.stop_listening(); };
    calls.serve = [this](WorkerSlot& slot) { connections.serve(slot); };
    calls.leaves = [this](std::uint32_t slot) { xdp.worker_leaves(slot); };
    calls.ended = [this](std::uint32_t slot) { xdp.worker_ended(slot); };
    calls.pins_cleared = hooks.pins_cleared;
    calls.current_version = hooks.current_version;
    return calls;
  }

  WorkerPoolOptions options;
  Hooks hooks;
  WorkerTable table;
  WorkerAdmission admission;
  SocketHandover handover;
  LayoutSuccession succession;
  WorkerProcesses processes;
  WorkerSupervisor supervisor;
  DnstapLender dnstap;
  QueryLogLender query_log;
  XdpLender xdp;
  WorkerConnections connections;
};

WorkerPool::WorkerPool(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
WorkerPool::~WorkerPool() = default;

Result<std::unique_ptr<WorkerPool>> WorkerPool::open(asio::io_context& io,
                                                     WorkerPoolOptions options,
                                                     shm::SlotTable& slots, Listeners& listeners,
                                                     const Launcher* launcher, Hooks hooks) {
  options.worker_binary = worker_binary(options.worker_binary);
  auto parts =
      std::make_unique<Parts>(io, std::move(options), slots, listeners, launcher, std::move(hooks));
  if (auto listening = parts->connections.listen(); !listening) return pass(listening);
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(parts)));
}

void WorkerPool::set_keys(WorkerKeys keys) { parts_->connections.set_keys(std::move(keys)); }
void WorkerPool::sockets_changed(const Listeners::Change& change) {
  parts_->handover.sockets_changed(change);
}
bool WorkerPool::lend_tls(std::uint32_t slot, const ipc::TlsIntake& intake, Fd connection) {
  return parts_->tell_with(slot, intake, std::move(connection));
}
std::vector<std::uint32_t> WorkerPool::serving() const { return parts_->serving(); }
void WorkerPool::set_pin_time(std::chrono::milliseconds pin_time) {
  parts_->options.pin_time = pin_time;
}
void WorkerPool::set_logging(ipc::Logging logging) {
  parts_->options.logging = std::move(logging);
  parts_->connections.send_logging();
}
void WorkerPool::set_dnstap(std::optional<DnstapOptions> dnstap) {
  parts_->dnstap.set(std::move(dnstap));
}
void WorkerPool::set_query_log(std::optional<QueryLogOptions> query_log) {
  parts_->query_log.set(std::move(query_log));
}
QueryLogThread::Counters WorkerPool::query_log_counters() const noexcept {
  return parts_->query_log.counters();
}
void WorkerPool::set_xdp(XdpOptions xdp) { parts_->xdp.set(std::move(xdp)); }
std::vector<ipc::XdpRow> WorkerPool::xdp_status() const { return parts_->xdp.status(); }
void WorkerPool::store_copied() { parts_->connections.store_copied(); }
bool WorkerPool::has_previous_layout_workers() { return parts_->succession.has_workers(); }
void WorkerPool::keep_previous_store() { parts_->table.phase.keeps_previous_store = true; }
void WorkerPool::leave_previous_store() { parts_->connections.leave_previous_store(); }
Status WorkerPool::start(std::uint32_t count) { return parts_->supervisor.start(count); }
void WorkerPool::set_count(std::uint32_t count) { parts_->supervisor.set_count(count); }
Result<std::uint32_t> WorkerPool::add() { return parts_->supervisor.add(); }
Status WorkerPool::remove(std::uint32_t slot, std::function<void()> done) {
  return parts_->supervisor.remove(slot, std::move(done));
}
void WorkerPool::release_oldest(std::uint64_t before, bool urgent) {
  parts_->supervisor.release_oldest(before, urgent);
}

void WorkerPool::stop(std::function<void()> done) {
  if (parts_->options.external) parts_->abandon();
  parts_->xdp.stop();
  parts_->supervisor.stop(std::move(done));
}

void WorkerPool::abandon() { parts_->abandon(); }

bool WorkerPool::have_own_user() const noexcept {
  return parts_->options.worker_uid != ::geteuid();
}

std::vector<WorkerStatus> WorkerPool::status() const {
  std::vector<WorkerStatus> list;
  for (const auto& [number, slot] : parts_->table.slots())
    list.push_back({number, slot.state, slot.pid, slot.adopted, slot.restarts.count(),
                    slot.greeted ? slot.build : "", slot.left});
  return list;
}

}  // namespace pando::manager
