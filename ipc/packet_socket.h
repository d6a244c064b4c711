#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "ipc/worker_messages.h"

/// SOCK_SEQPACKET over AF_UNIX with descriptors (SCM_RIGHTS), by native calls: Asio has no way to
/// pass descriptors. All sockets are non-blocking and O_CLOEXEC.
namespace pando::ipc {

/// One packet as received; `descriptors` are O_CLOEXEC.
struct Packet {
  Bytes data;
  std::vector<Fd> descriptors;
};

enum class SendOutcome : std::uint8_t {
  kSent,
  kWouldBlock,
  /// the peer will not read the packet; packets that it sent before it closed are still to be read
  kClosed,
};

/// Sends one packet whole or not at all. kFull: the packet or the list of descriptors is too long.
Result<SendOutcome> send_packet(int socket, ByteView data, const std::vector<int>& descriptors);

/// Receives one packet into `packet`. False: no packet there yet. kNotFound: the other side has
/// closed. kTruncated: data or descriptors did not fit (all received descriptors are closed).
Result<bool> receive_packet(int socket, Packet& packet);

/// A listening socket at `path`, which replaces a socket left by a dead process. This process's
/// user and the members of `group` may connect. Mode 0666 without a group, and where this process
/// may not give files to the group (it is no member): peer_credentials() alone decides then.
Result<Fd> listen_packets(const std::string& path, std::optional<std::uint32_t> group);
/// Whether everybody may connect to the socket at `path`.
[[nodiscard]] bool is_open_to_all(const std::string& path) noexcept;
/// Connects without blocking; kNotFound when no process listens.
Result<Fd> connect_packets(const std::string& path);
/// Accepts one connection; an empty Fd when none waits.
Result<Fd> accept_packets(int listening);
/// A connected pair.
Result<std::pair<Fd, Fd>> packet_pair();

struct PeerCredentials {
  int pid = 0;
  std::uint32_t uid = 0;
};
Result<PeerCredentials> peer_credentials(int socket);
/// A pidfd of the process that connected. From Linux 6.5 on, it refers to exactly that process,
/// dead or alive. On older kernels it refers to the process that has the pid now, and a process
/// that has ended is an error.
Result<Fd> peer_process(int socket);

}  // namespace pando::ipc
