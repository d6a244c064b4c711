#include "manager/net/message_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <thread>

#include "tests/unit/manager/tcp_peer.h"

namespace pando::manager {
namespace message_stream_test {

using ::testing::HasSubstr;
using testing::TcpPeer;

Bytes framed(const Bytes& message) {
  Bytes octets;
  append_be16(octets, static_cast<std::uint16_t>(message.size()));
  append(octets, message);
  return octets;
}

/// One stream, whose steps are run to their end one by one.
class Stream : public ::testing::Test {
 protected:
  template <class Value>
  Value run(asio::awaitable<Value> step) {
    std::optional<Value> result;
    asio::co_spawn(io_, std::move(step), [&](const std::exception_ptr& thrown, Value value) {
      EXPECT_FALSE(thrown);
      result = std::move(value);
    });
    io_.restart();
    while (!result) io_.run_one();
    return std::move(*result);
  }
  void connect() {
    ASSERT_TRUE(run(stream_.connect()));
    connection_ = peer_.accept();
  }
  Bytes receive() {
    auto message = run(stream_.receive());
    EXPECT_TRUE(message) << message.error().text;
    return message ? Bytes(message->begin(), message->end()) : Bytes();
  }

  TcpPeer peer_;
  asio::io_context io_{1};
  MessageStream stream_{io_.get_executor(), peer_.endpoint(), std::nullopt,
                        std::chrono::seconds(60)};
  Fd connection_;
};

TEST_F(Stream, SendsLengthAndMessage) {
  connect();
  ASSERT_TRUE(run(stream_.send({1, 2, 3})));
  EXPECT_EQ(TcpPeer::receive(connection_, 5), (Bytes{0, 3, 1, 2, 3}));
}

TEST_F(Stream, GivesMessagesOneByOneHoweverTheyCome) {
  connect();
  const Bytes shorter{1, 2}, empty, longest(65535, 7);
  Bytes octets;
  for (const Bytes* message : {&shorter, &empty, &longest, &shorter})
    append(octets, framed(*message));
  std::thread sender([&] {
    TcpPeer::send(connection_, Bytes(octets.begin(), octets.begin() + 1));
    TcpPeer::send(connection_, Bytes(octets.begin() + 1, octets.begin() + 30'000));
    TcpPeer::send(connection_, Bytes(octets.begin() + 30'000, octets.end()));
  });
  EXPECT_EQ(receive(), shorter);
  EXPECT_EQ(receive(), empty);
  EXPECT_EQ(receive(), longest);
  EXPECT_EQ(receive(), shorter);
  sender.join();
  EXPECT_EQ(stream_.received(), octets.size());
  EXPECT_TRUE(stream_.at_rest());
}

TEST_F(Stream, GoesOnAfterItHasGivenBackMemory) {
  connect();
  const Bytes longest(65535, 7), shorter{1, 2};
  std::thread sender([&] { TcpPeer::send(connection_, framed(longest)); });
  EXPECT_EQ(receive(), longest);
  sender.join();
  stream_.shrink();
  TcpPeer::send(connection_, framed(shorter));
  EXPECT_EQ(receive(), shorter);
}

TEST_F(Stream, IsNotAtRestBeforeItIsConnected) {
  EXPECT_FALSE(stream_.at_rest());
  connect();
  EXPECT_TRUE(stream_.at_rest());
}

TEST_F(Stream, IsNotAtRestWithOctetsBehindAMessage) {
  connect();
  Bytes octets = framed({1, 2});
  octets.push_back(0);
  TcpPeer::send(connection_, octets);
  EXPECT_EQ(receive(), (Bytes{1, 2}));
  EXPECT_FALSE(stream_.at_rest()) << "whether they have been read or not";
}

TEST_F(Stream, IsNotAtRestWhenThePeerHasClosed) {
  connect();
  TcpPeer::send(connection_, framed({1, 2}));
  EXPECT_EQ(receive(), (Bytes{1, 2}));
  connection_ = {};
  while (stream_.at_rest()) std::this_thread::yield();  // loopback takes a moment
  EXPECT_FALSE(run(stream_.receive()));
  EXPECT_FALSE(stream_.at_rest());
}

TEST_F(Stream, AMessageThatIsCutIsAnError) {
  connect();
  TcpPeer::send(connection_, {0, 5, 1, 2});
  connection_ = {};
  const auto message = run(stream_.receive());
  ASSERT_FALSE(message);
  EXPECT_THAT(message.error().text, HasSubstr("receive: "));
  EXPECT_FALSE(stream_.at_rest());
}

TEST_F(Stream, TheTimeoutIsForEachStep) {
  connect();
  TcpPeer::send(connection_, framed({1}));
  EXPECT_EQ(receive(), Bytes{1});
  stream_.set_timeout(std::chrono::milliseconds(20));  // shorter than what the timer was set to
  const auto message = run(stream_.receive());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().text, "receive: no progress in 20 ms");
  EXPECT_FALSE(stream_.at_rest());
}

TEST_F(Stream, TimeBetweenStepsDoesNotCount) {
  stream_.set_timeout(std::chrono::seconds(1));
  connect();
  io_.restart();
  io_.run_for(std::chrono::milliseconds(1200));  // the timer runs out
  stream_.set_timeout(std::chrono::seconds(60));
  TcpPeer::send(connection_, framed({1}));
  EXPECT_EQ(receive(), Bytes{1});
}

}  // namespace message_stream_test
}  // namespace pando::manager
