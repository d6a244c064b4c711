#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/fd.h"

namespace pando::worker {

/// A test of a writer whose stream somebody has lent it. The test has the stream's other end.
class LentStreamTest : public ::testing::Test {
 protected:
  /// A new stream for the writer; `reader_` is its other end.
  Fd stream() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    reader_ = Fd(pair[1]);
    return Fd(pair[0]);
  }
  /// Takes what has come.
  void read() {
    std::array<std::uint8_t, 65536> space{};
    for (;;) {
      const ssize_t got = ::recv(reader_.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      append(received_, ByteView(space).first(static_cast<std::size_t>(got)));
    }
  }
  [[nodiscard]] bool has_stream_ended() const {
    std::uint8_t octet = 0;
    return ::recv(reader_.get(), &octet, 1, MSG_DONTWAIT) == 0;
  }
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(5));
      read();
    }
    return true;
  }
  void count(std::uint64_t sent, std::uint64_t dropped) {
    sent_ += sent;
    dropped_ += dropped;
  }

  asio::io_context io_;
  std::uint64_t sent_ = 0;     ///< of frames or lines
  std::uint64_t dropped_ = 0;  ///< of frames or lines
  Fd reader_;
  Bytes received_;
};

}  // namespace pando::worker
