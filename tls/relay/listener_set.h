#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "ipc/worker_messages.h"

namespace pando::tls {

/// The listening sockets of this process, which belong to the manager's slot.
class ListenerSet {
 public:
  ListenerSet(asio::io_context& io, std::function<void(Fd)> accepted);
  ~ListenerSet();

  void add(const ipc::SocketDescription& description, Fd socket);
  void close(std::uint32_t id);
  /// Accepts the connections that wait, and closes all sockets.
  void stop();

 private:
  struct Listener;
  void wait(const std::shared_ptr<Listener>& listener);
  void wait_later(const std::shared_ptr<Listener>& listener);
  /// Returns true when no connection waits any more.
  bool accept(Listener& listener);

  asio::io_context& io_;
  std::function<void(Fd)> accepted_;
  std::vector<std::shared_ptr<Listener>> listeners_;
};

}  // namespace pando::tls
