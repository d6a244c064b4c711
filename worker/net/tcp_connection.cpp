#include "worker/net/tcp_connection.h"

#include <sys/socket.h>
#include <asio/post.hpp>

#include <algorithm>
#include <cerrno>

#include "worker/tap/taps.h"
#include "base/net/proxy_header.h"

namespace pando::worker {

using ipc::Counter;
using End = ipc::TransferEnd;

TcpConnection::TcpConnection(TcpHost& host, Socket socket, const Client& client,
                             std::unique_ptr<const PeerIdentity> peer)
    : host_(host),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      client_(client),
      // Over TLS such a header stands before the handshake, and pando-tls has read it.
      expects_proxy_header_(client.transport == ipc::Transport::kTcp &&
                            host.core().is_proxy(client.remote.address)) {
  client_.peer = peer_.get();
}

TcpConnection::~TcpConnection() = default;

void TcpConnection::start() { wait_readable(); }

void TcpConnection::close(End end) noexcept {
  if (!socket_.is_open()) return;
  if (transfer_) end_transfer(end);
  asio::error_code ignored;
  socket_.close(ignored);
  host_.ended(*this);
}

bool TcpConnection::idle() noexcept {
  return output_.empty() && input_.empty() && forwards_ == 0 && !transfer_ && !has_unread();
}

/// A request may have arrived while this thread handled others; closing the connection then would
/// lose that request.
bool TcpConnection::has_unread() noexcept {
  std::uint8_t octet = 0;
  return ::recv(socket_.native_handle(), &octet, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/// Progress means a whole request received or octets of a response taken. A request that trickles
/// in is no progress.
void TcpConnection::touch() noexcept {
  last_activity_ = std::chrono::steady_clock::now();
  host_.progressed(*this);
}

/// RFC 7766 §6.2.3, RFC 9210 §4.3: idle clients are closed.
void TcpConnection::end_stalled() noexcept {
  if (forwards_ > 0 || signing_) return touch();
  host_.stalled(*this);
  close(End::kClientStalled);
}

// In
// -----------------------------------------------------------------------------------------------

bool TcpConnection::may_take_request() const noexcept {
  return !transfer_ && output_.octets() < kMaxQueuedOctets && forwards_ < kMaxForwards;
}

void TcpConnection::wait_readable() {
  if (waiting_readable_ || ended_.input || !may_take_request()) return;
  waiting_readable_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const asio::error_code& error) {
    self->waiting_readable_ = false;
    if (!error && self->socket_.is_open()) self->receive();
  });
}

void TcpConnection::receive() {
  const auto space = host_.receive_space();
  const ssize_t got = ::recv(socket_.native_handle(), space.data(), space.size(), MSG_DONTWAIT);
  if (got < 0 && errno != EAGAIN && errno != EINTR) return close();
  if (got == 0) ended_.input = true;
  if (got > 0) input_.insert(input_.end(), space.data(), space.data() + got);
  pump();
}

/// Advances every part of the connection that can advance.
void TcpConnection::pump() {
  if (!socket_.is_open()) return;
  take_requests();
  if (socket_.is_open()) continue_transfer();
  if (socket_.is_open()) flush();
  host_.core().sent();
  if (Taps* const taps = host_.core().taps()) taps->answers_sent();
  if (!socket_.is_open()) return;
  if (has_request()) return pump_later();
  // Earlier requests are still answered.
  const bool no_requests = ended_.input || ended_.requests;
  if (no_requests && output_.empty() && forwards_ == 0 && !transfer_) return finish();
  wait_readable();
}

/// Ends a connection whose answers are all sent. Closing with unread input would send a reset,
/// which may destroy answers in flight (RFC 1122 §4.2.2.13). The write side is shut first, and the
/// client gets time to close.
void TcpConnection::finish() {
  if (ended_.input) return close();
  if (!std::exchange(shut_down_, true)) ::shutdown(socket_.native_handle(), SHUT_WR);
  wait_readable();
}

void TcpConnection::pump_later() {
  if (std::exchange(pump_posted_, true)) return;
  asio::post(socket_.get_executor(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->pump_posted_ = false;
    self->pump();
  });
}

/// True when the input continues with requests. A load balancer's connection may begin with a
/// header that names the client. No request begins with the octets of such a header.
bool TcpConnection::take_proxy_header() {
  if (!expects_proxy_header_) return true;
  const ProxyHeader header = read_proxy_header(input_);
  if (header.kind == ProxyHeader::Kind::kIncomplete) return false;
  if (header.kind == ProxyHeader::Kind::kMalformed) {
    host_.core().counting().add(Counter::kDropped);
    close();
    return false;
  }
  expects_proxy_header_ = false;
  if (header.kind == ProxyHeader::Kind::kProxied) {
    client_.remote = header.source;
    client_.local = header.destination;
  }
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(header.size));
  return true;
}

/// True when a whole or malformed request in the input may be taken. The check follows flush():
/// sent answers free room for more requests, and the socket reports no event for that.
bool TcpConnection::has_request() const noexcept {
  if (expects_proxy_header_ || !may_take_request() || input_.size() < 2) return false;
  const std::size_t length = load_be16(input_.data());
  return length < dns::kHeaderOctets || input_.size() >= 2 + length;
}

/// Handles whole requests in the input within room and budget (RFC 1035 §4.2.2: two octets of
/// length before each).
void TcpConnection::take_requests() {
  if (!take_proxy_header()) return;
  std::size_t at = 0;
  int budget = kRequestBudget;
  while (!ended_.requests && may_take_request() && input_.size() - at >= 2 && budget > 0) {
    const std::size_t length = load_be16(input_.data() + at);
    if (length < dns::kHeaderOctets) {  // also 0: a fragment cannot be answered
      host_.core().counting().add(Counter::kDropped);
      ended_.requests = true;
      break;
    }
    if (input_.size() - at < 2 + length) break;
    touch();
    // Handling never changes input_: replies come later or go to output_.
    handle({input_.data() + at + 2, length});
    if (!socket_.is_open()) return;
    at += 2 + length;
    --budget;
  }
  if (ended_.requests) at = input_.size();
  input_.erase(input_.begin(), input_.begin() + static_cast<long>(at));
  if (input_.empty()) input_.shrink_to_fit();  // an idle client holds no buffer
}

void TcpConnection::handle(ByteView message) {
  Core& core = host_.core();
  Taps* const taps = core.taps();
  const timespec received = taps != nullptr ? Taps::now() : timespec{};
  core.begin();
  const Outcome outcome = core.handle(message, client_, host_.space());
  auto exchange = taps != nullptr ? core.tapped(message, client_, received) : std::nullopt;
  std::size_t response = outcome.action == Action::kRespond ? outcome.size : 0;
  if (outcome.action == Action::kTransfer) response = start_transfer();
  core.end();
  if (exchange) tell_taps(*exchange, message, outcome.action, response);
  switch (outcome.action) {
    case Action::kRespond:
      core.answered(1);
      return output_.push(host_.space().first(response));
    case Action::kForward:
      return forward(message, outcome, std::move(exchange));
    case Action::kTransfer:
      if (response > 0) output_.push(host_.space().first(response));
      return;
    case Action::kDrop:
      ended_.requests = true;  // a response or garbage: the peer is no client
      return;
  }
}

/// Reports a request to the taps, and its end unless the manager's response is to come. `response`:
/// octets in the host's space, or 0.
void TcpConnection::tell_taps(const Exchange& exchange, ByteView message, Action action,
                              std::size_t response) {
  Taps& taps = *host_.core().taps();
  taps.tell_request(exchange, message);
  if (action == Action::kForward) return;
  const auto without = action == Action::kTransfer ? ExchangeEnd::kTransfer : ExchangeEnd::kDropped;
  taps.tell_end(exchange, response > 0 ? ExchangeEnd::kAnswered : without, message,
                host_.space().first(response), Taps::now());
}

void TcpConnection::forward(ByteView message, const Outcome& outcome,
                            std::optional<Exchange> exchange) {
  const auto space = host_.space();
  ipc::Forward request;
  request.kind = outcome.forward;
  request.transport = client_.transport;
  request.client = client_.remote;
  request.local = client_.local;
  if (client_.peer != nullptr) request.peer = *client_.peer;
  request.message.assign(message.begin(), message.end());
  request.response.assign(space.begin(), space.begin() + static_cast<long>(outcome.size));
  Bytes failure(kUdpSpace);
  failure.resize(host_.core().responder().make_failure(failure));
  std::optional<HeldExchange> held;
  if (exchange) held = HeldExchange{std::move(*exchange), request.message};
  ++forwards_;
  host_.core().link().forward(std::move(request), std::move(failure),
                              [weak = weak_from_this(),
                               held = std::move(held)](const Bytes& response) {
                                const auto self = weak.lock();
                                if (!self) return;
                                --self->forwards_;
                                if (!self->socket_.is_open()) return;
                                self->touch();
                                if (!response.empty()) self->output_.push(response);
                                if (Taps* const taps = self->host_.core().taps(); taps && held)
                                  taps->tell_end(*held, response);
                                self->pump_later();
                              });
}

// Transfers
// ----------------------------------------------------------------------------------------

/// Call while a version is pinned; the transfer then holds this version. Returns the octets of the
/// response in the host's space if it cannot begin, else 0.
std::size_t TcpConnection::start_transfer() {
  Core& core = host_.core();
  TransferPlan plan = core.responder().take_transfer();
  auto version = HeldVersion::take(core.shared_reader(), core.view());
  if (!version) {  // all leases are in use
    core.counting().add(Counter::kTransfersRefused);
    return core.responder().make_servfail(host_.space());
  }
  const bool wants_differences = plan.since.has_value();
  transfer_ = std::make_unique<TransferOut>(std::move(plan), std::move(*version), client_);
  const bool incremental = transfer_->incremental();
  core.counting().add(incremental ? Counter::kTransfersIncremental : Counter::kTransfersFull);
  if (wants_differences && !incremental) core.counting().add(Counter::kTransfersFallback);
  stream_id_ = core.link().next_id();
  return 0;
}

/// Sends one message a turn, so that UDP is polled between messages.
void TcpConnection::continue_transfer() {
  if (!transfer_ || signing_ || output_.octets() >= kTransferLowWater) return;
  const auto space = host_.space();
  std::size_t size = 0;
  const auto step = transfer_->next(space, size, Core::coarse_now());
  if (step == TransferOut::Step::kFailed) {
    static_cast<void>(output_.send(socket_.native_handle()));  // what was gathered
    return close(transfer_->end());
  }
  const ByteView message = space.first(size);
  if (transfer_->has_managers_key()) return sign_elsewhere(step, message);
  transfer_message(step, message);
}

void TcpConnection::sign_elsewhere(TransferOut::Step step, ByteView message) {
  ipc::SignTransfer request;
  request.stream = stream_id_;
  request.last = step == TransferOut::Step::kLastMessage;
  request.request = transfer_->take_request();
  request.message.assign(message.begin(), message.end());
  signing_ = true;
  host_.core().link().sign(
      std::move(request), [weak = weak_from_this(), step](const Bytes& signed_message) {
        const auto self = weak.lock();
        if (!self) return;
        self->signing_ = false;
        if (!self->socket_.is_open() || !self->transfer_) return;
        if (signed_message.size() < dns::kHeaderOctets) return self->close(End::kNotSigned);
        const bool refused = (signed_message[3] & 0x0FU) != 0;  // an error replaces the message
        self->transfer_message(refused ? TransferOut::Step::kFailed : step, signed_message);
        self->pump_later();
      });
}

void TcpConnection::transfer_message(TransferOut::Step step, ByteView message) {
  transfer_->count_octets(message.size());
  host_.core().counting().add(Counter::kTransferOctets, message.size());
  output_.push(message);
  if (step == TransferOut::Step::kMessage) return pump_later();
  end_transfer(step == TransferOut::Step::kLastMessage ? End::kComplete : End::kSignatureRefused);
  pump_later();
}

void TcpConnection::end_transfer(End end) {
  const auto transfer = std::move(transfer_);
  const bool complete = end == End::kComplete;
  Counting& counting = host_.core().counting();
  const auto sent = transfer->incremental() ? ipc::ZoneTransfer::kIxfr : ipc::ZoneTransfer::kAxfr;
  counting.transfer(transfer->apex(), complete ? sent : ipc::ZoneTransfer::kFailed);
  if (!complete) counting.add(Counter::kTransfersFailed);
  if (!complete && transfer->has_managers_key()) host_.core().link().abort_stream(stream_id_);
  host_.core().link().tell(transfer->report(end));
}

// Out
// ----------------------------------------------------------------------------------------------

void TcpConnection::flush() {
  // A transfer's messages leave together: the kernel and the client have less to do for each.
  const bool gathers = transfer_ && !signing_ && output_.octets() < kTransferLowWater;
  if (gathers) return pump_later();
  const TcpOutput::Sent sent = output_.send(socket_.native_handle());
  if (sent.progress) touch();
  if (sent.state == TcpOutput::State::kFailed) return close();
  if (sent.state == TcpOutput::State::kBlocked) return wait_writable();
  if (!transfer_) output_.release();
  if (transfer_ && !signing_) pump_later();
}

void TcpConnection::wait_writable() {
  if (waiting_writable_) return;
  waiting_writable_ = true;
  socket_.async_wait(Socket::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->waiting_writable_ = false;
                       if (!error && self->socket_.is_open()) self->pump();
                     });
}

}  // namespace pando::worker
