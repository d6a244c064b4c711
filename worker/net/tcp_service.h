#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "worker/net/stream_clients.h"

namespace pando::worker {

/// Serves the worker's TCP listening sockets and its connections.
class TcpService {
 public:
  TcpService(asio::io_context& io, Core& core, std::function<void(std::uint32_t)> drained);

  void add(const ipc::SocketDescription& description, Fd socket);
  bool update(const ipc::SocketDescription& description);
  bool close(std::uint32_t id);
  [[nodiscard]] std::vector<std::pair<ipc::SocketDescription, int>> sockets() const;

  /// Leaving: accepts the waiting connections and no later ones.
  void stop_accepting();
  [[nodiscard]] StreamClients& clients() noexcept { return clients_; }

 private:
  struct Listener;
  static constexpr int kAcceptBudget = 64;

  void wait(const std::shared_ptr<Listener>& listener);
  void wait_later(const std::shared_ptr<Listener>& listener);
  bool accept(const std::shared_ptr<Listener>& listener);
  void take(const Listener& listener, Fd socket);
  void read_orphaned(const std::shared_ptr<Listener>& listener, int empty_looks);

  asio::io_context& io_;
  Core& core_;
  std::function<void(std::uint32_t)> drained_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  StreamClients clients_;
};

}  // namespace pando::worker
