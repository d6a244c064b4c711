#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace pando {

/// The address of a Unix socket in the file system. kInvalid: the path is too long for one.
inline Result<sockaddr_un> unix_address(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(Errc::kInvalid, "socket path '{}' is longer than {} bytes", path,
                sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// A non-blocking stream to the process that listens at `path`. It connects at once or not at all:
/// with a full queue the error is EAGAIN.
inline Result<Fd> connect_unix_stream(std::string_view path) {
  auto address = unix_address(path);
  if (!address) return pass(address);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return fail_errno("connect");
  return socket;
}

}  // namespace pando
