#include "worker/net/udp_service.h"

#include <algorithm>

#include "base/crash_point.h"
#include "base/datagram.h"
#include "ipc/log.h"
#include "worker/tap/taps.h"
#include "worker/net/proxy_header.h"

namespace pando::worker {

using asio::ip::udp;
using ipc::Counter;

static_assert(UdpBatch::kSendOctets >= kUdpSpace);

struct UdpService::Socket {
  Socket(asio::io_context& io, const ipc::SocketDescription& what)
      : description(what), native(io), timer(io) {
    const IpAddress any_v4 = IpAddress::from_text("0.0.0.0").value();
    wildcard = what.local.address == any_v4 || what.local.address == IpAddress();
  }
  ipc::SocketDescription description;
  bool wildcard = false;
  udp::socket native;
  asio::steady_timer timer;
  [[nodiscard]] UdpBatch::Source source() {
    return {native.native_handle(), description.local, wildcard};
  }
};

UdpService::UdpService(asio::io_context& io, Core& core, std::function<void(std::uint32_t)> drained)
    : io_(io), core_(core), drained_(std::move(drained)), batch_(std::make_unique<UdpBatch>()) {}

UdpService::~UdpService() = default;

void UdpService::keep_batches(const shm::Reader::Scratch& memory) {
  const auto moved = batch_->keep_in(memory.file, memory.offset, memory.bytes);
  if (!moved) log::warning("batches_not_kept", "error", moved.error().text);
}

void UdpService::add(const ipc::SocketDescription& description, Fd fd) {
  auto socket = std::make_shared<Socket>(io_, description);
  const auto protocol = description.local.address.is_v4() ? udp::v4() : udp::v6();
  asio::error_code error;
  socket->native.assign(protocol, fd.get(), error);
  if (error && description.orphaned) drained_(description.id);  // no client waits on this socket
  if (error) return;
  [[maybe_unused]] const int owned_by_asio_now = fd.release();
  sockets_.push_back(socket);
  answer_inherited(socket);
  if (description.orphaned) return read_orphaned(socket, 0);
  wait(socket);
}

bool UdpService::update(const ipc::SocketDescription& description) {
  for (auto& socket : sockets_) {
    const auto& known = socket->description;
    if (known.orphaned || known.local != description.local ||
        known.transport != description.transport)
      continue;
    socket->description = description;
    return true;
  }
  return false;
}

bool UdpService::close(std::uint32_t id) {
  return std::erase_if(sockets_, [this, id](const auto& socket) {
           if (socket->description.id != id) return false;
           empty(socket);
           asio::error_code ignored;
           socket->native.close(ignored);
           socket->timer.cancel();
           return true;
         }) > 0;
}

void UdpService::drain() {
  for (const auto& socket : std::vector(sockets_)) empty(socket);
}

/// Bounded: new traffic is steered elsewhere or refused, so the queue only shrinks.
void UdpService::empty(const std::shared_ptr<Socket>& socket) {
  for (int turn = 0; turn < 1000 && !read(socket); ++turn) {
  }
}

std::vector<std::pair<ipc::SocketDescription, int>> UdpService::sockets() const {
  std::vector<std::pair<ipc::SocketDescription, int>> list;
  for (const auto& socket : sockets_)
    if (!socket->description.orphaned)
      list.emplace_back(socket->description, socket->native.native_handle());
  return list;
}

void UdpService::wait(const std::shared_ptr<Socket>& socket) {
  socket->native.async_wait(udp::socket::wait_read, [this, socket](const asio::error_code& error) {
    if (error || !socket->native.is_open()) return;
    read(socket);
    wait(socket);
  });
}

/// Returns true when the socket was left empty.
bool UdpService::read(const std::shared_ptr<Socket>& socket) {
  if (!core_.attached()) return true;
  for (int batch = 0; batch < kBudget; ++batch) {
    const std::size_t count = batch_->receive(socket->source());
    crash_point("worker-received");
    if (count > 0) answer_messages(socket, 0, count);
    crash_point("worker-answered");
    batch_->done();
    if (count < UdpBatch::kMessages) return true;
    if (!socket->native.is_open()) return true;
  }
  return false;
}

/// Answers the requests that the slot's previous worker received at this address and left
/// unanswered.
void UdpService::answer_inherited(const std::shared_ptr<Socket>& socket) {
  if (!core_.attached() || !batch_->inherited(socket->description.local)) return;
  for (std::size_t i = 0; i < UdpBatch::kMessages; ++i) {
    if (!batch_->inherit(i)) continue;
    answer_messages(socket, i, i + 1);
    core_.counting().add(Counter::kInherited);
  }
  batch_->done();
}

void UdpService::answer_messages(const std::shared_ptr<Socket>& socket, std::size_t begin,
                                 std::size_t end) {
  Client client;
  client.transport = ipc::Transport::kUdp;
  core_.begin();
  const bool taps = core_.taps() != nullptr;
  const timespec received = taps ? Taps::now() : timespec{};
  for (std::size_t i = begin; i < end; ++i) {
    ByteView message;
    if (!unwrap(i, *socket, message, client)) continue;
    const Outcome outcome = core_.handle(message, client, batch_->space(i));
    if (taps) note_for_taps(*socket, i, message, client, outcome, received);
    if (outcome.action == Action::kRespond) batch_->respond(i, outcome.size);
    if (outcome.action == Action::kForward) forward(socket, i, message, client, outcome);
  }
  core_.end();
  core_.answered(batch_->queued());
  const std::size_t failed = batch_->send(sender_for(socket), socket->wildcard);
  core_.sent();
  core_.counting().add(Counter::kAnswerOctetsUdp, batch_->octets_queued());
  if (failed > 0) core_.counting().add(Counter::kSendErrors, failed);
  if (taps) tell_taps();
}

void UdpService::note_for_taps(const Socket& socket, std::size_t i, ByteView message,
                               const Client& client, const Outcome& outcome,
                               const timespec& received) {
  auto exchange = core_.tapped(message, client, received);
  if (!exchange) return;
  Endpoint& local = exchange->client.local;
  if (socket.wildcard && local == socket.description.local)
    local.address = batch_->destination(i).value_or(local.address);
  const std::size_t response = outcome.action == Action::kRespond ? outcome.size : 0;
  const bool later = outcome.action == Action::kForward;
  tapped_.push_back({i, message, response, later, std::move(*exchange)});
}

/// After the send, so that no answer waits for it.
void UdpService::tell_taps() {
  Taps* const taps = core_.taps();
  const timespec sent = Taps::now();
  for (const Tapped& tapped : tapped_) {
    if (taps == nullptr) break;
    taps->tell_request(tapped.exchange, tapped.request);
    if (tapped.later) continue;
    const auto end = tapped.response > 0 ? ExchangeEnd::kAnswered : ExchangeEnd::kDropped;
    taps->tell_end(tapped.exchange, end, tapped.request,
                   batch_->space(tapped.index).first(tapped.response), sent);
  }
  tapped_.clear();
  if (taps != nullptr) taps->answers_sent();
}

/// The socket that sends answers to datagrams of `socket`. An orphaned socket may be withdrawn from
/// the network, so that sending through it fails. The worker's own socket has the same address.
int UdpService::sender_for(const std::shared_ptr<Socket>& socket) const {
  if (!socket->description.orphaned) return socket->native.native_handle();
  const auto own = std::find_if(sockets_.begin(), sockets_.end(), [&](const auto& other) {
    return !other->description.orphaned && other->description.local == socket->description.local;
  });
  return (own != sockets_.end() ? *own : socket)->native.native_handle();
}

/// Separates message `i` from a load balancer's header and finds its client: the sender, or the
/// client that the header names. The response goes to the sender in any case. Returns false for a
/// malformed header: the message is dropped.
bool UdpService::unwrap(std::size_t i, const Socket& socket, ByteView& message,
                        Client& client) const {
  message = batch_->message(i);
  client.remote = batch_->sender(i);
  client.local = socket.description.local;
  if (!core_.any_proxy() || !core_.is_proxy(client.remote.address)) return true;
  const ProxyHeader header = read_proxy_header(message);
  if (header.kind == ProxyHeader::Kind::kNone) return true;
  if (header.kind == ProxyHeader::Kind::kIncomplete ||
      header.kind == ProxyHeader::Kind::kMalformed) {
    core_.counting().add(Counter::kDropped);
    return false;
  }
  message = message.subspan(header.size);
  if (header.kind == ProxyHeader::Kind::kLocal) return true;
  client.remote = header.source;
  client.local = header.destination;
  return true;
}

void UdpService::forward(const std::shared_ptr<Socket>& socket, std::size_t i, ByteView message,
                         const Client& client, const Outcome& outcome) {
  ipc::Forward request;
  request.kind = outcome.forward;
  request.transport = client.transport;
  request.client = client.remote;
  request.local = client.local;
  request.message.assign(message.begin(), message.end());
  const auto space = batch_->space(i);
  request.response.assign(space.begin(), space.begin() + static_cast<long>(outcome.size));
  std::optional<IpAddress> source;
  if (socket->wildcard) source = batch_->destination(i);
  if (source && request.local == socket->description.local) request.local.address = *source;
  // The manager tells no tap of a response, so the worker sends responses of a sample itself.
  auto held = forwarded_exchange(i, message);
  const bool direct =
      client.remote == batch_->sender(i) && !socket->description.orphaned && !held;
  if (direct) request.through = socket->description.id;
  Bytes failure(kUdpSpace);
  failure.resize(core_.responder().make_failure(failure));
  core_.link().forward(std::move(request), std::move(failure),
                       [this, socket, to = batch_->sender(i), source,
                        held = std::move(held)](const Bytes& response) {
                         const int through = sender_for(socket);
                         const bool sends = !response.empty() && through >= 0;
                         if (sends && !send_datagram(through, response, to, source))
                           core_.counting().add(Counter::kSendErrors);
                         if (Taps* const taps = core_.taps(); taps != nullptr && held)
                           taps->tell_end(*held, sends ? ByteView(response) : ByteView());
                       });
}

/// The exchange of request `i`, which was noted last, for the end that is told later; null if that
/// end is in no sample.
std::shared_ptr<const HeldExchange> UdpService::forwarded_exchange(std::size_t i,
                                                                   ByteView message) const {
  const Taps* const taps = core_.taps();
  if (taps == nullptr || tapped_.empty() || tapped_.back().index != i) return nullptr;
  const Exchange& exchange = tapped_.back().exchange;
  if (!taps->wants_end(exchange, message)) return nullptr;
  return std::make_shared<const HeldExchange>(
      HeldExchange{exchange, Bytes(message.begin(), message.end())});
}

/// Reads an orphaned socket without waiting for it to become readable: it may stay empty for good.
/// Two empty reads with a pause between them give the socket back.
void UdpService::read_orphaned(const std::shared_ptr<Socket>& socket, int empty_looks) {
  constexpr int kLooks = 2;
  constexpr auto kPause = std::chrono::milliseconds(20);
  if (!socket->native.is_open()) return;
  const bool empty = read(socket);
  empty_looks = empty ? empty_looks + 1 : 0;
  if (empty_looks >= kLooks) {
    const std::uint32_t id = socket->description.id;
    close(id);
    return drained_(id);
  }
  socket->timer.expires_after(empty ? kPause : std::chrono::milliseconds(0));
  socket->timer.async_wait([this, socket, empty_looks](const asio::error_code& error) {
    if (!error) read_orphaned(socket, empty_looks);
  });
}

}  // namespace pando::worker
