#include "manager/tls/tls_processes.h"

#include <fcntl.h>

#include <algorithm>
#include <asio/post.hpp>

#include "base/random.h"
#include "base/secret.h"
#include "ipc/log.h"
#include "ipc/packet_socket.h"

namespace pando::manager {

namespace {

using std::chrono::milliseconds;

constexpr int kAcceptsPerTurn = 32;
constexpr milliseconds kAcceptPause{10};
constexpr std::size_t kMaxBeforeHello = 64;
constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20;
/// A started process says Hello within some 100 ms.
constexpr milliseconds kHelloTime{20'000};
/// How long processes of an earlier manager may finish their connections.
constexpr std::uint32_t kHandOverMs = 30'000;
/// Grace of a process of ours that is stopped.
constexpr std::uint32_t kStopMs = 2'000;
constexpr milliseconds kKillTime{1'000};  ///< after the grace
/// RFC 8446 §4.6.1: a stolen key opens the sessions of this time.
constexpr std::chrono::hours kTicketKeyTime{12};

Fd duplicate(const Fd& descriptor) {
  return Fd(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

template <class Step>
void TlsProcesses::after(asio::steady_timer& timer, milliseconds pause, Step step) {
  timer.expires_after(pause);
  timer.async_wait([alive = std::weak_ptr<int>(alive_), step](const asio::error_code& error) {
    if (!error && !alive.expired()) step();
  });
}

TlsProcesses::TlsProcesses(asio::io_context& io, std::string run_directory, Rights rights,
                           Calls calls)
    : io_(io),
      run_directory_(std::move(run_directory)),
      rights_(std::move(rights)),
      calls_(std::move(calls)),
      listeners_({}, Listeners::Keep::kNowhere),
      tickets_timer_(io),
      listening_(io),
      accept_pause_(io) {
  renew_ticket_keys();
}

TlsProcesses::~TlsProcesses() {
  abandon();
  const WipeFreed wipe_freed;
  tickets_.keys = {};
}

Status TlsProcesses::open(std::vector<systemd::InheritedDescriptor> inherited,
                          const std::vector<Endpoint>& listen) {
  auto socket =
      ipc::listen_packets(run_directory_ + "/" + ipc::kTlsSocketName, rights_.group);
  if (!socket) return pass(socket);
  asio::error_code error;
  listening_.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), socket->release(), error);
  if (error) return fail(Errc::kIo, "socket of pando-tls: {}", error.message());
  listeners_.set_addresses({{}, listen});
  listeners_.restore(std::move(inherited));
  accept_next();
  return {};
}

// Connections
// -------------------------------------------------------------------------------------

void TlsProcesses::accept_next() {
  listening_.async_wait(asio::socket_base::wait_read, [this, alive = std::weak_ptr<int>(alive_)](
                                                          const asio::error_code& error) {
    if (error || alive.expired()) return;
    accept_waiting();
    after(accept_pause_, kAcceptPause, [this] { accept_next(); });
  });
}

void TlsProcesses::accept_waiting() {
  if (!listening_.is_open()) return;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto socket = ipc::accept_packets(listening_.native_handle());
    if (!socket || !*socket) return;
    take_connection(std::move(*socket));
  }
}

/// Any process of the workers' user reaches the socket. Only the one that is in the slot is served;
/// all others are told to stop, whoever they are.
void TlsProcesses::take_connection(Fd socket) {
  const auto peer = ipc::peer_credentials(socket.get());
  const bool may_connect =
      peer && (peer->uid == 0 || peer->uid == ::geteuid() || peer->uid == rights_.uid);
  if (!may_connect || before_hello_.size() >= kMaxBeforeHello) return;
  auto link = ipc::Channel::open(io_, std::move(socket), kMaxQueuedBytes);
  before_hello_.insert(link);
  const std::weak_ptr<ipc::Channel> self = link;
  link->start({[this, self, pid = peer->pid](ipc::Packet&& packet) {
                 if (const auto known = self.lock()) take_first(known, pid, std::move(packet));
               },
               [this, self](const Error&) { before_hello_.erase(self.lock()); }});
}

void TlsProcesses::take_first(const Link& link, pid_t pid, ipc::Packet&& packet) {
  auto message = ipc::decode_from_tls(packet.data);
  before_hello_.erase(link);
  const auto* hello = message ? std::get_if<ipc::TlsHello>(&*message) : nullptr;
  if (hello == nullptr) return link->close();
  greet(link, pid, *hello);
}

void TlsProcesses::greet(const Link& link, pid_t pid, const ipc::TlsHello& hello) {
  const auto found = slots_.find(hello.slot);
  const bool is_ours = found != slots_.end() && found->second.process &&
                       found->second.process->pid() == pid && !found->second.link;
  if (!is_ours) {
    log::info("tls_process_sent_away", "slot", hello.slot, "pid", pid);
    [[maybe_unused]] const auto sent =
        link->send(ipc::encode(ipc::ToTls(ipc::TlsStop{kHandOverMs})));
    return link->close();
  }
  TlsSlot& slot = found->second;
  slot.link = link;
  slot.build = hello.build;
  slot.step.cancel();
  link->start({[this, number = slot.number](ipc::Packet&& packet) {
                 if (const auto known = slots_.find(number); known != slots_.end())
                   take(known->second, std::move(packet));
               },
               [this, number = slot.number](const Error& error) {
                 const auto known = slots_.find(number);
                 if (known == slots_.end() || known->second.leaving) return;
                 log::warning("tls_connection_closed", "slot", number, "reason", error.text);
                 kill(known->second);
               }});
  send_settings(slot);
}

void TlsProcesses::take(TlsSlot& slot, ipc::Packet&& packet) {
  auto message = ipc::decode_from_tls(packet.data);
  if (!message) {
    log::warning("tls_message_refused", "slot", slot.number, "error", message.error().text);
    return kill(slot);
  }
  if (const auto* counts = std::get_if<ipc::TlsCounts>(&*message)) slot.counts = *counts;
  if (const auto* result = std::get_if<ipc::TlsCertificateResult>(&*message))
    certificate_judged(slot, result->fault);
}

/// The first process that answers decides for all; they run the same program.
void TlsProcesses::certificate_judged(TlsSlot& slot, const std::string& fault) {
  if (fault.empty()) {
    if (certificate_.offered) {
      certificate_.good = std::exchange(certificate_.offered, nullptr);
      log::info("tls_certificate_used", "slot", slot.number);
    }
    slot.has_certificate = true;
    return send_sockets(slot);
  }
  if (!certificate_.offered) return;
  certificate_.offered = nullptr;
  log::error("tls_certificate_not_used", "error", fault, "effect",
             certificate_.good ? "the pair before stays in use" : "TLS is not served");
  // A process that began with the refused pair has none.
  for (auto& [number, other] : slots_)
    if (certificate_.good && other.link && !other.has_certificate)
      send_certificate(other, certificate_.good);
}

// Settings
// ---------------------------------------------------------------------------------------

std::vector<std::string> TlsProcesses::configure(TlsOptions options) {
  options_ = std::move(options);
  const Listeners::Change change = listeners_.set_addresses({{}, options_.listen});
  for (auto& [number, slot] : slots_) {
    tell(slot, options_.logging);
    tell(slot, options_.limits);
    send_demands(slot);
    const auto closed = change.closed.find(number);
    if (closed != change.closed.end()) tell(slot, ipc::TlsUnlisten{closed->second});
  }
  adapt_number();
  for (auto& [number, slot] : slots_) send_sockets(slot);
  return change.errors;
}

void TlsProcesses::follow_interfaces() {
  if (listeners_.has_moved_interface()) configure(std::move(options_));
}

void TlsProcesses::start() {
  started_ = true;
  adapt_number();
}

void TlsProcesses::set_certificate(const File& file) {
  if (!file || file == certificate_.good || file == certificate_.offered) return;
  certificate_.offered = file;
  for (auto& [number, slot] : slots_)
    if (slot.link) send_certificate(slot, certificate_.offered);
  adapt_number();
}

void TlsProcesses::send_settings(TlsSlot& slot) {
  tell(slot, options_.logging);
  tell(slot, tickets_);
  tell(slot, options_.limits);
  send_demands(slot);
  for (const std::uint32_t worker : calls_.workers()) connect(slot, worker);
  send_certificate(slot, certificate_.offered ? certificate_.offered : certificate_.good);
}

void TlsProcesses::send_certificate(TlsSlot& slot, const File& file) {
  if (!file) return;
  std::vector<Fd> descriptors;
  descriptors.push_back(duplicate(*file));
  tell(slot, ipc::TlsCertificate{}, std::move(descriptors));
}

void TlsProcesses::send_demands(TlsSlot& slot) {
  auto file = ipc::make_tls_file(ipc::encode(options_.demands));
  if (!file) return log::error("tls_demands_not_sent", "error", file.error().text);
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(*file));
  tell(slot, ipc::TlsDemands{}, std::move(descriptors));
}

/// Sends the sockets that the process has not got yet, once it can serve.
void TlsProcesses::send_sockets(TlsSlot& slot) {
  if (!slot.link || !slot.has_certificate || slot.leaving) return;
  if (auto opened = listeners_.open(slot.number); !opened)
    log::error("listen_failed", "reason", opened.error().text);
  std::vector<const Listeners::Socket*> sockets = listeners_.shared();
  for (const Listeners::Socket& socket : listeners_.of(slot.number)) sockets.push_back(&socket);
  for (const Listeners::Socket* socket : sockets) {
    if (!slot.sent.insert(socket->description.id).second) continue;
    std::vector<Fd> descriptors;
    descriptors.push_back(duplicate(socket->fd));
    tell(slot, ipc::TlsListen{{socket->description}}, std::move(descriptors));
  }
  if (!std::exchange(slot.listens, true))
    log::info("tls_serving", "slot", slot.number, "pid", slot.process ? slot.process->pid() : 0);
}

void TlsProcesses::worker_serves(std::uint32_t worker) {
  for (auto& [number, slot] : slots_)
    if (slot.link) connect(slot, worker);
}

void TlsProcesses::connect(TlsSlot& slot, std::uint32_t worker) {
  auto pair = ipc::packet_pair();
  if (!pair) return log::error("tls_not_connected", "slot", slot.number, "error",
                               pair.error().text);
  if (!calls_.lend(worker, {slot.number}, std::move(pair->first))) return;
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(pair->second));
  tell(slot, ipc::TlsWorker{worker}, std::move(descriptors));
}

void TlsProcesses::tell(TlsSlot& slot, const ipc::ToTls& message, std::vector<Fd> descriptors) {
  if (!slot.link) return;
  const WipeFreed wipe_freed;  // keys of tickets
  if (auto sent = slot.link->send(ipc::encode(message), std::move(descriptors)); !sent) kill(slot);
}

void TlsProcesses::renew_ticket_keys() {
  constexpr std::size_t kKeys = 2;  // tickets of the last key are still good
  const WipeFreed wipe_freed;
  ipc::TlsTicketKey key;
  fill_random(key);
  tickets_.keys.insert(tickets_.keys.begin(), key);
  if (tickets_.keys.size() > kKeys) tickets_.keys.pop_back();
  wipe(key);
  for (auto& [number, slot] : slots_) tell(slot, tickets_);
  after(tickets_timer_, kTicketKeyTime, [this] { renew_ticket_keys(); });
}

// Processes
// --------------------------------------------------------------------------------------

/// Without a certificate there is nothing to serve.
void TlsProcesses::adapt_number() {
  if (stopped_ || !started_) return;
  const bool wanted = !options_.listen.empty() && (certificate_.good || certificate_.offered);
  const std::uint32_t count = wanted ? options_.processes : 0;
  for (std::uint32_t number = 0; number < count; ++number) {
    const auto [place, is_new] = slots_.try_emplace(number, io_, number);
    if (is_new) launch(place->second);
  }
  for (auto& [number, slot] : slots_)
    if (number >= count && !slot.leaving) end(slot, kHandOverMs);
}

void TlsProcesses::launch(TlsSlot& slot) {
  auto child = rights_.launcher != nullptr ? rights_.launcher->spawn_tls(slot.number)
                                           : spawn_tls(rights_.command, slot.number);
  slot.restarts.process_started(RestartPause::Clock::now());
  if (!child) {
    log::error("tls_not_started", "slot", slot.number, "error", child.error().text);
    return launch_after(slot, RestartPause::kLongest);
  }
  slot.process.emplace(io_, std::move(*child));
  slot.process->on_end([this, number = slot.number, alive = std::weak_ptr<int>(alive_)](
                           const asio::error_code& error) {
    if (error || alive.expired()) return;
    if (const auto known = slots_.find(number); known != slots_.end()) ended(known->second);
  });
  log::info("tls_started", "slot", slot.number, "pid", slot.process->pid());
  after(slot.step, kHelloTime, [this, number = slot.number] {
    if (const auto known = slots_.find(number); known != slots_.end()) kill(known->second);
  });
}

void TlsProcesses::launch_after(TlsSlot& slot, milliseconds pause) {
  after(slot.step, pause, [this, number = slot.number] {
    const auto known = slots_.find(number);
    if (known != slots_.end() && !stopped_) launch(known->second);
  });
}

/// The slot's sockets stay open: clients that connect meanwhile wait for the next process. Those
/// that the process has impaired are replaced.
void TlsProcesses::ended(TlsSlot& slot) {
  const std::string how = slot.process->reap();
  const pid_t pid = slot.process->pid();
  const bool greeted = slot.link != nullptr;
  if (slot.link) slot.link->close();
  slot.link.reset();
  slot.process.reset();
  slot.step.cancel();
  slot.has_certificate = slot.listens = false;
  slot.sent.clear();
  if (slot.leaving) {
    log::info("tls_ended", "slot", slot.number, "pid", pid, "status", how);
    listeners_.close(slot.number);
    slots_.erase(slot.number);
    if (stopped_ && slots_.empty()) return std::exchange(stopped_, nullptr)();
    return adapt_number();
  }
  log::warning("tls_died", "slot", slot.number, "pid", pid, "status", how);
  listeners_.drop_impaired(slot.number);
  const bool others_serve = std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
    return entry.second.listens;
  });
  const auto pause =
      slot.restarts.process_ended(greeted, RestartPause::Clock::now(), others_serve);
  if (pause.count() == 0) return launch(slot);
  launch_after(slot, pause);
}

void TlsProcesses::end(TlsSlot& slot, std::uint32_t grace_ms) {
  slot.leaving = true;
  if (!slot.process) {
    listeners_.close(slot.number);
    const std::uint32_t number = slot.number;
    return asio::post(io_, [this, number, alive = std::weak_ptr<int>(alive_)] {
      if (alive.expired()) return;
      slots_.erase(number);
      if (stopped_ && slots_.empty()) std::exchange(stopped_, nullptr)();
    });
  }
  if (!slot.link) return kill(slot);
  tell(slot, ipc::TlsStop{grace_ms});
  after(slot.step, milliseconds(grace_ms) + kKillTime, [this, number = slot.number] {
    if (const auto known = slots_.find(number); known != slots_.end()) kill(known->second);
  });
}

void TlsProcesses::kill(TlsSlot& slot) {
  if (!slot.process) return;
  if (auto killed = slot.process->kill(rights_.launcher); !killed)
    log::error("tls_not_killed", "slot", slot.number, "error", killed.error().text);
}

void TlsProcesses::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  if (slots_.empty()) return std::exchange(stopped_, nullptr)();
  for (auto& [number, slot] : slots_)
    if (!slot.leaving) end(slot, kStopMs);
}

/// The processes see the end of the connection, and serve on until the next manager comes.
void TlsProcesses::abandon() {
  asio::error_code ignored;
  listening_.close(ignored);
  accept_pause_.cancel();
  tickets_timer_.cancel();
  alive_ = std::make_shared<int>(0);
  for (const auto& link : before_hello_) link->close();
  before_hello_.clear();
  for (auto& [number, slot] : slots_)
    if (slot.link) slot.link->close();
  slots_.clear();
  listeners_.leave();
}

std::vector<TlsProcesses::Status> TlsProcesses::status() const {
  std::vector<Status> list;
  for (const auto& [number, slot] : slots_)
    list.push_back({number, slot.process ? slot.process->pid() : 0, slot.listens,
                    slot.restarts.count(), slot.build, slot.counts});
  return list;
}

}  // namespace pando::manager
