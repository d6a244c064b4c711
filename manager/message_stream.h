#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"

namespace pando::manager {

/// A TCP connection to another server: whole messages out and in (RFC 1035 §4.2.2), each step under
/// one deadline. After an error there is nothing to do with it but to end it.
class MessageStream {
 public:
  /// For `source` see open_towards(). `patience` is for each step.
  MessageStream(asio::any_io_executor executor, const Endpoint& peer,
                const std::optional<IpAddress>& source, std::chrono::milliseconds patience)
      : peer_(peer), source_(source), patience_(patience), socket_(executor), deadline_(executor) {}
  ~MessageStream() { deadline_.cancel(); }
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  void set_patience(std::chrono::milliseconds patience) noexcept { patience_ = patience; }
  asio::awaitable<Status> connect();
  asio::awaitable<Status> send(const Bytes& message);
  /// The next message; valid until the next call.
  asio::awaitable<Result<ByteView>> receive();

 private:
  void arm();
  Status verdict(const asio::error_code& error, const char* step) const;

  Endpoint peer_;
  std::optional<IpAddress> source_;
  std::chrono::milliseconds patience_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  bool timed_out_ = false;
  Bytes buffer_;
};

}  // namespace pando::manager
