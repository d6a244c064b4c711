#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "tests/unit/manager/loopback.h"

namespace pando::manager::testing {

/// A listening socket on 127.0.0.1 and the connections it has accepted; all calls block.
class TcpPeer {
 public:
  TcpPeer() { EXPECT_EQ(::listen(listening_.fd.get(), 100), 0); }
  [[nodiscard]] const Endpoint& endpoint() const { return listening_.endpoint; }

  Fd accept() { return Fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

  static void send(const Fd& connection, const Bytes& octets) {
    const auto want = static_cast<ssize_t>(octets.size());
    EXPECT_EQ(::send(connection.get(), octets.data(), octets.size(), MSG_NOSIGNAL), want);
  }
  static Bytes receive(const Fd& connection, std::size_t octets) {
    Bytes bytes(octets);
    const auto want = static_cast<ssize_t>(octets);
    EXPECT_EQ(::recv(connection.get(), bytes.data(), octets, MSG_WAITALL), want);
    return bytes;
  }
  /// Waits until the other side has closed.
  static bool closed(const Fd& connection) {
    std::uint8_t octet = 0;
    return ::recv(connection.get(), &octet, 1, 0) <= 0;
  }

 private:
  LoopbackSocket listening_{SOCK_STREAM};
};

}  // namespace pando::manager::testing
