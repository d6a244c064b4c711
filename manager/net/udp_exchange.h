#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"

namespace pando::manager {

/// One datagram out, and what is taken for its answer.
struct UdpExchange {
  Endpoint peer;
  std::optional<IpAddress> source;  ///< see open_towards()
  Bytes message;
  std::chrono::milliseconds patience{3000};
  /// Whether a datagram from the peer is the answer; with false the wait goes on: anybody can send
  /// under a foreign address.
  std::function<bool(ByteView)> accept;
};

/// Sends once and waits. kIo when nothing acceptable came in time or the peer's host refused
/// (ICMP). A socket of its own, so that the port is as hard to guess as the ID (RFC 5452 §9.2).
asio::awaitable<Status> udp_exchange(UdpExchange exchange);

}  // namespace pando::manager
