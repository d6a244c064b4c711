#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>

#include "worker/net/core.h"
#include "worker/respond/transfer_out.h"

namespace pando::worker {

/// What a connection needs of its service.
class TcpHost {
 public:
  virtual ~TcpHost() = default;
  virtual Core& core() noexcept = 0;
  /// 65,535 octets to build a message in; used within one call only.
  virtual std::span<std::uint8_t> space() noexcept = 0;
  virtual std::span<std::uint8_t> receive_space() noexcept = 0;
  virtual void ended(class TcpConnection& connection) noexcept = 0;
};

/// One client over TCP (RFC 7766, RFC 9210). Pipelined queries are answered as they come; answers
/// that need the manager may be is_stale (RFC 7766 §7). Every buffer has a bound: a client that
/// does not read its answers is not read from, and after a time without progress it is closed.
/// What is no request ends the requests: those before it are answered, the rest is thrown away.
class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(TcpHost& host, asio::ip::tcp::socket socket, const Client& client);
  ~TcpConnection();

  void start();
  void close() noexcept;
  /// Nothing of the client's is under way.
  [[nodiscard]] bool idle() noexcept;
  [[nodiscard]] std::chrono::steady_clock::time_point last_activity() const noexcept {
    return last_activity_;
  }

 private:
  // Bounds per client.
  static constexpr std::size_t kMaxQueuedOctets = std::size_t{256} << 10;
  static constexpr std::size_t kTransferLowWater = std::size_t{64} << 10;
  static constexpr std::size_t kMaxForwards = 32;
  /// Requests of one client before the loop's other handlers get their turn.
  static constexpr int kRequestBudget = 16;

  void finish();
  void wait_readable();
  void receive();
  void pump();
  void take_requests();
  [[nodiscard]] bool has_request() const noexcept;
  bool take_proxy_header();
  void handle(ByteView message);
  void forward(ByteView message, const Outcome& outcome);
  void start_transfer(ByteView message);
  void continue_transfer();
  void sign_elsewhere(TransferOut::Step step, ByteView message);
  void transfer_message(TransferOut::Step step, ByteView message);
  void end_transfer(bool complete);
  void respond(ByteView message);
  void flush();
  void wait_writable();
  [[nodiscard]] bool has_unread() noexcept;
  void watch_progress();
  void pump_later();
  [[nodiscard]] bool may_take_request() const noexcept;
  void touch() noexcept { last_activity_ = std::chrono::steady_clock::now(); }

  TcpHost& host_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  Client client_;
  Bytes input_;  ///< received, not handled: at most one message and one receive
  std::deque<Bytes> output_;
  std::size_t output_octets_ = 0;
  std::size_t output_sent_ = 0;  ///< of the front of output_
  std::size_t forwards_ = 0;
  std::unique_ptr<TransferOut> transfer_;
  std::uint64_t stream_id_ = 0;
  bool signing_ = false;  ///< a message of the transfer is at the manager
  bool waiting_readable_ = false;
  bool waiting_writable_ = false;
  bool pump_posted_ = false;
  bool input_ended_ = false;
  bool requests_ended_ = false;  ///< what came is no request: no way to tell where the next begins
  bool shut_down_ = false;       ///< the client was told that no more answers come
  bool expects_proxy_header_;    ///< nothing was read yet, and the client may be a load balancer
  std::chrono::steady_clock::time_point last_activity_ = std::chrono::steady_clock::now();
};

}  // namespace pando::worker
