#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ipc/channel.h"
#include "ipc/tls_messages.h"

namespace pando::tls {

/// The connection to the manager. Clients are served without one; a manager that was replaced is
/// found by trying: every 10 ms for 2 s, then every 100 ms.
class ControlLink {
 public:
  struct Handlers {
    std::function<void(ipc::ToTls&&, std::vector<Fd>&&)> message;
  };

  ControlLink(asio::io_context& io, std::string socket_path, ipc::TlsHello hello,
              Handlers handlers);
  void start() { connect(); }
  /// Sends a message; without a connection the message is lost.
  void tell(const ipc::FromTls& message);
  /// Looks for no other manager once the connection ends.
  void leave() noexcept { leaving_ = true; }

 private:
  void connect();
  void connect_later();
  void take_packet(ipc::Packet&& packet);
  void lost(const Error& error);

  asio::io_context& io_;
  std::string socket_path_;
  ipc::TlsHello hello_;
  Handlers handlers_;
  asio::steady_timer retry_;
  std::uint32_t retries_ = 0;  ///< since the last message of a manager
  std::shared_ptr<ipc::Channel> channel_;
  bool leaving_ = false;
};

}  // namespace pando::tls
