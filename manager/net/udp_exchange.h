#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"

namespace pando::manager {

/// One datagram to send, and the test for its answer.
struct UdpExchange {
  Endpoint peer;
  std::optional<IpAddress> source;  ///< see open_towards()
  Bytes message;
  std::chrono::milliseconds timeout{3000};
  /// Pause after which the datagram is sent again, until the time is up. ICMP errors do not end the
  /// exchange then: the peer may come up. 0: sent once.
  std::chrono::milliseconds again{0};
  /// True if a datagram from the peer is the answer. After false the wait continues, since anybody
  /// can forge the peer's address.
  std::function<bool(ByteView)> accept;
};

/// Sends the datagram and waits for the answer. kIo: no acceptable answer in time, or an ICMP
/// error. Each exchange has its own socket, so that the port is as hard to guess as the ID (RFC
/// 5452 §9.2).
asio::awaitable<Status> udp_exchange(UdpExchange exchange);

}  // namespace pando::manager
