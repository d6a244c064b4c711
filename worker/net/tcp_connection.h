#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>

#include "base/net/peer_identity.h"
#include "worker/net/core.h"
#include "worker/net/tcp_output.h"
#include "worker/respond/transfer_out.h"

namespace pando::worker {

class TcpConnection;

/// A connection in its host's list.
struct OpenConnection {
  std::shared_ptr<TcpConnection> connection;
  IpAddress holder;  ///< counts for the limit of connections from one address
};
using OpenConnections = std::list<OpenConnection>;

/// Interface of a connection to its service.
class TcpHost {
 public:
  virtual ~TcpHost() = default;
  virtual Core& core() noexcept = 0;
  /// 65,535 octets to build a message in; used within one call only.
  virtual std::span<std::uint8_t> space() noexcept = 0;
  virtual std::span<std::uint8_t> receive_space() noexcept = 0;
  /// `connection` has a new last_activity().
  virtual void progressed(TcpConnection& connection) noexcept = 0;
  /// `connection` made no progress for the idle time, and is about to end.
  virtual void stalled(TcpConnection& connection) noexcept = 0;
  virtual void ended(TcpConnection& connection) noexcept = 0;
};

/// One client over TCP (RFC 7766, RFC 9210), or over TLS (RFC 7858), whose plain octets come from
/// pando-tls. Pipelined queries are answered as they come; later
/// answers may overtake those that need the manager (RFC 7766 §7).
/// Every buffer has a bound: input from a client that does not read its answers is not read.
/// Without progress the host ends the connection after a time.
/// An idle connection holds no buffer and no timer, because there may be very many of them.
/// The first malformed request ends the input: the requests before it are answered, the rest is
/// discarded.
class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  /// A stream socket of any family. Its executor is no any_io_executor: each waiting handler would
  /// hold a copy.
  using Socket = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

  /// `peer`: null but over TLS.
  TcpConnection(TcpHost& host, Socket socket, const Client& client,
                std::unique_ptr<const PeerIdentity> peer = nullptr);
  ~TcpConnection();

  void start();
  /// `end`: the reason for the log if a transfer is under way.
  void close(ipc::TransferEnd end = ipc::TransferEnd::kClientLeft) noexcept;
  /// Closes the connection after a time without progress, unless the client waits for us.
  void end_stalled() noexcept;
  /// True when no request or response of the client is under way.
  [[nodiscard]] bool idle() noexcept;
  /// Bytes of memory for requests and responses.
  [[nodiscard]] std::size_t buffer_bytes() const noexcept {
    return input_.capacity() + output_.capacity();
  }
  [[nodiscard]] std::chrono::steady_clock::time_point last_activity() const noexcept {
    return last_activity_;
  }
  /// The place in the host's list, for the host alone.
  [[nodiscard]] OpenConnections::iterator place() const noexcept { return place_; }
  void set_place(OpenConnections::iterator place) noexcept { place_ = place; }

 private:
  struct Ended {
    bool input = false;     ///< the client has closed its side
    bool requests = false;  ///< malformed input: the start of the next request is unknown
  };
  // Bounds per client.
  static constexpr std::size_t kMaxQueuedOctets = std::size_t{256} << 10;
  static constexpr std::size_t kTransferLowWater = std::size_t{64} << 10;
  static constexpr std::size_t kMaxForwards = 32;
  /// Limit of requests of one client before the loop's other handlers run.
  static constexpr int kRequestBudget = 16;

  void finish();
  void wait_readable();
  void receive();
  void pump();
  void take_requests();
  [[nodiscard]] bool has_request() const noexcept;
  bool take_proxy_header();
  void handle(ByteView message);
  void forward(ByteView message, const Outcome& outcome, std::optional<Exchange> exchange);
  void tell_taps(const Exchange& exchange, ByteView message, Action action, std::size_t response);
  std::size_t start_transfer();
  void continue_transfer();
  void sign_elsewhere(TransferOut::Step step, ByteView message);
  void transfer_message(TransferOut::Step step, ByteView message);
  void end_transfer(ipc::TransferEnd end);
  void flush();
  void wait_writable();
  [[nodiscard]] bool has_unread() noexcept;
  void pump_later();
  [[nodiscard]] bool may_take_request() const noexcept;
  void touch() noexcept;

  TcpHost& host_;
  Socket socket_;
  std::unique_ptr<const PeerIdentity> peer_;
  Client client_;
  Bytes input_;  ///< received but not handled: at most one message and one receive
  TcpOutput output_;
  std::size_t forwards_ = 0;
  std::unique_ptr<TransferOut> transfer_;
  std::uint64_t stream_id_ = 0;
  bool signing_ = false;  ///< a message of the transfer is at the manager
  bool waiting_readable_ = false;
  bool waiting_writable_ = false;
  bool pump_posted_ = false;
  Ended ended_;
  bool shut_down_ = false;       ///< the write side is shut: the client sees the end of answers
  bool expects_proxy_header_;    ///< nothing was read yet, and the peer may be a load balancer
  std::chrono::steady_clock::time_point last_activity_ = std::chrono::steady_clock::now();
  OpenConnections::iterator place_;
};

}  // namespace pando::worker
