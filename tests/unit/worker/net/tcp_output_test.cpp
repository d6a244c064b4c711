#include "worker/net/tcp_output.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "base/fd.h"

namespace pando::worker {
namespace tcp_output_test {

class TcpOutputTest : public ::testing::Test {
 protected:
  TcpOutputTest() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    ours_ = Fd(pair[0]);
    theirs_ = Fd(pair[1]);
  }
  Bytes receive() {
    Bytes all;
    std::array<std::uint8_t, 4096> space{};
    for (;;) {
      const ssize_t got = ::recv(theirs_.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got <= 0) return all;
      all.insert(all.end(), space.data(), space.data() + got);
    }
  }

  Fd ours_, theirs_;
  TcpOutput output_;
};

TEST_F(TcpOutputTest, MessagesGoOutInOrderBehindTheirLengths) {
  output_.push(Bytes{1, 2, 3});
  output_.push(Bytes{4});
  EXPECT_EQ(output_.octets(), 5U + 3U);
  const auto sent = output_.send(ours_.get());
  EXPECT_EQ(sent.state, TcpOutput::State::kEmpty);
  EXPECT_TRUE(sent.progress);
  EXPECT_TRUE(output_.empty());
  EXPECT_EQ(output_.octets(), 0U);
  EXPECT_EQ(receive(), (Bytes{0, 3, 1, 2, 3, 0, 1, 4}));
}

TEST_F(TcpOutputTest, NothingToSendIsNoProgress) {
  EXPECT_FALSE(output_.send(ours_.get()).progress);
  EXPECT_EQ(output_.send(ours_.get()).state, TcpOutput::State::kEmpty);
}

TEST_F(TcpOutputTest, AFullSocketBlocksAndTheRestFollowsUnbroken) {
  Bytes expected;
  for (int i = 0; i < 40; ++i) {
    const Bytes message(60'000, static_cast<std::uint8_t>(i));
    output_.push(message);
    append_be16(expected, 60'000);
    append(expected, message);
  }
  auto sent = output_.send(ours_.get());
  EXPECT_EQ(sent.state, TcpOutput::State::kBlocked);
  EXPECT_TRUE(sent.progress);
  EXPECT_FALSE(output_.empty());
  EXPECT_FALSE(output_.send(ours_.get()).progress) << "the client has read nothing";
  Bytes received;
  for (int turn = 0; turn < 1000 && sent.state == TcpOutput::State::kBlocked; ++turn) {
    append(received, receive());
    sent = output_.send(ours_.get());
  }
  append(received, receive());
  EXPECT_EQ(received, expected);
  EXPECT_EQ(output_.octets(), 0U);
}

TEST_F(TcpOutputTest, MoreMessagesThanOneCallTakesGoOutInOrder) {
  Bytes expected;
  for (std::uint8_t i = 0; i < 100; ++i) {
    output_.push(Bytes(1 + i % 3, i));
    append_be16(expected, 1 + i % 3);
    append(expected, Bytes(1 + i % 3, i));
  }
  EXPECT_EQ(output_.octets(), expected.size());
  EXPECT_EQ(output_.send(ours_.get()).state, TcpOutput::State::kEmpty);
  EXPECT_EQ(receive(), expected);
  EXPECT_EQ(output_.octets(), 0U);
}

TEST_F(TcpOutputTest, MemoryIsGivenBackOnceAllIsSent) {
  output_.push(Bytes(1000, 1));
  output_.release();
  EXPECT_EQ(output_.octets(), 1002U) << "not sent yet";
  ASSERT_EQ(output_.send(ours_.get()).state, TcpOutput::State::kEmpty);
  EXPECT_GT(output_.capacity(), 0U) << "for the next message";
  output_.release();
  EXPECT_EQ(output_.capacity(), 0U);
  EXPECT_EQ(receive().size(), 1002U);
}

/// The queue's size bounds what a connection takes on, so sent octets must not pile up in it.
TEST_F(TcpOutputTest, ASlowReaderCostsNoMoreThanTheBound) {
  std::size_t pushed = 0;
  std::size_t read = 0;
  std::array<std::uint8_t, 20'000> space{};
  for (int turn = 0; turn < 1000; ++turn) {
    if (output_.octets() < 100'000) {
      output_.push(Bytes(10'000, 1));
      pushed += 10'002;
    }
    const std::size_t before = output_.octets();
    output_.send(ours_.get());
    EXPECT_LE(output_.octets(), before);
    EXPECT_LE(output_.capacity(), 256U << 10);
    const ssize_t got = ::recv(theirs_.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (got > 0) read += static_cast<std::size_t>(got);
  }
  while (!output_.empty()) {
    ASSERT_NE(output_.send(ours_.get()).state, TcpOutput::State::kFailed);
    read += receive().size();
  }
  EXPECT_EQ(read + receive().size(), pushed);
}

TEST_F(TcpOutputTest, AClientThatIsGoneIsAFailure) {
  theirs_ = Fd();
  output_.push(Bytes{1});
  EXPECT_EQ(output_.send(ours_.get()).state, TcpOutput::State::kFailed);
}

}  // namespace tcp_output_test
}  // namespace pando::worker
