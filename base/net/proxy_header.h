#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/bytes.h"

namespace pando {

/// Header that a load balancer puts before the first octet of a connection or of a datagram.
/// Format: PROXY protocol, version 2, of HAProxy's specification (proxy-protocol.txt §2.2). The
/// header names the client, so it is accepted from configured addresses only.
struct ProxyHeader {
  enum class Kind : std::uint8_t {
    kNone,        ///< the first octets are not the signature
    kIncomplete,  ///< the octets so far may begin a header
    kMalformed,   ///< the signature without a valid header of version 2 after it
    kLocal,       ///< the balancer speaks for itself: the connection's addresses apply
    kProxied,     ///< request from `source` to `destination`
  };
  Kind kind = Kind::kNone;
  std::size_t size = 0;  ///< octets of the header; set for kLocal and kProxied
  Endpoint source;
  Endpoint destination;
};

/// Reads a header at the front of `octets`. Type-length-value fields after the addresses are
/// skipped. The client's protocol is ignored: it may differ from the protocol between balancer and
/// server.
[[nodiscard]] ProxyHeader read_proxy_header(ByteView octets) noexcept;

}  // namespace pando
