#include "worker/net/tls_intake.h"

#include <sys/socket.h>

#include "ipc/tls_messages.h"

namespace pando::worker {

namespace {

/// An intruder could pass a file or a listening socket.
bool is_stream_pair(int socket) noexcept {
  int domain = 0;
  int type = 0;
  socklen_t length = sizeof domain;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0) return false;
  length = sizeof type;
  if (::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return false;
  return domain == AF_UNIX && type == SOCK_STREAM;
}

}  // namespace

TlsIntake::TlsIntake(asio::io_context& io, Core& core)
    : io_(io), core_(core), clients_(io, core, ipc::Transport::kTls) {}

TlsIntake::~TlsIntake() {
  for (const auto& [slot, channel] : channels_) channel->close();
}

void TlsIntake::add(std::uint32_t slot, Fd connection) {
  constexpr std::size_t kNothingQueued = 0;  // nothing is ever sent
  auto channel = ipc::Channel::open(io_, std::move(connection), kNothingQueued);
  ipc::Channel* const raw = channel.get();
  if (auto& known = channels_[slot]; known) known->close();
  channels_[slot] = channel;
  channel->start({[this](ipc::Packet&& packet) { take(std::move(packet)); },
                  [this, slot, raw](const Error&) { forget(slot, raw); }});
}

void TlsIntake::forget(std::uint32_t slot, const ipc::Channel* channel) {
  const auto found = channels_.find(slot);
  if (found != channels_.end() && found->second.get() == channel) channels_.erase(found);
}

/// A packet that is no client ends nothing but itself: the next one may be good.
void TlsIntake::take(ipc::Packet&& packet) {
  auto connection = ipc::decode_tls_connection(packet.data);
  if (!connection || packet.descriptors.size() != 1 ||
      !is_stream_pair(packet.descriptors.front().get()))
    return core_.counting().add(ipc::Counter::kTlsRefused);
  Client client;
  client.transport = ipc::Transport::kTls;
  client.remote = connection->client;
  client.local = connection->local;
  auto peer = std::make_unique<PeerIdentity>();
  peer->remotes = std::move(connection->remotes);
  clients_.take(client, std::move(packet.descriptors.front()), std::move(peer));
}

/// The other side sees the end of the connection, and closes it once all its clients are sent.
void TlsIntake::stop_accepting() {
  for (const auto& [slot, channel] : channels_) ::shutdown(channel->native(), SHUT_WR);
}

}  // namespace pando::worker
