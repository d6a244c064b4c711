#include "worker/net/stream_clients.h"

#include <algorithm>

#include "base/net/address_holder.h"

namespace pando::worker {

using ipc::Counter;

namespace {

constexpr std::size_t kShareOfPlaces = 4;
/// A few connections are no attack, even if the limit of connections is small.
constexpr std::size_t kPlacesAnyway = 16;

}  // namespace

StreamClients::StreamClients(asio::io_context& io, Core& core, ipc::Transport transport)
    : io_(io),
      core_(core),
      transport_(transport),
      counters_(counters_of(transport)),
      space_(std::make_unique<Space>()),
      receive_space_(std::make_unique<Space>()),
      progress_timer_(io) {}

StreamClients::~StreamClients() { close_all(); }

StreamClients::Counters StreamClients::counters_of(ipc::Transport transport) noexcept {
  if (transport == ipc::Transport::kTls)
    return {Counter::kTlsAccepted, Counter::kTlsRefused, Counter::kTlsTimeouts, Counter::kTlsOpen};
  return {Counter::kTcpAccepted, Counter::kTcpRefused, Counter::kTcpTimeouts, Counter::kTcpOpen};
}

Core::StreamLimits StreamClients::limits() const noexcept {
  return core_.stream_limits(transport_);
}

/// RFC 7766 §6.2.2 permits limits. One holder has at most a quarter of the places, so that no
/// single address shuts all others out; a load balancer stands for many clients.
bool StreamClients::has_place(const IpAddress& holder) const {
  const std::size_t places = limits().clients;
  if (connections_.size() >= places) return false;
  const auto held = held_.find(holder);
  if (held == held_.end() || core_.is_proxy(holder)) return true;
  return held->second < std::max(places / kShareOfPlaces, kPlacesAnyway);
}

void StreamClients::take(const Client& client, Fd fd, std::unique_ptr<const PeerIdentity> peer) {
  core_.counting().add(counters_.accepted);
  core_.look_at_settings();
  const IpAddress holder = holder_of(client.remote.address);
  if (!has_place(holder)) return core_.counting().add(counters_.refused);
  TcpConnection::Socket socket(io_);
  asio::error_code error;
  socket.assign(fd.get(), error);
  if (error) return;
  [[maybe_unused]] const int owned_by_asio_now = fd.release();
  auto connection =
      std::make_shared<TcpConnection>(*this, std::move(socket), client, std::move(peer));
  connection->set_place(
      connections_.insert(connections_.end(), OpenConnection{connection, holder}));
  ++held_[holder];
  core_.counting().set(counters_.open, connections_.size());
  if (watched_idle_ms_ != limits().idle_ms) watch_progress();
  connection->start();
}

void StreamClients::progressed(TcpConnection& connection) noexcept {
  connections_.splice(connections_.end(), connections_, connection.place());
  // A lower limit counts at once, not after the time of the higher one.
  if (watched_idle_ms_ != limits().idle_ms) watch_progress();
}

void StreamClients::stalled(TcpConnection&) noexcept { core_.counting().add(counters_.timeouts); }

/// Waits until the longest-silent connection may have stalled. Connections that make progress leave
/// the front, so the timer can only be too early.
void StreamClients::watch_progress() {
  watched_idle_ms_ = connections_.empty() ? 0 : limits().idle_ms;
  if (connections_.empty()) return;
  progress_timer_.expires_at(connections_.front().connection->last_activity() +
                             std::chrono::milliseconds(watched_idle_ms_));
  progress_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    end_stalled(std::chrono::steady_clock::now());
    watch_progress();
  });
}

void StreamClients::end_stalled(std::chrono::steady_clock::time_point now) {
  const auto limit = std::chrono::milliseconds(limits().idle_ms);
  for (int budget = kStalledBudget; budget > 0 && !connections_.empty(); --budget) {
    const auto connection = connections_.front().connection;
    if (now - connection->last_activity() < limit) return;
    connection->end_stalled();  // it leaves the front in either case
  }
}

void StreamClients::ended(TcpConnection& connection) noexcept {
  const auto held = held_.find(connection.place()->holder);
  if (held != held_.end() && --held->second == 0) held_.erase(held);
  connections_.erase(connection.place());
  core_.counting().set(counters_.open, connections_.size());
}

std::size_t StreamClients::close_idle(std::chrono::milliseconds quiet) {
  const auto before = std::chrono::steady_clock::now() - quiet;
  std::vector<std::shared_ptr<TcpConnection>> idle;
  for (const auto& open : connections_) {
    if (open.connection->last_activity() >= before) break;
    if (open.connection->idle()) idle.push_back(open.connection);
  }
  for (const auto& connection : idle) connection->close();
  return connections_.size();
}

void StreamClients::close_all() {
  while (!connections_.empty()) {
    const auto connection = connections_.front().connection;
    connection->close(ipc::TransferEnd::kWorkerStopped);
  }
}

}  // namespace pando::worker
