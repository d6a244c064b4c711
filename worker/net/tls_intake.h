#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>

#include "ipc/channel.h"
#include "worker/net/stream_clients.h"

namespace pando::worker {

/// Takes clients whose TLS ends in pando-tls, and serves them as those over TCP. A process of
/// pando-tls may be an intruder's: whatever it says of a client, the client gets what the rules give
/// to such a one, and no more.
class TlsIntake {
 public:
  TlsIntake(asio::io_context& io, Core& core);
  ~TlsIntake();
  TlsIntake(const TlsIntake&) = delete;
  TlsIntake& operator=(const TlsIntake&) = delete;

  /// Takes clients from `connection`, which leads to the process of pando-tls in this slot, and none
  /// from an earlier process there. Its clients go on.
  void add(std::uint32_t slot, Fd connection);
  /// Leaving: asks for no more clients, and takes those that are on their way.
  void stop_accepting();
  [[nodiscard]] StreamClients& clients() noexcept { return clients_; }

 private:
  using Channels = std::map<std::uint32_t, std::shared_ptr<ipc::Channel>>;
  void take(ipc::Packet&& packet);
  void forget(std::uint32_t slot, const ipc::Channel* channel);

  asio::io_context& io_;
  Core& core_;
  StreamClients clients_;
  Channels channels_;
};

}  // namespace pando::worker
