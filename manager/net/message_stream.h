#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"

namespace pando::manager {

/// A TCP connection to another server, which sends and receives whole messages (RFC 1035 §4.2.2).
/// Each step (connect, send, receive) has one deadline. After an error the stream can only be
/// destroyed.
class MessageStream {
 public:
  /// `source`: see open_towards(). `timeout` limits each step.
  MessageStream(asio::any_io_executor executor, const Endpoint& peer,
                const std::optional<IpAddress>& source, std::chrono::milliseconds timeout)
      : peer_(peer), source_(source), timeout_(timeout), socket_(executor), deadline_(executor) {}
  ~MessageStream() { deadline_.cancel(); }
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  [[nodiscard]] const Endpoint& peer() const noexcept { return peer_; }
  [[nodiscard]] const std::optional<IpAddress>& source() const noexcept { return source_; }
  void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }
  asio::awaitable<Status> connect();
  asio::awaitable<Status> send(const Bytes& message);
  /// Receives the next message; the view is valid until the next call.
  asio::awaitable<Result<ByteView>> receive();
  /// Adds the octets that come from now on to `meter`, which other threads may read; null: none.
  void set_meter(std::atomic<std::uint64_t>* meter) noexcept { meter_ = meter; }
  /// Octets received so far.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }

  /// True if the next query may use the connection: connected, no error so far, not closed by the
  /// peer, no unread data. Not to be called during a step.
  [[nodiscard]] bool at_rest();
  /// Frees memory that only long messages need. The view from receive() becomes invalid.
  void shrink();

 private:
  using Clock = std::chrono::steady_clock;

  void begin_step();
  Status end_step(const asio::error_code& error, const char* step);
  void watch();
  void make_room(std::size_t octets);

  Endpoint peer_;
  std::optional<IpAddress> source_;
  std::chrono::milliseconds timeout_;
  asio::ip::tcp::socket socket_;
  // The timer is not set for each step: when the timer ends, watch() compares with due_.
  asio::steady_timer deadline_;
  Clock::time_point due_;
  bool watching_ = false;
  bool in_step_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  bool timed_out_ = false;
  bool connected_ = false;
  bool failed_ = false;
  std::uint64_t received_ = 0;
  std::atomic<std::uint64_t>* meter_ = nullptr;
  Bytes buffer_;  // unread data is from begin_ to end_
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace pando::manager
