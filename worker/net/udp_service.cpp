#include "worker/net/udp_service.h"

#include <algorithm>

#include "base/crash_point.h"
#include "base/datagram.h"
#include "ipc/log.h"
#include "worker/tap/taps.h"
#include "base/net/proxy_header.h"

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
    : io_(io),
      core_(core),
      drained_(std::move(drained)),
      batch_(std::make_unique<UdpBatch>()),
      tapped_(core) {}

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
  core_.begin();
  const timespec received = core_.taps() != nullptr ? Taps::now() : timespec{};
  while (begin < end) {
    const std::size_t together = std::min(end - begin, Responder::kTogether);
    answer_together(socket, begin, begin + together, received);
    begin += together;
  }
  core_.end();
  core_.answered(batch_->queued());
  const std::size_t failed = batch_->send(sender_for(socket), socket->wildcard);
  core_.sent();
  core_.counting().add(Counter::kAnswerOctetsUdp, batch_->octets_queued());
  if (failed > 0) core_.counting().add(Counter::kSendErrors, failed);
  if (core_.taps() != nullptr) tapped_.tell();
}

void UdpService::answer_together(const std::shared_ptr<Socket>& socket, std::size_t begin,
                                 std::size_t end, const timespec& received) {
  std::array<Arrival, Responder::kTogether> arrivals;
  std::array<std::size_t, Responder::kTogether> messages;
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    messages[count] = i;
    if (unwrap(i, *socket, arrivals[count])) ++count;
  }
  core_.responder().read({arrivals.data(), count});
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t i = messages[at];
    const Outcome outcome = core_.answer(at, batch_->space(i));
    if (core_.taps() != nullptr) note_for_taps(*socket, i, arrivals[at], outcome, received);
    if (outcome.action == Action::kRespond) batch_->respond(i, outcome.size);
    if (outcome.action == Action::kForward) forward(socket, i, arrivals[at], outcome);
  }
}

void UdpService::note_for_taps(const Socket& socket, std::size_t i, const Arrival& arrival,
                               const Outcome& outcome, const timespec& received) {
  const auto& [message, client] = arrival;
  IpAddress local = client.local.address;
  if (socket.wildcard && client.local == socket.description.local)
    local = batch_->destination(i).value_or(local);
  tapped_.note(message, client, local, outcome, batch_->space(i), received);
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
bool UdpService::unwrap(std::size_t i, const Socket& socket, Arrival& arrival) const {
  auto& [message, client] = arrival;
  message = batch_->message(i);
  client.remote.take(batch_->sender(i));
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

void UdpService::forward(const std::shared_ptr<Socket>& socket, std::size_t i,
                         const Arrival& arrival, const Outcome& outcome) {
  const auto& [message, client] = arrival;
  ReplyPath path{Endpoint::from_sockaddr(batch_->sender(i)), std::nullopt, false};
  if (socket->wildcard) path.source = batch_->destination(i);
  // The manager reports no response to a tap, so the worker sends responses of a sample itself.
  auto held = tapped_.held(message);
  path.direct = client.remote == path.to && !socket->description.orphaned && !held;
  ask_manager(socket, path, message, client, outcome, batch_->space(i), std::move(held));
}

bool UdpService::forward(ByteView message, const Client& client, const Outcome& outcome,
                         ByteView response, std::shared_ptr<const HeldExchange> held) {
  const auto serves = [&](const auto& socket) {
    const ipc::SocketDescription& own = socket->description;
    return !own.orphaned && own.local.port == client.local.port &&
           (own.local.address == client.local.address ||
            (socket->wildcard && own.local.address.is_v4() == client.local.address.is_v4()));
  };
  const auto socket = std::find_if(sockets_.begin(), sockets_.end(), serves);
  if (socket == sockets_.end()) return false;
  ReplyPath path{client.remote, std::nullopt, held == nullptr};
  if ((*socket)->wildcard) path.source = client.local.address;
  ask_manager(*socket, path, message, client, outcome, response, std::move(held));
  return true;
}

void UdpService::ask_manager(const std::shared_ptr<Socket>& socket, const ReplyPath& path,
                             ByteView message, const Client& client, const Outcome& outcome,
                             ByteView response, std::shared_ptr<const HeldExchange> held) {
  ipc::Forward request;
  request.kind = outcome.forward;
  request.transport = client.transport;
  request.client = client.remote;
  request.local = client.local;
  request.message.assign(message.begin(), message.end());
  request.response.assign(response.begin(), response.begin() + static_cast<long>(outcome.size));
  if (path.source && request.local == socket->description.local)
    request.local.address = *path.source;
  // The manager counts no responses, so a reply that has a limit is sent from here.
  ReplyLimit limit = core_.responder().reply_limit();
  if (path.direct && !limit.client) request.through = socket->description.id;
  Bytes failure(kUdpSpace);
  failure.resize(core_.responder().make_failure(failure));
  core_.link().forward(
      std::move(request), std::move(failure),
      [this, socket, path, held = std::move(held), limit = std::move(limit)](const Bytes& reply) {
        Bytes answer = reply;
        const int through = sender_for(socket);
        const bool sends =
            !answer.empty() && through >= 0 && core_.responder().sends_reply(limit, answer);
        if (sends && !send_datagram(through, answer, path.to, path.source))
          core_.counting().add(Counter::kSendErrors);
        if (Taps* const taps = core_.taps(); taps != nullptr && held)
          taps->tell_end(*held, sends ? ByteView(answer) : ByteView());
      });
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
