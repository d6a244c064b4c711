#pragma once

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"
#include "ipc/worker_messages.h"

/// System calls on single listening sockets; Listeners knows whose they are.
namespace pando::manager {

/// 0.0.0.0 or ::.
[[nodiscard]] bool is_wildcard(const IpAddress& address) noexcept;

/// A bound (for TCP and TLS: listening) non-blocking SO_REUSEPORT socket. The address may appear
/// later (IP_FREEBIND); a wildcard socket tells the destination of each datagram (IP_PKTINFO).
Result<Fd> open_listening_socket(const Endpoint& local, ipc::Transport transport);

/// Address and protocol of a UDP or TCP socket, as the kernel tells them: a description without
/// number and position. kInvalid for anything else.
Result<ipc::SocketDescription> describe_socket(int socket);

/// Gives a socket that a socket unit opened the options that open_listening_socket() gives. kInvalid
/// when it cannot serve: it does not listen, or takes IPv4 as well as IPv6.
Status prepare_passed_socket(int socket, const ipc::SocketDescription& description);

/// Asks the kernel whether `socket` is what its description says: kInvalid otherwise.
Status check_listening_socket(int socket, const ipc::SocketDescription& description);

/// Whether a worker has left the socket in a state that its successor could not serve it in:
/// connected, shut, not listening, or with a filter of packets. A system call filter cannot tell
/// listening sockets from a worker's others, so connect() and shutdown() cannot be kept from them.
[[nodiscard]] bool is_impaired(int socket, const ipc::SocketDescription& description) noexcept;

/// Whether both descriptors are of one socket in the kernel.
[[nodiscard]] bool is_same_socket(int one, int other) noexcept;

/// A number that no other socket of the kernel has (SO_COOKIE).
[[nodiscard]] std::uint64_t cookie_of(int socket) noexcept;

/// Ends the listening of a TCP socket of which others have duplicates. The socket leaves its
/// SO_REUSEPORT group, and waiting connections are reset, as by a close everywhere.
void stop_listening(int socket) noexcept;

/// Attaches to the SO_REUSEPORT group of `socket` a program that spreads what comes at random over
/// the `members` sockets whose positions are not in `excluded` (ascending).
Status attach_steering(int socket, std::size_t members, const std::vector<std::uint32_t>& excluded);
/// Gives the choice back to the kernel's hash.
void detach_steering(int socket) noexcept;
/// Takes a UDP socket out of its SO_REUSEPORT group and out of the kernel's lookups. Datagrams that
/// were on their way can still be read; nothing can be sent through the socket any more. Without
/// privilege this needs Linux 5.7; false where it is impossible.
[[nodiscard]] bool withdraw_datagrams(int socket) noexcept;

/// True when a datagram or a connection waits.
[[nodiscard]] bool is_readable(int socket) noexcept;

}  // namespace pando::manager
