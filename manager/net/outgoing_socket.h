#pragma once

#include <netinet/in.h>

#include <asio/error_code.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/udp.hpp>
#include <cstring>
#include <optional>

#include "base/address.h"

namespace pando::manager {

/// Converts an address to Asio's form; `Protocol` is asio::ip::tcp or udp.
template <class Protocol>
typename Protocol::endpoint to_asio(const Endpoint& endpoint) {
  sockaddr_storage storage;
  const socklen_t size = endpoint.to_sockaddr(storage);
  typename Protocol::endpoint result;
  std::memcpy(result.data(), &storage, size);
  result.resize(size);
  return result;
}

/// Opens `socket` for `peer` without connecting. The source address is `source` if of the peer's
/// family, else chosen by the route.
template <class Socket>
asio::error_code open_towards(Socket& socket, const Endpoint& peer,
                              const std::optional<IpAddress>& source) {
  using Protocol = typename Socket::protocol_type;
  asio::error_code error;
  socket.open(to_asio<Protocol>(peer).protocol(), error);
  if (error || !source || source->is_v4() != peer.address.is_v4()) return error;
  // The kernel chooses the port at connect time, so that one port serves many peers.
  const int on = 1;
  ::setsockopt(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  socket.bind(to_asio<Protocol>(Endpoint{*source, 0}), error);
  return error;
}

}  // namespace pando::manager
