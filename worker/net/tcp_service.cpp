#include "worker/net/tcp_service.h"

#include <sys/socket.h>

#include <cerrno>

namespace pando::worker {

using asio::ip::tcp;

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
      clients_(io, core, ipc::Transport::kTcp) {}

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

void TcpService::take(const Listener& listener, Fd fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  Client client;
  client.transport = listener.description.transport;
  client.remote = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  length = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  client.local = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  clients_.take(client, std::move(fd));
}

void TcpService::stop_accepting() {
  for (const auto& listener : std::vector(listeners_)) {
    for (int turn = 0; turn < 100 && !accept(listener); ++turn) {
    }
    close(listener->description.id);
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
