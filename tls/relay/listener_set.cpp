#include "tls/relay/listener_set.h"

#include <sys/socket.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>

namespace pando::tls {

namespace {

constexpr int kAcceptBudget = 64;
constexpr int kLastTurns = 100;

}  // namespace

struct ListenerSet::Listener {
  Listener(asio::io_context& io, std::uint32_t number) : id(number), socket(io), timer(io) {}
  std::uint32_t id;
  asio::posix::stream_descriptor socket;
  asio::steady_timer timer;
  bool starved = false;  ///< the last accept failed for want of descriptors
};

ListenerSet::ListenerSet(asio::io_context& io, std::function<void(Fd)> accepted)
    : io_(io), accepted_(std::move(accepted)) {}

ListenerSet::~ListenerSet() = default;

void ListenerSet::add(const ipc::SocketDescription& description, Fd socket) {
  auto listener = std::make_shared<Listener>(io_, description.id);
  asio::error_code error;
  listener->socket.assign(socket.get(), error);
  if (error) return;
  [[maybe_unused]] const int owned_by_asio_now = socket.release();
  listeners_.push_back(listener);
  wait(listener);
}

void ListenerSet::close(std::uint32_t id) {
  std::erase_if(listeners_, [id](const auto& listener) {
    if (listener->id != id) return false;
    asio::error_code ignored;
    listener->socket.close(ignored);
    listener->timer.cancel();
    return true;
  });
}

void ListenerSet::stop() {
  for (const auto& listener : std::vector(listeners_)) {
    for (int turn = 0; turn < kLastTurns && !accept(*listener); ++turn) {
    }
    close(listener->id);
  }
}

void ListenerSet::wait(const std::shared_ptr<Listener>& listener) {
  listener->socket.async_wait(asio::posix::descriptor_base::wait_read,
                              [this, listener](const asio::error_code& error) {
                                if (error || !listener->socket.is_open()) return;
                                accept(*listener);
                                if (!listener->socket.is_open()) return;
                                listener->starved ? wait_later(listener) : wait(listener);
                              });
}

/// Without free descriptors the next client stays in the kernel's queue. An immediate retry would
/// only take time from the clients being served.
void ListenerSet::wait_later(const std::shared_ptr<Listener>& listener) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  listener->timer.expires_after(kPause);
  listener->timer.async_wait([this, listener](const asio::error_code& error) {
    if (!error && listener->socket.is_open()) wait(listener);
  });
}

bool ListenerSet::accept(Listener& listener) {
  listener.starved = false;
  for (int i = 0; i < kAcceptBudget; ++i) {
    Fd socket(::accept4(listener.socket.native_handle(), nullptr, nullptr,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      accepted_(std::move(socket));
      continue;
    }
    if (errno == EAGAIN) return true;
    // Errors of one connection do not affect the next (accept(2)).
    listener.starved = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (listener.starved) return true;
  }
  return false;
}

}  // namespace pando::tls
