#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/fd.h"

namespace pando::manager::testing {

/// A socket on 127.0.0.1, at a port that was free.
struct LoopbackSocket {
  /// `type`: SOCK_STREAM or SOCK_DGRAM, with flags.
  explicit LoopbackSocket(int type) : fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  }

  Fd fd;
  Endpoint endpoint;
};

}  // namespace pando::manager::testing
