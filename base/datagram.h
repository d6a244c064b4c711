#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"

namespace pando {

/// Room for the control message that set_source() writes.
struct SourceControl {
  alignas(cmsghdr) std::array<std::uint8_t, CMSG_SPACE(sizeof(in6_pktinfo))> octets;
};

/// The destination of a received datagram, if the kernel reported it (IP_PKTINFO, RFC 3542 §4).
std::optional<IpAddress> find_destination(const msghdr& header) noexcept;

/// Makes `header` leave from `source`: the address that was asked must be the one that answers.
/// `control` must live until the datagram is sent.
void set_source(msghdr& header, SourceControl& control, const IpAddress& source) noexcept;

/// Sends one datagram from `source` (given for wildcard sockets) without blocking. False when the
/// kernel did not take it.
bool send_datagram(int socket, ByteView message, const Endpoint& to,
                   const std::optional<IpAddress>& source) noexcept;

}  // namespace pando
