#include "worker/net/manager_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/secret.h"
#include "ipc/log.h"

namespace pando::worker {

namespace {

/// A killed manager is back within moments, and no other process may hold a socket until then. A
/// manager that refuses this worker sends no Setup, so retries soon become rarer.
constexpr auto kFirstRetry = std::chrono::milliseconds(10);
constexpr std::uint32_t kFirstRetries = 200;
constexpr auto kRetry = std::chrono::milliseconds(100);
constexpr std::chrono::milliseconds kExpiryTick{1000};
/// Upper bound of 256 queued forwards of 64 KiB.
constexpr std::size_t kMaxQueuedOctets = std::size_t{40} << 20;

/// A later message of a transfer needs the state that the first one's manager had.
bool continues_stream(const ipc::FromWorker& message) {
  const auto* sign = std::get_if<ipc::SignTransfer>(&message);
  return sign != nullptr && sign->request.empty();
}

/// Whether a request may go to a second manager although the first one may have executed it:
/// queries only. An update may have been executed, acknowledged and followed by another update; a
/// second execution would restore old data.
bool may_repeat(const ipc::FromWorker& message) {
  const auto* request = std::get_if<ipc::Forward>(&message);
  if (request == nullptr) return !continues_stream(message);
  return request->kind == ipc::ForwardKind::kSignedQuery;
}

/// Encodes a request for the successor of the manager to which it was sent.
Bytes encode_again(ipc::FromWorker& message) {
  // Socket numbers are the lost manager's; the successor gives others.
  if (auto* request = std::get_if<ipc::Forward>(&message)) request->through.reset();
  return ipc::encode(message);
}

}  // namespace

ManagerLink::ManagerLink(asio::io_context& io, Identity identity, Handlers handlers,
                         std::chrono::milliseconds reply_timeout,
                         std::chrono::milliseconds hold_time)
    : io_(io),
      identity_(std::move(identity)),
      handlers_(std::move(handlers)),
      reply_timeout_(reply_timeout),
      hold_time_(hold_time),
      retry_(io),
      expiry_(io),
      hold_end_(io) {}

void ManagerLink::start() {
  connect();
  expire_pending();
}

void ManagerLink::connect() {
  auto socket = ipc::connect_packets(identity_.socket_path);
  if (!socket) {
    if (socket.error().code != Errc::kNotFound)
      log::error("manager_connection_failed", "error", socket.error().text);
    return connect_later();
  }
  channel_ = ipc::Channel::open(io_, std::move(*socket), kMaxQueuedOctets);
  channel_->start({[this](ipc::Packet&& packet) { take_packet(std::move(packet)); },
                   [this](const Error& error) { lost(error); }});
  connected_ = true;
  say_hello();
  send_held();
}

void ManagerLink::connect_later() {
  retry_.expires_after(++retries_ < kFirstRetries ? kFirstRetry : kRetry);
  retry_.async_wait([this](const asio::error_code& error) {
    if (!error) connect();
  });
}

/// Sends Hello, then the sockets of an earlier manager, which a new manager adopts.
void ManagerLink::say_hello() {
  const auto sockets = handlers_.sockets();
  const auto queues =
      handlers_.xdp_queues ? handlers_.xdp_queues() : std::vector<HeldXdpQueue>();
  tell(ipc::Hello{identity_.slot, static_cast<std::uint32_t>(::getpid()), identity_.layout,
                  static_cast<std::uint32_t>(sockets.size()),
                  static_cast<std::uint32_t>(queues.size()), identity_.build});
  for (std::size_t begin = 0; begin < sockets.size(); begin += ipc::kMaxPacketDescriptors) {
    const std::size_t end = std::min(sockets.size(), begin + ipc::kMaxPacketDescriptors);
    ipc::Adopt adopt;
    std::vector<Fd> descriptors;
    for (std::size_t i = begin; i < end; ++i) {
      adopt.sockets.push_back(sockets[i].first);
      descriptors.emplace_back(::fcntl(sockets[i].second, F_DUPFD_CLOEXEC, 0));
    }
    if (!channel_) return;
    if (auto sent = channel_->send(ipc::encode(ipc::FromWorker(adopt)), std::move(descriptors));
        !sent)
      return lost(sent.error());
  }
  for (const HeldXdpQueue& held : queues)
    hand_over(ipc::AdoptXdp{held.queue}, {held.socket, held.link});
}

void ManagerLink::hand_over(const ipc::FromWorker& message,
                            std::initializer_list<int> descriptors) {
  if (!connected_) return;
  std::vector<Fd> copies;
  for (const int descriptor : descriptors)
    copies.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (auto sent = channel_->send(ipc::encode(message), std::move(copies)); !sent)
    lost(sent.error());
}

void ManagerLink::tell(const ipc::FromWorker& message) {
  if (!connected_) return;
  if (auto sent = channel_->send(ipc::encode(message)); !sent) lost(sent.error());
}

void ManagerLink::forward(ipc::Forward&& request, Bytes failure, ReplyHandler reply) {
  const bool query = request.kind == ipc::ForwardKind::kSignedQuery;
  if (query && pending_queries() >= kMaxPendingQueries) return reply(std::move(failure));
  const std::uint64_t id = request.id = next_id();
  ask(id, ipc::FromWorker(std::move(request)), {std::move(failure), std::move(reply), {}, query});
}

std::size_t ManagerLink::pending() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(pending_.begin(), pending_.end(),
                    [](const auto& entry) { return entry.second.reply != nullptr; }));
}

std::size_t ManagerLink::pending_queries() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      pending_.begin(), pending_.end(), [](const auto& entry) { return entry.second.query; }));
}

void ManagerLink::sign(ipc::SignTransfer&& request, ReplyHandler reply) {
  const std::uint64_t id = request.id = next_id();
  ask(id, ipc::FromWorker(std::move(request)), {{}, std::move(reply), {}, false});
}

void ManagerLink::abort_stream(std::uint64_t stream) {
  ipc::SignTransfer aborted;
  aborted.stream = stream;
  aborted.last = true;
  tell(ipc::FromWorker(std::move(aborted)));
}

void ManagerLink::ask(std::uint64_t id, ipc::FromWorker&& message, Pending&& pending) {
  const bool taken = connected_ || (holding_ && !continues_stream(message));
  if (!taken || pending_.size() >= kMaxPending)
    return pending.reply(std::move(pending.failure));
  Bytes packet = connected_ ? ipc::encode(message) : Bytes();
  pending.held = !connected_;
  if (pending.held || may_repeat(message)) pending.again = std::move(message);
  pending.deadline = std::chrono::steady_clock::now() + reply_timeout_;
  pending_.emplace(id, std::move(pending));
  if (!connected_) return;
  if (auto sent = channel_->send(std::move(packet)); !sent) lost(sent.error());
}

/// Each request goes to two managers at most, because the request may have crashed the first.
void ManagerLink::send_held() {
  hold_end_.cancel();
  holding_ = false;
  std::vector<Bytes> packets;
  std::erase_if(pending_, [](const auto& entry) { return entry.second.reply == nullptr; });
  for (auto& [id, pending] : pending_)
    if (std::exchange(pending.held, false)) packets.push_back(encode_again(*pending.again));
  for (auto& [id, pending] : pending_) pending.again.reset();
  for (Bytes& packet : packets) {
    if (!connected_) return;  // lost on the way, which fails all remaining requests
    if (auto sent = channel_->send(std::move(packet)); !sent) return lost(sent.error());
  }
}

void ManagerLink::take_packet(ipc::Packet&& packet) {
  auto message = ipc::decode_to_worker(packet.data);
  if (!message) return lost(message.error());
  std::visit([&](auto&& body) { take(std::move(body), packet); }, std::move(*message));
}

void ManagerLink::take(ipc::Setup&& setup, ipc::Packet& packet) {
  auto& descriptors = packet.descriptors;
  if (descriptors.size() < 2 || descriptors.size() > 3)
    return lost({Errc::kInvalid, "Setup without store and slot file"});
  retries_ = 0;
  Fd image = descriptors.size() > 2 ? std::move(descriptors[2]) : Fd();
  handlers_.setup(std::move(setup), {std::move(descriptors[0]), std::move(descriptors[1])},
                  std::move(image));
}

void ManagerLink::take(ipc::Keys&& keys, ipc::Packet& packet) {
  const WipeFreed wipe_freed;  // the keys before
  wipe(packet.data);
  handlers_.keys(std::move(keys));
}

void ManagerLink::take(ipc::Sockets&& sockets, ipc::Packet& packet) {
  if (packet.descriptors.size() != sockets.descriptors ||
      sockets.descriptors > sockets.sockets.size())
    return lost({Errc::kInvalid, "sockets and descriptors do not match"});
  handlers_.serve(std::move(sockets), std::move(packet.descriptors));
}

void ManagerLink::take(ipc::CloseSockets&& close, ipc::Packet&) { handlers_.close(close); }

void ManagerLink::take(ipc::Reply&& reply, ipc::Packet&) {
  auto found = pending_.extract(reply.id);
  if (!found.empty() && found.mapped().reply) found.mapped().reply(std::move(reply.message));
}

void ManagerLink::take(ipc::Finished&& finished, ipc::Packet&) {
  for (const std::uint64_t id : finished.ids) pending_.erase(id);
}

void ManagerLink::take(ipc::Stop&& stop, ipc::Packet&) { handlers_.stop(stop); }

void ManagerLink::take(ipc::SentAway&& away, ipc::Packet&) {
  if (handlers_.sent_away) handlers_.sent_away(away);
}

void ManagerLink::take(ipc::Logging&& logging, ipc::Packet&) { handlers_.logging(logging); }

void ManagerLink::take(ipc::Dnstap&& dnstap, ipc::Packet& packet) {
  auto& descriptors = packet.descriptors;
  if (descriptors.size() > 1) return lost({Errc::kInvalid, "two dnstap streams"});
  handlers_.dnstap(std::move(dnstap), descriptors.empty() ? Fd() : std::move(descriptors.front()));
}

void ManagerLink::take(ipc::ServeXdp&& serve, ipc::Packet& packet) {
  if (handlers_.serve_xdp) handlers_.serve_xdp(serve, std::move(packet.descriptors));
}

void ManagerLink::take(ipc::CloseXdp&& close, ipc::Packet&) {
  if (handlers_.close_xdp) handlers_.close_xdp(close);
}

void ManagerLink::take(ipc::QueryLog&& log, ipc::Packet& packet) {
  auto& descriptors = packet.descriptors;
  if (descriptors.size() > 1) return lost({Errc::kInvalid, "two streams of the query log"});
  handlers_.query_log(log, descriptors.empty() ? Fd() : std::move(descriptors.front()));
}

void ManagerLink::take(ipc::TlsIntake&& intake, ipc::Packet& packet) {
  auto& descriptors = packet.descriptors;
  if (descriptors.size() != 1) return lost({Errc::kInvalid, "TlsIntake without a connection"});
  if (handlers_.tls_intake) handlers_.tls_intake(intake, std::move(descriptors.front()));
}

void ManagerLink::lost(const Error& error) {
  if (!connected_) return;
  connected_ = false;
  log::info("manager_lost", "reason", error.text);
  channel_->close();
  hold_or_fail_all();
  connect_later();
}

/// Requests that may be repeated wait for the successor; the clients of all others get the failure.
void ManagerLink::hold_or_fail_all() {
  auto failed = std::exchange(pending_, {});
  for (auto& [id, pending] : failed) {
    if (!pending.reply || !pending.again) continue;
    pending.held = true;
    pending_.emplace(id, std::exchange(pending, {}));
  }
  holding_ = hold_time_.count() != 0;
  hold_end_.expires_after(hold_time_);
  hold_end_.async_wait([this](const asio::error_code& error) {
    if (!error && !connected_) end_hold();
  });
  for (auto& [id, pending] : failed)
    if (pending.reply) pending.reply(std::move(pending.failure));
}

void ManagerLink::end_hold() {
  holding_ = false;
  auto failed = std::exchange(pending_, {});
  for (auto& [id, pending] : failed)
    if (pending.reply) pending.reply(std::move(pending.failure));
}

/// Sends the failure to clients after kReplyTimeout. Their requests still count as pending.
void ManagerLink::expire_pending() {
  const auto now = std::chrono::steady_clock::now();
  // Replies may end the connection, which empties pending_; the calls therefore follow the walk.
  std::vector<std::pair<ReplyHandler, Bytes>> expired;
  for (auto& [id, pending] : pending_) {
    if (pending.deadline > now) break;
    if (pending.reply)
      expired.emplace_back(std::exchange(pending.reply, nullptr),
                           std::exchange(pending.failure, {}));
  }
  for (auto& [reply, failure] : expired) reply(std::move(failure));
  expiry_.expires_after(std::min(kExpiryTick, reply_timeout_));
  expiry_.async_wait([this](const asio::error_code& error) {
    if (!error) expire_pending();
  });
}

}  // namespace pando::worker
