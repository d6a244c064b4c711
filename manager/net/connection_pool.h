#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "manager/net/endpoint_less.h"
#include "manager/net/message_stream.h"

namespace pando::manager {

/// Connections to primaries that have nothing to do for a while (RFC 7766 §6.2.1): the next visit
/// goes on with one of them instead of opening its own. Whoever takes one has to expect that the
/// primary closes it at that moment. For queries only: an update that may have been sent must not
/// be sent again.
///
/// Lives on the network's thread.
class ConnectionPool {
 public:
  struct Options {
    /// Knot closes after 10 s, BIND after 30, NSD after 120: mostly we are first.
    std::chrono::milliseconds idle{8'000};
    /// RFC 7766 §6.2.2: few. As many as small transfers of many zones need at a time.
    std::size_t per_primary = 4;
    std::size_t most = 64;
  };

  ConnectionPool(asio::io_context& loop, Options options) : options_(options), timer_(loop) {}
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;

  /// The one used last of those to `primary` that leave from `source` and are still good, or null.
  std::unique_ptr<MessageStream> take(const Endpoint& primary,
                                      const std::optional<IpAddress>& source);
  /// Keeps `stream`, if it is at rest, to one of the primaries, and there is room.
  void put(std::unique_ptr<MessageStream> stream);

  using Primaries = std::set<Endpoint, EndpointLess>;
  /// Of the configuration. Connections to others are closed, and not kept any more; so are those
  /// that leave from elsewhere than `source`.
  void configure(Primaries primaries, const std::optional<IpAddress>& source);
  [[nodiscard]] std::size_t count() const noexcept { return kept_.size(); }

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
  std::deque<Kept> kept_;  // those that were put first in front
  asio::steady_timer timer_;
  bool watching_ = false;
};

}  // namespace pando::manager
