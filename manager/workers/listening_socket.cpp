#include "manager/workers/listening_socket.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace pando::manager {

namespace {

/// A worker that is being replaced leaves its queue for some 20 ms: room for that at a million
/// small queries a second. The kernel clips it to net.core.rmem_max unless CAP_NET_ADMIN is there.
constexpr int kReceiveBuffer = 8 << 20;
constexpr int kBacklog = 4096;

bool is_datagram(ipc::Transport transport) { return transport == ipc::Transport::kUdp; }

Status set_option(int socket, int level, int option, int value, const char* name) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0)
    return fail_errno(fmt::format("setsockopt({})", name));
  return {};
}

int option_value(int socket, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  ::getsockopt(socket, SOL_SOCKET, option, &value, &length);
  return value;
}

Status set_common_options(int socket, bool v4) {
  if (auto s = set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT"); !s) return s;
  if (v4) return set_option(socket, IPPROTO_IP, IP_FREEBIND, 1, "IP_FREEBIND");
  if (auto s = set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"); !s) return s;
  return set_option(socket, IPPROTO_IPV6, IPV6_FREEBIND, 1, "IPV6_FREEBIND");
}

/// RFC 9715 §3.1: no fragments asked for and none refused on the strength of a forged path MTU.
Status ignore_path_mtu(int socket, bool v4) {
  if (v4)
    return set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT, "IP_MTU_DISCOVER");
  return set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_OMIT,
                    "IPV6_MTU_DISCOVER");
}

Status set_udp_options(int socket, const IpAddress& address) {
  const bool v4 = address.is_v4();
  if (::setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) != 0)
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  if (auto s = ignore_path_mtu(socket, v4); !s) return s;
  if (!is_wildcard(address)) return {};
  if (v4) return set_option(socket, IPPROTO_IP, IP_PKTINFO, 1, "IP_PKTINFO");
  return set_option(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO");
}

Status set_tcp_options(int socket) {
  // Connections of an earlier run in TIME_WAIT must not keep the address.
  if (auto s = set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !s) return s;
  // Accepted sockets inherit it: each response leaves immediately (RFC 7766 §8 wants whole
  // messages).
  return set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
}

}  // namespace

bool is_wildcard(const IpAddress& address) noexcept {
  const auto begin = address.octets.begin() + (address.is_v4() ? 12 : 0);
  return std::all_of(begin, address.octets.end(), [](std::uint8_t byte) { return byte == 0; });
}

Result<Fd> open_listening_socket(const Endpoint& local, ipc::Transport transport) {
  const bool datagram = is_datagram(transport);
  const int type = (datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
  sockaddr_storage address;
  const socklen_t length = local.to_sockaddr(address);
  Fd socket(::socket(address.ss_family, type, 0));
  if (!socket) return fail_errno("socket");
  if (auto s = set_common_options(socket.get(), local.address.is_v4()); !s) return pass(s);
  auto s = datagram ? set_udp_options(socket.get(), local.address) : set_tcp_options(socket.get());
  if (!s) return pass(s);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
    return fail_errno(fmt::format("bind {} {}", datagram ? "UDP" : "TCP", to_text(local)));
  if (!datagram && ::listen(socket.get(), kBacklog) != 0)
    return fail_errno(fmt::format("listen {}", to_text(local)));
  return socket;
}

Result<ipc::SocketDescription> describe_socket(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return fail_errno("getsockname");
  const int protocol = option_value(socket, SO_PROTOCOL);
  if ((address.ss_family != AF_INET && address.ss_family != AF_INET6) ||
      (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP))
    return fail(Errc::kInvalid, "not a UDP or TCP socket");
  ipc::SocketDescription description;
  description.local = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  if (protocol == IPPROTO_TCP) description.transport = ipc::Transport::kTcp;
  return description;
}

Status prepare_passed_socket(int socket, const ipc::SocketDescription& description) {
  const IpAddress& address = description.local.address;
  int v6_only = 0;
  socklen_t length = sizeof v6_only;
  if (!address.is_v4() && is_wildcard(address) &&
      ::getsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, &length) == 0 && v6_only == 0)
    return fail(Errc::kInvalid, "it takes IPv4, too: BindIPv6Only=ipv6-only is missing");
  const int flags = ::fcntl(socket, F_GETFL);
  if (flags < 0 || ::fcntl(socket, F_SETFL, flags | O_NONBLOCK) != 0) return fail_errno("fcntl");
  // Only for the checks of listening sockets: no other socket can be bound beside another user's.
  if (auto s = set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT"); !s) return s;
  auto set = is_datagram(description.transport) ? set_udp_options(socket, address)
                                                : set_tcp_options(socket);
  return set ? check_listening_socket(socket, description) : set;
}

Status check_listening_socket(int socket, const ipc::SocketDescription& description) {
  const bool datagram = is_datagram(description.transport);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return fail_errno("getsockname");
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
    return fail(Errc::kInvalid, "not an Internet socket");
  if (Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address)) != description.local)
    return fail(Errc::kInvalid, "socket is not bound to {}", to_text(description.local));
  if (option_value(socket, SO_TYPE) != (datagram ? SOCK_DGRAM : SOCK_STREAM) ||
      option_value(socket, SO_PROTOCOL) != (datagram ? IPPROTO_UDP : IPPROTO_TCP))
    return fail(Errc::kInvalid, "socket is of another protocol");
  if (option_value(socket, SO_REUSEPORT) != 1)
    return fail(Errc::kInvalid, "socket without SO_REUSEPORT");
  if (!datagram && option_value(socket, SO_ACCEPTCONN) != 1)
    return fail(Errc::kInvalid, "socket does not listen");
  length = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0)
    return fail(Errc::kInvalid, "socket is connected");
  return {};
}

namespace {

/// A datagram to a socket of our own at the same address: only the attempt counts.
bool is_shut_for_sending(int socket, const Endpoint& local) {
  Endpoint sink_address = local;
  sink_address.port = 0;
  if (is_wildcard(local.address))
    sink_address.address = *IpAddress::from_text(local.address.is_v4() ? "127.0.0.1" : "::1");
  sockaddr_storage address{};
  socklen_t length = sink_address.to_sockaddr(address);
  const Fd sink(::socket(address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (!sink || ::bind(sink.get(), at, length) != 0 || ::getsockname(sink.get(), at, &length) != 0)
    return false;
  return ::sendto(socket, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, at, length) < 0 && errno == EPIPE;
}

bool has_filter(int socket) {
  socklen_t instructions = 0;
  if (::getsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, nullptr, &instructions) != 0)
    return errno == EACCES;  // an extended program, which cannot be read back
  return instructions > 0;
}

}  // namespace

bool is_impaired(int socket, const ipc::SocketDescription& description) noexcept {
  if (!check_listening_socket(socket, description) || option_value(socket, SO_LOCK_FILTER) == 1 ||
      has_filter(socket))
    return true;
  return is_datagram(description.transport) && is_shut_for_sending(socket, description.local);
}

std::uint64_t cookie_of(int socket) noexcept {
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) return 0;
  return cookie;
}

bool is_same_socket(int one, int other) noexcept {
  const std::uint64_t cookie = cookie_of(one);
  return cookie != 0 && cookie == cookie_of(other);
}

void stop_listening(int socket) noexcept { ::shutdown(socket, SHUT_RDWR); }

Status attach_steering(int socket, std::size_t members,
                       const std::vector<std::uint32_t>& excluded) {
  // A = random mod (members left); then each excluded position at or below A moves it up by one.
  std::vector<sock_filter> program;
  const auto left = static_cast<std::uint32_t>(members - excluded.size());
  program.push_back(
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM)));
  program.push_back(BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, left));
  for (const auto position : excluded) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, position, 0, 1));
    program.push_back(BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_A, 0));
  const sock_fprog attached{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attached, sizeof attached) != 0)
    return fail_errno("setsockopt(SO_ATTACH_REUSEPORT_CBPF)");
  return {};
}

void detach_steering(int socket) noexcept {
  const int unused = 0;
  ::setsockopt(socket, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &unused, sizeof unused);
}

bool withdraw_datagrams(int socket) noexcept {
  // A socket that is bound to an absent interface matches no packet. Binding also detaches a socket
  // from its group (udp_lib_rehash in net/ipv4/udp.c). The kernel accepts an absent interface.
  const int no_interface = std::numeric_limits<int>::max();
  return ::setsockopt(socket, SOL_SOCKET, SO_BINDTOIFINDEX, &no_interface, sizeof no_interface) ==
         0;
}

bool is_readable(int socket) noexcept {
  pollfd ready{socket, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0;
}

}  // namespace pando::manager
