#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/bytes.h"

namespace pando::worker {

/// What a load balancer puts before the first octet of a connection or of a datagram: PROXY
/// protocol, version 2, as HAProxy's specification has it (proxy-protocol.txt §2.2). It names the
/// client, so it is believed of configured addresses only.
struct ProxyHeader {
  enum class Kind : std::uint8_t {
    kNone,        ///< the octets begin with something else
    kIncomplete,  ///< more octets could make it a header
    kMalformed,   ///< the signature, and then what is no header of version 2
    kLocal,       ///< the balancer speaks for itself: addresses are those of the connection
    kProxied,     ///< `source` asks, and asked `destination`
  };
  Kind kind = Kind::kNone;
  std::size_t size = 0;  ///< octets of the header; for kLocal and kProxied
  Endpoint source;
  Endpoint destination;
};

/// Reads a header at the front of `octets`. Type-length-value fields behind the addresses are
/// skipped, and so is the client's protocol: it may differ from the one between balancer and
/// server.
[[nodiscard]] ProxyHeader read_proxy_header(ByteView octets) noexcept;

}  // namespace pando::worker
