#include "manager/workers/worker_connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/program_build.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/steady_time.h"
#include "ipc/log.h"
#include "ipc/packet_socket.h"

namespace pando::manager {

namespace {
/// Together 12,800 connections a second: a flood must not stall the commit thread. All
/// that wait in the kernel at one moment (ipc::listen_packets) fit into a turn.
constexpr int kAcceptsPerTurn = 128;
constexpr std::chrono::milliseconds kAcceptPause{10};
/// A worker whose connection broke may open the next one before the end of the old one is seen.
constexpr std::ptrdiff_t kMaxGreetingsPerProcess = 2;
}  // namespace

WorkerConnections::WorkerConnections(WorkerTable& table, shm::SlotTable& slots,
                                     Listeners& listeners, const WorkerPoolOptions& options,
                                     const WorkerPoolHooks& hooks, const WorkerAdmission& admission,
                                     SocketHandover& handover, LayoutSuccession& succession,
                                     WorkerSupervisor& supervisor, Lenders lenders)
    : table_(table),
      slots_(slots),
      listeners_(listeners),
      options_(options),
      hooks_(hooks),
      admission_(admission),
      handover_(handover),
      succession_(succession),
      supervisor_(supervisor),
      lenders_(lenders),
      listening_(table.io()),
      pause_(table.io()) {
  fill_random(random_secret_);
  keys_.cookie_secrets = {random_secret_};
}

// Connections
// -------------------------------------------------------------------------------------

Status WorkerConnections::listen() {
  const std::string path = options_.run_directory + "/" + ipc::kWorkerSocketName;
  auto socket = ipc::listen_packets(path, options_.worker_group);
  if (!socket) return pass(socket);
  if (ipc::is_open_to_all(path)) log::info("socket_open_to_all", "path", path);
  asio::error_code error;
  listening_.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), socket->release(), error);
  if (error) return fail(Errc::kIo, "worker socket: {}", error.message());
  accept_next();
  return {};
}

void WorkerConnections::accept_next() {
  listening_.async_wait(asio::socket_base::wait_read, table_.guarded([this] {
    accept_waiting();
    table_.after(pause_, kAcceptPause, [this] { accept_next(); });
  }));
}

void WorkerConnections::accept_waiting() {
  if (!listening_.is_open()) return;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto socket = ipc::accept_packets(listening_.native_handle());
    if (!socket) return log::warning("worker_accept_failed", "error", socket.error().text);
    if (!*socket) return;
    take_connection(std::move(*socket));
  }
}

void WorkerConnections::stop_listening() {
  asio::error_code ignored;
  listening_.close(ignored);
  pause_.cancel();
}

void WorkerConnections::close() {
  stop_listening();
  for (const auto& link : before_hello_) link->close();
  before_hello_.clear();
}

void WorkerConnections::take_connection(Fd socket) {
  constexpr std::size_t kMaxBeforeHello = 2 * shm::kMaxSlots;
  const auto peer = ipc::peer_credentials(socket.get());
  if (!peer || !admission_.may_connect(peer->uid) || before_hello_.size() >= kMaxBeforeHello)
    return refuse_connection(peer ? peer->uid : 0xFFFFFFFF, peer ? peer->pid : 0,
                             "not the workers' user, or too many connections");
  const auto greeting = std::count_if(
      before_hello_.begin(), before_hello_.end(),
      [pid = peer->pid](const auto& link) { return link->peer().pid == pid; });
  if (greeting >= kMaxGreetingsPerProcess)
    return refuse_connection(peer->uid, peer->pid, "too many connections of one process");
  auto process = ipc::peer_process(socket.get());
  if (!process) return refuse_connection(peer->uid, peer->pid, process.error().text);
  const auto self = std::make_shared<std::weak_ptr<WorkerLink>>();
  auto link = WorkerLink::open(table_.io(), std::move(socket), {peer->pid, std::move(*process)},
                               handlers_for(self));
  *self = link;
  before_hello_.insert(std::move(link));
}

void WorkerConnections::refuse_connection(std::uint32_t uid, pid_t pid, std::string_view error) {
  if (const auto connections = connections_refused_.one_more(steady_milliseconds()))
    log::warning("worker_connection_refused", "uid", uid, "pid", pid, "error", error,
                 "connections", *connections);
}

/// Each kind of error has a line of its own, so that no stranger's hides a worker's.
void WorkerConnections::log_refusal(std::uint32_t slot, pid_t pid, const Error& error) {
  if (const auto times = refused_[error.code].one_more(steady_milliseconds()))
    log::warning("worker_refused", "slot", slot, "pid", pid, "error", error.text, "times", *times);
}

WorkerLink::Handlers WorkerConnections::handlers_for(
    const std::shared_ptr<std::weak_ptr<WorkerLink>>& self) {
  WorkerLink::Handlers handlers;
  handlers.hello = [this, self](const ipc::Hello& hello, std::vector<Listeners::Socket>&& adopted,
                                std::vector<AdoptedXdpQueue>&& queues) {
    if (const auto link = self->lock())
      greet(link, hello, std::move(adopted), std::move(queues));
  };
  handlers.forward = [this, self](ipc::Forward&& request, ForwardReply reply) {
    forward(self->lock().get(), std::move(request), std::move(reply));
  };
  handlers.respond = [this, self](const WorkerLink::ResponsePath& path, ByteView response) {
    const WorkerSlot* slot = table_.of(self->lock().get());
    return slot != nullptr &&
           listeners_.respond(slot->number, path.socket, response, path.client, path.source);
  };
  handlers.keyring = [this]() -> std::shared_ptr<const dns::TsigKeyring> {
    return hooks_.keyring ? hooks_.keyring() : nullptr;
  };
  handlers.drained = [this, self](std::uint32_t socket) {
    if (const WorkerSlot* slot = table_.of(self->lock().get()))
      handover_.socket_drained(slot->number, socket);
  };
  handlers.transfer_finished = [this, self](const ipc::TransferFinished& transfer) {
    const WorkerSlot* slot = table_.of(self->lock().get());
    if (slot != nullptr && hooks_.transfer_finished)
      hooks_.transfer_finished(slot->number, transfer);
  };
  handlers.dnstap_lost = [this, self] {
    if (const WorkerSlot* slot = table_.of(self->lock().get()))
      lenders_.dnstap.stream_lost(slot->number);
  };
  handlers.xdp_served = [this, self](const ipc::XdpQueue& queue) {
    if (const WorkerSlot* slot = table_.of(self->lock().get()))
      lenders_.xdp.queue_served(slot->number, queue);
  };
  handlers.xdp_closed = [this, self](const ipc::XdpQueue& queue) {
    if (const WorkerSlot* slot = table_.of(self->lock().get()))
      lenders_.xdp.queue_closed(slot->number, queue);
  };
  handlers.closed = [this, self](const Error& error) { link_closed(self->lock().get(), error); };
  return handlers;
}

void WorkerConnections::forward(const WorkerLink* link, ipc::Forward&& request,
                                ForwardReply reply) {
  const WorkerSlot* slot = table_.of(link);
  const auto number = slot != nullptr ? std::optional(slot->number) : succession_.slot_of(link);
  // After an update a client would still read the old data from the old store. Without an answer
  // the client asks again, and then meets a worker of ours.
  const bool reads_old_store = slot == nullptr || slot->keeps_store;
  const bool stale = reads_old_store && request.kind != ipc::ForwardKind::kSignedQuery;
  if (!number || stale || !hooks_.forward)
    return reply({});  // an unanswered request would count for ever
  hooks_.forward(*number, std::move(request), std::move(reply));
}

void WorkerConnections::link_closed(WorkerLink* link, const Error& error) {
  if (WorkerSlot* slot = table_.of(link); slot != nullptr) {
    // The process may live on and come back; its pidfd tells of its end.
    slot->link.reset();
    log::info("worker_connection_closed", "slot", slot->number, "reason", error.text);
    supervisor_.lifecycle().connection_lost(*slot);
    return handover_.worker_lost(slot->number);
  }
  if (succession_.connection_lost(link)) return;
  const auto found = std::find_if(before_hello_.begin(), before_hello_.end(),
                                  [link](const auto& one) { return one.get() == link; });
  if (found == before_hello_.end()) return;
  log_refusal((*found)->hello_slot(), (*found)->peer().pid, error);
  before_hello_.erase(found);
}

// Hello, and what follows
// -------------------------------------------------------------------------------

void WorkerConnections::greet(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
                              std::vector<Listeners::Socket>&& adopted,
                              std::vector<AdoptedXdpQueue>&& queues) {
  before_hello_.erase(link);
  if (const auto other = other_slot_of(link->peer().pid, hello.slot))
    return refuse(*link, hello,
                  {Errc::kExists, fmt::format("process {} is in slot {} already",
                                              link->peer().pid, *other)});
  if (hello.layout != options_.layout && hello.slot < shm::kMaxSlots) {
    const auto greeted = succession_.greet(link, hello, std::move(adopted));
    if (!greeted) return refuse(*link, hello, greeted.error());
    return lenders_.xdp.adopt_links(std::move(queues));
  }
  auto admitted =
      admission_.admit(hello, link->peer(), supervisor_.lifecycle().place_of(hello.slot));
  if (!admitted) return refuse(*link, hello, admitted.error());
  WorkerSlot& slot = table_.at(hello.slot);
  succession_.is_of_our_layout(slot.number, link->peer().pid);
  supervisor_.lifecycle().worker_came(slot, link);
  slot.build = is_build_id(hello.build) ? hello.build : "";
  // Only a worker that had attached was given sockets by its last manager.
  slot.attached = slot.attached || hello.sockets > 0;
  // Its lock is on the store that it reads.
  slot.keeps_store =
      table_.phase.keeps_previous_store && hello.sockets > 0 && !slots_.alive(slot.number);
  handover_.cancel(slot.number);
  handover_.set_known(slot.number, {});
  handover_.set_known(slot.number, handover_.adopt(slot.number, *link, std::move(adopted)));
  if (table_.phase.stopping) return link->stop(options_.stop_grace_ms);
  lenders_.xdp.adopt(slot.number, std::move(queues));
  table_.phase.settled ? serve(slot) : supervisor_.settle_if_complete();
}

/// One process is one worker, also where the processes are not known before they come.
std::optional<std::uint32_t> WorkerConnections::other_slot_of(pid_t process, std::uint32_t slot) {
  if (const WorkerSlot* known = table_.of_process(process); known != nullptr)
    return known->number == slot ? std::nullopt : std::optional(known->number);
  const auto previous = succession_.slot_of(process);
  return previous == slot ? std::nullopt : previous;
}

void WorkerConnections::refuse(WorkerLink& link, const ipc::Hello& hello, const Error& reason) {
  log_refusal(hello.slot, link.peer().pid, reason);
  if (admission_.is_surplus(hello, reason)) {
    link.tell(ipc::SentAway{reason.code == Errc::kExists});
    link.stop(0);
  }
  link.close();
}

Result<shm::SlotLoan> WorkerConnections::lend(WorkerSlot& slot) {
  auto page = slots_.add(slot.number);
  auto files = page ? slots_.lend(slot.number, slot.attached) : Result<shm::SlotLoan>(pass(page));
  if (files) return files;
  log::error("slot_failed", "slot", slot.number, "error", files.error().text);
  supervisor_.lifecycle().kill(slot);
  return files;
}

void WorkerConnections::serve(WorkerSlot& slot) {
  // Served by leave_previous_store(), unless it reads our store already.
  if (!slot.keeps_store && table_.has_previous_store() && !slots_.alive(slot.number)) return;
  auto files = slot.keeps_store ? Result<shm::SlotLoan>() : lend(slot);
  if (!files) return;
  handover_.worker_came(slot);
  handover_.open(slot.number);
  const bool leaving = slot.state == WorkerSlot::State::kDraining;
  if (!leaving) slot.state = WorkerSlot::State::kServing;
  if (files->store) send_setup(slot, std::move(*files));
  if (slot.link) slot.link->tell(options_.logging);
  if (slot.link) slot.link->send_keys(keys_);
  // Before the sockets: the first query has its line, too.
  lenders_.query_log.worker_came(slot.number);
  if (slot.link) handover_.send(slot);
  if (!slot.link) return;  // the connection broke meanwhile
  lenders_.dnstap.worker_came(slot.number);
  if (slot.link) lenders_.xdp.worker_came(slot.number);
  if (!slot.link) return;
  log::info("worker_serving", "slot", slot.number, "pid", slot.pid, "adopted", slot.adopted);
  if (slot.keeps_store) log::info("worker_keeps_store", "slot", slot.number, "pid", slot.pid);
  handover_.steer();
  if (leaving) return supervisor_.lifecycle().drain(slot);
  handover_.hand_over_waiting();
  succession_.succeed(slot);
  if (hooks_.serving) hooks_.serving(slot.number);
}

void WorkerConnections::send_setup(WorkerSlot& slot, shm::SlotLoan files) {
  auto image = hooks_.image ? hooks_.image() : Result<shm::ImageFile>();
  // Without the image the worker cannot attach, and tries again in a new process.
  if (!image) log::error("image_not_lent", "slot", slot.number, "error", image.error().text);
  slot.attached = true;
  slot.link->send_setup(slot.number, std::move(files), image ? std::move(image->fd) : Fd());
}

void WorkerConnections::send_logging() {
  for (auto& [number, slot] : table_.slots())
    if (table_.phase.started && slot.link) slot.link->tell(options_.logging);
}

void WorkerConnections::store_copied() {
  for (auto& [number, slot] : table_.slots()) {
    if (!table_.phase.settled || !slot.link || slot.keeps_store) continue;
    if (auto files = slots_.lend(number, slot.attached)) send_setup(slot, std::move(*files));
  }
}

void WorkerConnections::leave_previous_store() {
  if (!std::exchange(table_.phase.keeps_previous_store, false)) return;
  for (auto& [number, slot] : table_.slots()) {
    const bool kept = std::exchange(slot.keeps_store, false);
    if (!table_.phase.settled || table_.phase.stopping || !slot.link) continue;
    if (!slot.serving()) {
      if (slot.state != WorkerSlot::State::kDraining) serve(slot);
    } else if (kept) {
      if (auto files = lend(slot)) send_setup(slot, std::move(*files));
    }
  }
  if (options_.external || !table_.phase.started || table_.phase.stopping) return;
  for (auto& [number, slot] : table_.slots())
    if (slot.state == WorkerSlot::State::kDead && !slot.process && !slot.lost)
      supervisor_.lifecycle().launch(slot);
}

void WorkerConnections::set_keys(WorkerKeys keys) {
  const WipeFreed wipe_freed;  // the keys before
  // Without configured secrets all workers share one that lives as long as this manager.
  if (keys.cookie_secrets.empty()) keys.cookie_secrets = {random_secret_};
  keys_ = std::move(keys);
  for (auto& [number, slot] : table_.slots())
    if (table_.phase.started && slot.link) slot.link->send_keys(keys_);
}

}  // namespace pando::manager
