#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "base/address.h"
#include "base/bytes.h"
#include "base/fd.h"

namespace pando::manager::testing {

/// A listening socket on 127.0.0.1 and the connections it has accepted; all calls block.
class TcpPeer {
 public:
  TcpPeer() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 100), 0);
    socklen_t size = sizeof address;
    ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    endpoint_ = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

  Fd accept() { return Fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

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
  Fd listening_;
  Endpoint endpoint_;
};

}  // namespace pando::manager::testing
