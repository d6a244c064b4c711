#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "tests/unit/worker/query_builder.h"

namespace pando::testing {

/// Asks over UDP from one socket; empty when no answer came within ten seconds.
inline Bytes ask_udp(const Endpoint& server, const Bytes& query) {
  sockaddr_storage address;
  const socklen_t length = server.to_sockaddr(address);
  const Fd socket(::socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::sendto(socket.get(), query.data(), query.size(), 0, reinterpret_cast<sockaddr*>(&address),
           length);
  pollfd ready{socket.get(), POLLIN, 0};
  if (::poll(&ready, 1, 10'000) != 1) return {};
  Bytes response(65536);
  const ssize_t got = ::recv(socket.get(), response.data(), response.size(), 0);
  response.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return response;
}

/// A TCP client that sends whole messages and reads whole messages.
class TcpClient {
 public:
  explicit TcpClient(const Endpoint& server) {
    sockaddr_storage address;
    const socklen_t length = server.to_sockaddr(address);
    socket_ = Fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval timeout{10, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0;
  }
  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int native() const { return socket_.get(); }
  bool send_bytes(ByteView octets) const {
    return ::send(socket_.get(), octets.data(), octets.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(octets.size());
  }
  bool send(const Bytes& message) const {
    Bytes framed;
    append_be16(framed, static_cast<std::uint16_t>(message.size()));
    append(framed, message);
    return send_bytes(framed);
  }
  /// Empty when the server closed or did not answer.
  [[nodiscard]] Bytes receive() const {
    Bytes length(2);
    if (!read_exactly(length)) return {};
    Bytes message(load_be16(length.data()));
    if (!read_exactly(message)) return {};
    return message;
  }
  /// True when the server has closed the connection.
  [[nodiscard]] bool closed() const {
    std::uint8_t octet;
    return ::recv(socket_.get(), &octet, 1, 0) <= 0 && errno != EAGAIN;
  }

 private:
  bool read_exactly(Bytes& out) const {
    return out.empty() || ::recv(socket_.get(), out.data(), out.size(), MSG_WAITALL) ==
                              static_cast<ssize_t>(out.size());
  }
  Fd socket_;
  bool connected_ = false;
};

/// UDP clients, each on a port of its own, that ask one question after the other until stopped. A
/// query is lost when its answer has not come after ten seconds.
class Load {
 public:
  Load(const Endpoint& server, std::size_t clients) : server_(server) {
    thread_ = std::thread([this, clients] { run(clients); });
  }
  ~Load() { stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t answered() const { return answered_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  void wait_for(std::uint64_t more) const {
    const std::uint64_t target = answered_ + more;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answered_ < target && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    Fd socket;
    Clock::time_point sent{};
    bool waiting = false;
  };

  void run(std::size_t count) {
    const Bytes query = Query{}.octets();
    std::vector<Client> clients(count);
    std::vector<pollfd> watched;
    sockaddr_storage address;
    const socklen_t length = server_.to_sockaddr(address);
    for (auto& client : clients) {
      client.socket = Fd(::socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      ::connect(client.socket.get(), reinterpret_cast<sockaddr*>(&address), length);
      watched.push_back({client.socket.get(), POLLIN, 0});
    }
    std::size_t under_way = 0;
    do {
      for (auto& client : clients) {
        if (client.waiting || stopping_) continue;
        if (::send(client.socket.get(), query.data(), query.size(), 0) < 0) continue;
        client.waiting = true;
        client.sent = Clock::now();
        ++under_way;
      }
      ::poll(watched.data(), watched.size(), 10);
      for (std::size_t i = 0; i < clients.size(); ++i) under_way -= settle(clients[i], watched[i]);
    } while (!stopping_ || under_way > 0);
  }

  std::size_t settle(Client& client, const pollfd& ready) {
    if (!client.waiting) return 0;
    char buffer[2048];
    if ((ready.revents & POLLIN) != 0 &&
        ::recv(client.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0) {
      ++answered_;
    } else if (Clock::now() - client.sent > std::chrono::seconds(10)) {
      ++lost_;
    } else {
      return 0;
    }
    client.waiting = false;
    return 1;
  }

  Endpoint server_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::thread thread_;
};

}  // namespace pando::testing
