#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"

namespace pando::manager::testing {

/// A collector's listening socket, and the one connection that it has accepted.
class FrameCollector {
 public:
  FrameCollector() {
    char pattern[] = "/tmp/pando-collector-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    path = folder_ + "/socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    listening_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
  }
  ~FrameCollector() { std::filesystem::remove_all(folder_); }
  FrameCollector(const FrameCollector&) = delete;
  FrameCollector& operator=(const FrameCollector&) = delete;

  void accept() { connection = Fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  [[nodiscard]] Bytes received() const {
    std::array<std::uint8_t, 1024> space{};
    const ssize_t got = ::recv(connection.get(), space.data(), space.size(), MSG_DONTWAIT);
    return {space.begin(), space.begin() + std::max<ssize_t>(got, 0)};
  }
  void send(ByteView octets) const {
    EXPECT_EQ(::send(connection.get(), octets.data(), octets.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(octets.size()));
  }

  std::string path;
  Fd connection;

 private:
  std::string folder_;
  Fd listening_;
};

}  // namespace pando::manager::testing
