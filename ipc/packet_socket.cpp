#include "ipc/packet_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/secret.h"
#include "base/unix_socket.h"

namespace pando::ipc {

namespace {

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
/// Room for several packets of the largest size; the kernel clips it to net.core.wmem_max.
constexpr int kSendBuffer = 4 << 20;
constexpr int kBacklog = 128;

Result<Fd> new_socket() {
  Fd socket(::socket(AF_UNIX, kSocketType, 0));
  if (!socket) return fail_errno("socket(AF_UNIX)");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  return socket;
}

union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kMaxPacketDescriptors)];
};

void attach_descriptors(msghdr& message, ControlBuffer& control, const std::vector<int>& fds) {
  const std::size_t bytes = sizeof(int) * fds.size();
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), fds.data(), bytes);
}

void take_descriptors(msghdr& message, std::vector<Fd>& out) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      out.emplace_back(fd);
    }
  }
}

bool would_block() noexcept { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<SendOutcome> send_packet(int socket, ByteView data, const std::vector<int>& descriptors) {
  if (data.size() > kMaxPacketBytes || descriptors.size() > kMaxPacketDescriptors)
    return fail(Errc::kFull, "packet of {} bytes and {} descriptors", data.size(),
                descriptors.size());
  iovec part{const_cast<std::uint8_t*>(data.data()), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  if (!descriptors.empty()) attach_descriptors(message, control, descriptors);
  if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return SendOutcome::kSent;
  if (would_block()) return SendOutcome::kWouldBlock;
  if (errno == EPIPE || errno == ECONNRESET) return SendOutcome::kClosed;
  return fail_errno("sendmsg");
}

Result<bool> receive_packet(int socket, Packet& packet) {
  // Packets are received here and copied: most are small, so clearing 132 KiB for each would cost
  // more.
  thread_local std::array<std::uint8_t, kMaxPacketBytes> scratch;
  packet.descriptors.clear();
  packet.data.clear();
  iovec part{scratch.data(), scratch.size()};
  msghdr message{};
  ControlBuffer control{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  constexpr int kFlags = MSG_CMSG_CLOEXEC | MSG_DONTWAIT;
  ssize_t received = ::recvmsg(socket, &message, kFlags);
  // If the peer died with unread packets from this side, the kernel reports that once, before the
  // peer's own packets. These must be read all the same, because they may carry the only
  // descriptors of sockets in which queries wait.
  if (received < 0 && errno == ECONNRESET) received = ::recvmsg(socket, &message, kFlags);
  if (received < 0) {
    if (would_block()) return false;
    if (errno == ECONNRESET) return fail(Errc::kNotFound, "the other side has closed");
    return fail_errno("recvmsg");
  }
  take_descriptors(message, packet.descriptors);
  // No message is empty, so zero bytes mean the end of the connection.
  if (received == 0) return fail(Errc::kNotFound, "the other side has closed");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    packet.descriptors.clear();
    return fail(Errc::kTruncated, "packet longer than {} bytes, or too many descriptors",
                kMaxPacketBytes);
  }
  packet.data.assign(scratch.data(), scratch.data() + received);
  wipe({scratch.data(), static_cast<std::size_t>(received)});  // it may be a packet of keys
  return true;
}

Result<Fd> listen_packets(const std::string& path, std::optional<std::uint32_t> group) {
  auto address = unix_address(path);
  if (!address) return pass(address);
  auto socket = new_socket();
  if (!socket) return socket;
  ::unlink(path.c_str());
  if (::bind(socket->get(), reinterpret_cast<sockaddr*>(&*address), sizeof *address) != 0)
    return fail_errno(fmt::format("bind {}", path));
  const bool given = group && ::lchown(path.c_str(), static_cast<uid_t>(-1), *group) == 0;
  const mode_t mode = given ? 0660 : 0666;
  if (::chmod(path.c_str(), mode) != 0) return fail_errno(fmt::format("chmod {}", path));
  if (::listen(socket->get(), kBacklog) != 0) return fail_errno("listen");
  return socket;
}

bool is_open_to_all(const std::string& path) noexcept {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0;
}

Result<Fd> connect_packets(const std::string& path) {
  auto address = unix_address(path);
  if (!address) return pass(address);
  auto socket = new_socket();
  if (!socket) return socket;
  if (::connect(socket->get(), reinterpret_cast<sockaddr*>(&*address), sizeof *address) == 0)
    return socket;
  if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN)
    return fail(Errc::kNotFound, "nobody listens at {}", path);
  return fail_errno(fmt::format("connect {}", path));
}

Result<Fd> accept_packets(int listening) {
  Fd socket(::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    if (would_block() || errno == ECONNABORTED) return Fd();
    return fail_errno("accept4");
  }
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  return socket;
}

Result<std::pair<Fd, Fd>> packet_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, kSocketType, 0, fds) != 0) return fail_errno("socketpair");
  for (const int fd : fds)
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  return std::pair<Fd, Fd>(Fd(fds[0]), Fd(fds[1]));
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return fail_errno("getsockopt(SO_PEERCRED)");
  return PeerCredentials{credentials.pid, credentials.uid};
}

Result<Fd> peer_process(int socket) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, newer than Debian 12's headers
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &length) == 0) return Fd(pidfd);
  if (errno != ENOPROTOOPT) return fail_errno("getsockopt(SO_PEERPIDFD)");
  auto credentials = peer_credentials(socket);
  if (!credentials) return pass(credentials);
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, credentials->pid, 0)));
  if (!process) return fail_errno("pidfd_open");
  return process;
}

}  // namespace pando::ipc
