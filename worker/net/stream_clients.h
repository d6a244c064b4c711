#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <unordered_map>

#include "base/fd.h"
#include "base/net/peer_identity.h"
#include "ipc/seen_clients.h"
#include "worker/net/tcp_connection.h"

namespace pando::worker {

/// The open connections of one transport, TCP or TLS, within the limits of that transport.
class StreamClients : public TcpHost {
 public:
  StreamClients(asio::io_context& io, Core& core, ipc::Transport transport);
  ~StreamClients() override;
  StreamClients(const StreamClients&) = delete;
  StreamClients& operator=(const StreamClients&) = delete;

  /// Serves the client at the other end of `socket`, or closes the socket if a limit is reached.
  /// `peer`: of a client over TLS, else null.
  void take(const Client& client, Fd socket, std::unique_ptr<const PeerIdentity> peer = nullptr);
  /// Closes connections that have been idle for `quiet`; returns the number of remaining ones.
  std::size_t close_idle(std::chrono::milliseconds quiet);
  /// Ends connections without progress for the transport's idle time at the time `now`, the
  /// longest-silent first. One call ends a limited number. A timer calls this.
  void end_stalled(std::chrono::steady_clock::time_point now);
  void close_all();

  Core& core() noexcept override { return core_; }
  std::span<std::uint8_t> space() noexcept override { return *space_; }
  std::span<std::uint8_t> receive_space() noexcept override { return *receive_space_; }
  void progressed(TcpConnection& connection) noexcept override;
  void stalled(TcpConnection& connection) noexcept override;
  void ended(TcpConnection& connection) noexcept override;

 private:
  /// Numbers of the transport's counters.
  struct Counters {
    ipc::Counter accepted;
    ipc::Counter refused;
    ipc::Counter timeouts;
    ipc::Counter open;
  };
  struct HolderHash {
    std::size_t operator()(const IpAddress& address) const noexcept {
      return ipc::seen_hash(address);
    }
  };
  static constexpr int kStalledBudget = 64;

  static Counters counters_of(ipc::Transport transport) noexcept;
  [[nodiscard]] Core::StreamLimits limits() const noexcept;
  [[nodiscard]] bool has_place(const IpAddress& holder) const;
  void watch_progress();

  using Space = std::array<std::uint8_t, dns::kMaxMessageOctets>;
  asio::io_context& io_;
  Core& core_;
  ipc::Transport transport_;
  Counters counters_;
  std::unique_ptr<Space> space_;
  std::unique_ptr<Space> receive_space_;
  /// By last progress, the longest-silent first: one timer is enough for all.
  OpenConnections connections_;
  asio::steady_timer progress_timer_;
  /// The limit that the timer waits for; 0: it does not wait.
  std::uint32_t watched_idle_ms_ = 0;
  std::unordered_map<IpAddress, std::size_t, HolderHash> held_;  ///< connections of each holder
};

}  // namespace pando::worker
