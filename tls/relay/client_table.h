#pragma once

#include <asio/io_context.hpp>
#include <array>
#include <memory>

#include "tls/relay/client_connection.h"
#include "tls/relay/client_limits.h"
#include "tls/relay/worker_links.h"
#include "tls/session/server_context.h"

namespace pando::tls {

/// All clients of this process, within the limits of the manager.
class ClientTable : public ClientHost {
 public:
  /// References must outlive this object.
  ClientTable(asio::io_context& io, const ServerContext& context, WorkerLinks& workers);
  ~ClientTable() override;

  void set_limits(ipc::TlsLimits limits);
  /// Serves the client of a connection that a listening socket has accepted.
  void take(Fd socket);
  /// Ends the connections whose certificate was a remote's: the demands have changed.
  void end_identified();
  void close_all();
  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }
  [[nodiscard]] ipc::TlsCounts counts() const noexcept;

  const ServerContext& context() noexcept override { return context_; }
  Deadlines& handshakes() noexcept override { return handshakes_; }
  Deadlines& stalled() noexcept override { return stalled_; }
  std::span<std::uint8_t> space() noexcept override { return *space_; }
  [[nodiscard]] bool is_proxy(const IpAddress& address) const noexcept override;
  bool begins_handshake(ClientConnection& client) override;
  std::optional<Fd> hand_over(ClientConnection& client, const ipc::TlsConnection& message,
                              bool resumed) override;
  void is_unproven(const Endpoint& client, std::string_view fault) override;
  void ended(ClientConnection& client, std::string_view fault) noexcept override;

 private:
  /// Limits lines about clients, which choose their number: one a second for each event.
  class Line {
   public:
    /// The number of events that the next line stands for; 0: no line is due.
    std::uint64_t one_more() noexcept;

   private:
    std::uint64_t next_ms_ = 0;
    std::uint64_t events_ = 0;
  };
  using Space = std::array<std::uint8_t, std::size_t{64} << 10>;

  void refuse(const Endpoint& client, ClientLimits::Verdict verdict);

  asio::io_context& io_;
  const ServerContext& context_;
  WorkerLinks& workers_;
  Deadlines handshakes_;
  Deadlines stalled_;
  ClientLimits limits_;
  std::vector<IpPrefix> proxies_;
  std::unique_ptr<Space> space_;
  ipc::TlsCounts counts_;
  Line refused_;
  Line failed_;
  Line unproven_;
  Clients clients_;
};

}  // namespace pando::tls
