#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// Frames of one AF_XDP socket. A frame holds the largest datagram of an Ethernet, and the room
/// that the kernel keeps in front of a received one. The kernel drops what comes while 2,048
/// requests wait.
inline constexpr std::uint32_t kXdpFrameBytes = 2048;
inline constexpr std::uint32_t kXdpReceiveFrames = 2048;
inline constexpr std::uint32_t kXdpSendFrames = 2048;

/// An AF_XDP socket of a receive queue, for a worker.
struct QueueSocket {
  Fd socket;
  Fd memory;  ///< a sealed memfd; the socket holds its pages
  bool zero_copy = false;
};

/// Makes the socket and binds it. No process maps the memory until a worker does. The kernel uses
/// the frames in it once the worker has put them into the fill ring. `copies`: the kernel copies
/// frames, which a program after the driver needs. kExists: the queue has a
/// socket already, maybe of a process that has just ended.
Result<QueueSocket> open_queue_socket(int interface, std::uint32_t queue, bool copies);

/// Whether this is an AF_XDP socket, which a worker has handed back.
[[nodiscard]] bool is_xdp_socket(const Fd& socket);
/// Whether the driver writes into the socket's frames itself.
[[nodiscard]] bool is_zero_copy(const Fd& socket);

}  // namespace pando::manager
