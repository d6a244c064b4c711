#pragma once

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
  kClosed,  ///< nobody will read it; what the other side sent before it closed is still to be read
};

/// Sends one packet whole or not at all. kFull: the packet or the list of descriptors is too long.
Result<SendOutcome> send_packet(int socket, ByteView data, const std::vector<int>& descriptors);

/// Receives one packet into `packet`. False: nothing there yet. kNotFound: the other side has
/// closed. kTruncated: data or descriptors did not fit (all received descriptors are closed).
Result<bool> receive_packet(int socket, Packet& packet);

/// A listening socket at `path`, replacing a socket left by a dead process; mode 0666: who may
/// speak is decided by peer_credentials(), the directory by its mode.
Result<Fd> listen_packets(const std::string& path);
/// Connects without blocking; kNotFound when nobody listens.
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
/// A pidfd of the process that connected. From Linux 6.5 on it is that very process, dead or alive;
/// before, the one that has its pid now. An error when it has gone.
Result<Fd> peer_process(int socket);

}  // namespace pando::ipc
