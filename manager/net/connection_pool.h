#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "base/address.h"
#include "manager/net/message_stream.h"

namespace pando::manager {

/// Idle connections to primaries, for reuse by later refresh attempts (RFC 7766 §6.2.1). The
/// primary may close a pooled connection at any moment, also just after take(). For queries only:
/// an update that may have been sent must not be sent again.
///
/// Lives on the network's thread.
class ConnectionPool {
 public:
  struct Options {
    /// Time until we close. Knot closes after 10 s, BIND after 30, NSD after 120, so we are usually
    /// first.
    std::chrono::milliseconds idle{8'000};
    /// RFC 7766 §6.2.2 wants few connections; four suffice for small transfers of many zones at
    /// once.
    std::size_t per_primary = 4;
    std::size_t most = 64;
  };

  ConnectionPool(asio::io_context& loop, Options options) : options_(options), timer_(loop) {}
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;

  /// Takes the last used open connection from `source` to `primary`; null: none.
  std::unique_ptr<MessageStream> take(const Endpoint& primary,
                                      const std::optional<IpAddress>& source);
  /// Keeps `stream` if it is at rest, leads to a configured primary, and fits the limits.
  void put(std::unique_ptr<MessageStream> stream);

  using Primaries = std::set<Endpoint>;
  /// Sets the configured primaries and the source address. Other connections are closed, and not
  /// kept any more.
  void configure(Primaries primaries, const std::optional<IpAddress>& source);
  [[nodiscard]] std::size_t count() const noexcept { return connections_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    std::unique_ptr<MessageStream> stream;
    Clock::time_point until;
  };

  [[nodiscard]] bool wanted(const MessageStream& stream) const;
  void watch();

  Options options_;
  Primaries primaries_;
  std::optional<IpAddress> source_;
  std::deque<Kept> connections_;  // ordered by the time of put(), oldest first
  asio::steady_timer timer_;
  bool watching_ = false;
};

}  // namespace pando::manager
