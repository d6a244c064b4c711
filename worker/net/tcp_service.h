#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ipc/seen_clients.h"
#include "worker/net/tcp_connection.h"

namespace pando::worker {

/// Serves the worker's TCP listening sockets and its connections.
class TcpService : public TcpHost {
 public:
  TcpService(asio::io_context& io, Core& core, std::function<void(std::uint32_t)> drained);
  ~TcpService() override;

  void add(const ipc::SocketDescription& description, Fd socket);
  bool update(const ipc::SocketDescription& description);
  bool close(std::uint32_t id);
  [[nodiscard]] std::vector<std::pair<ipc::SocketDescription, int>> sockets() const;

  /// Leaving: accepts the waiting connections and no later ones.
  void stop_accepting();
  /// Closes connections that have been idle for `quiet`; returns the number of remaining ones.
  std::size_t close_idle(std::chrono::milliseconds quiet);
  /// Ends connections without progress for `limits.tcp-idle` at the time `now`, the longest-silent
  /// first. One call ends a limited number. The service calls this by a timer.
  void end_stalled(std::chrono::steady_clock::time_point now);
  void close_all();

  Core& core() noexcept override { return core_; }
  std::span<std::uint8_t> space() noexcept override { return *space_; }
  std::span<std::uint8_t> receive_space() noexcept override { return *receive_space_; }
  void progressed(TcpConnection& connection) noexcept override;
  void ended(TcpConnection& connection) noexcept override;

 private:
  struct Listener;
  struct HolderHash {
    std::size_t operator()(const IpAddress& address) const noexcept {
      return ipc::seen_hash(address);
    }
  };
  static constexpr int kAcceptBudget = 64;
  static constexpr int kStalledBudget = 64;

  void wait(const std::shared_ptr<Listener>& listener);
  void wait_later(const std::shared_ptr<Listener>& listener);
  bool accept(const std::shared_ptr<Listener>& listener);
  void take(const Listener& listener, Fd socket);
  [[nodiscard]] bool has_place(const IpAddress& holder) const;
  void watch_progress();
  void read_orphaned(const std::shared_ptr<Listener>& listener, int empty_looks);

  using Space = std::array<std::uint8_t, dns::kMaxMessageOctets>;
  asio::io_context& io_;
  Core& core_;
  std::function<void(std::uint32_t)> drained_;
  std::unique_ptr<Space> space_;
  std::unique_ptr<Space> receive_space_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  /// By last progress, the longest-silent first: one timer is enough for all.
  OpenConnections connections_;
  asio::steady_timer progress_timer_;
  /// The limit that the timer waits for; 0: it does not wait.
  std::uint32_t watched_idle_ms_ = 0;
  std::unordered_map<IpAddress, std::size_t, HolderHash> held_;  ///< connections of each holder
};

}  // namespace pando::worker
