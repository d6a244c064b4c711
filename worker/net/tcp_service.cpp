#include "worker/net/tcp_service.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace pando::worker {

using asio::ip::tcp;
using ipc::Counter;

namespace {

constexpr std::size_t kShareOfPlaces = 4;
/// A few connections are no attack, even if `limits.tcp-clients` is small.
constexpr std::size_t kPlacesAnyway = 16;

/// The holder of connections from an address: all addresses of an IPv6 /64 count as one client.
IpAddress holder_of(IpAddress address) noexcept {
  if (!address.is_v4()) std::fill(address.octets.begin() + 8, address.octets.end(), 0);
  return address;
}

}  // namespace

struct TcpService::Listener {
  Listener(asio::io_context& io, const ipc::SocketDescription& what)
      : description(what), native(io), timer(io) {}
  ipc::SocketDescription description;
  tcp::acceptor native;
  asio::steady_timer timer;
  bool starved = false;  ///< the last accept failed for want of descriptors
  [[nodiscard]] tcp protocol() const {
    return description.local.address.is_v4() ? tcp::v4() : tcp::v6();
  }
};

TcpService::TcpService(asio::io_context& io, Core& core, std::function<void(std::uint32_t)> drained)
    : io_(io),
      core_(core),
      drained_(std::move(drained)),
      space_(std::make_unique<Space>()),
      receive_space_(std::make_unique<Space>()),
      progress_timer_(io) {}

TcpService::~TcpService() { close_all(); }

void TcpService::add(const ipc::SocketDescription& description, Fd fd) {
  auto listener = std::make_shared<Listener>(io_, description);
  asio::error_code error;
  listener->native.assign(listener->protocol(), fd.get(), error);
  if (error && description.orphaned) drained_(description.id);  // no client waits on this socket
  if (error) return;
  [[maybe_unused]] const int owned_by_asio_now = fd.release();
  listeners_.push_back(listener);
  if (description.orphaned) return read_orphaned(listener, 0);
  wait(listener);
}

bool TcpService::update(const ipc::SocketDescription& description) {
  for (auto& listener : listeners_) {
    const auto& known = listener->description;
    if (known.orphaned || known.local != description.local ||
        known.transport != description.transport)
      continue;
    listener->description = description;
    return true;
  }
  return false;
}

bool TcpService::close(std::uint32_t id) {
  return std::erase_if(listeners_, [id](const auto& listener) {
           if (listener->description.id != id) return false;
           asio::error_code ignored;
           listener->native.close(ignored);
           listener->timer.cancel();
           return true;
         }) > 0;
}

std::vector<std::pair<ipc::SocketDescription, int>> TcpService::sockets() const {
  std::vector<std::pair<ipc::SocketDescription, int>> list;
  for (const auto& listener : listeners_)
    if (!listener->description.orphaned)
      list.emplace_back(listener->description, listener->native.native_handle());
  return list;
}

void TcpService::wait(const std::shared_ptr<Listener>& listener) {
  listener->native.async_wait(tcp::acceptor::wait_read,
                              [this, listener](const asio::error_code& error) {
                                if (error || !listener->native.is_open()) return;
                                accept(listener);
                                if (!listener->native.is_open()) return;
                                listener->starved ? wait_later(listener) : wait(listener);
                              });
}

/// Without free descriptors the next client stays in the kernel's queue. An immediate retry would
/// only take time from the clients being served.
void TcpService::wait_later(const std::shared_ptr<Listener>& listener) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  listener->timer.expires_after(kPause);
  listener->timer.async_wait([this, listener](const asio::error_code& error) {
    if (!error && listener->native.is_open()) wait(listener);
  });
}

/// Returns true when no connection waits any more.
bool TcpService::accept(const std::shared_ptr<Listener>& listener) {
  listener->starved = false;
  if (!core_.attached()) return true;
  for (int i = 0; i < kAcceptBudget; ++i) {
    Fd socket(::accept4(listener->native.native_handle(), nullptr, nullptr,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      take(*listener, std::move(socket));
      continue;
    }
    if (errno == EAGAIN) return true;
    // Errors of one connection do not affect the next (accept(2)).
    listener->starved = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (listener->starved) return true;
  }
  return false;
}

/// RFC 7766 §6.2.2 permits limits. One holder has at most a quarter of the places, so that no
/// single address shuts all others out; a load balancer stands for many clients.
bool TcpService::has_place(const IpAddress& holder) const {
  const std::size_t places = core_.tcp_clients();
  if (connections_.size() >= places) return false;
  const auto held = held_.find(holder);
  if (held == held_.end() || core_.is_proxy(holder)) return true;
  return held->second < std::max(places / kShareOfPlaces, kPlacesAnyway);
}

void TcpService::take(const Listener& listener, Fd fd) {
  core_.counting().add(Counter::kTcpAccepted);
  core_.look_at_settings();
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  Client client;
  client.transport = listener.description.transport;
  client.remote = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  const IpAddress holder = holder_of(client.remote.address);
  if (!has_place(holder)) return core_.counting().add(Counter::kTcpRefused);
  length = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  client.local = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  TcpConnection::Socket socket(io_);
  asio::error_code error;
  socket.assign(fd.get(), error);
  if (error) return;
  [[maybe_unused]] const int owned_by_asio_now = fd.release();
  auto connection = std::make_shared<TcpConnection>(*this, std::move(socket), client);
  connection->set_place(
      connections_.insert(connections_.end(), OpenConnection{connection, holder}));
  ++held_[holder];
  core_.counting().set(Counter::kTcpOpen, connections_.size());
  if (watched_idle_ms_ != core_.tcp_idle_ms()) watch_progress();
  connection->start();
}

void TcpService::progressed(TcpConnection& connection) noexcept {
  connections_.splice(connections_.end(), connections_, connection.place());
  // A lower limit counts at once, not after the time of the higher one.
  if (watched_idle_ms_ != core_.tcp_idle_ms()) watch_progress();
}

/// Waits until the longest-silent connection may have stalled. Connections that make progress leave
/// the front, so the timer can only be too early.
void TcpService::watch_progress() {
  watched_idle_ms_ = connections_.empty() ? 0 : core_.tcp_idle_ms();
  if (connections_.empty()) return;
  progress_timer_.expires_at(connections_.front().connection->last_activity() +
                             std::chrono::milliseconds(watched_idle_ms_));
  progress_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    end_stalled(std::chrono::steady_clock::now());
    watch_progress();
  });
}

void TcpService::end_stalled(std::chrono::steady_clock::time_point now) {
  const auto limit = std::chrono::milliseconds(core_.tcp_idle_ms());
  for (int budget = kStalledBudget; budget > 0 && !connections_.empty(); --budget) {
    const auto connection = connections_.front().connection;
    if (now - connection->last_activity() < limit) return;
    connection->end_stalled();  // it leaves the front in either case
  }
}

void TcpService::ended(TcpConnection& connection) noexcept {
  const auto held = held_.find(connection.place()->holder);
  if (held != held_.end() && --held->second == 0) held_.erase(held);
  connections_.erase(connection.place());
  core_.counting().set(Counter::kTcpOpen, connections_.size());
}

void TcpService::stop_accepting() {
  for (const auto& listener : std::vector(listeners_)) {
    for (int turn = 0; turn < 100 && !accept(listener); ++turn) {
    }
    close(listener->description.id);
  }
}

std::size_t TcpService::close_idle(std::chrono::milliseconds quiet) {
  const auto before = std::chrono::steady_clock::now() - quiet;
  std::vector<std::shared_ptr<TcpConnection>> idle;
  for (const auto& open : connections_) {
    if (open.connection->last_activity() >= before) break;
    if (open.connection->idle()) idle.push_back(open.connection);
  }
  for (const auto& connection : idle) connection->close();
  return connections_.size();
}

void TcpService::close_all() {
  while (!connections_.empty()) {
    const auto connection = connections_.front().connection;
    connection->close(ipc::TransferEnd::kWorkerStopped);
  }
}

void TcpService::read_orphaned(const std::shared_ptr<Listener>& listener, int empty_looks) {
  constexpr int kLooks = 2;
  constexpr auto kPause = std::chrono::milliseconds(20);
  if (!listener->native.is_open()) return;
  const bool empty = accept(listener);
  empty_looks = empty ? empty_looks + 1 : 0;
  if (empty_looks >= kLooks) {
    const std::uint32_t id = listener->description.id;
    close(id);
    return drained_(id);
  }
  listener->timer.expires_after(empty ? kPause : std::chrono::milliseconds(0));
  listener->timer.async_wait([this, listener, empty_looks](const asio::error_code& error) {
    if (!error) read_orphaned(listener, empty_looks);
  });
}

}  // namespace pando::worker
