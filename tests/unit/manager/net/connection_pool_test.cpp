#include "manager/net/connection_pool.h"

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <thread>
#include <vector>

#include "tests/unit/manager/tcp_peer.h"

namespace pando::manager {
namespace connection_pool_test {

using testing::TcpPeer;
using Stream = std::unique_ptr<MessageStream>;

class Kept : public ::testing::Test {
 protected:
  Kept() { connections_.configure({peer_.endpoint(), other_.endpoint()}, std::nullopt); }

  /// Connected; what the peer has of it is the last of `accepted_`.
  Stream connected(TcpPeer& peer, const std::optional<IpAddress>& source = std::nullopt) {
    auto stream = std::make_unique<MessageStream>(io_.get_executor(), peer.endpoint(), source,
                                                  std::chrono::seconds(60));
    std::optional<Status> done;
    asio::co_spawn(io_, stream->connect(),
                   [&](const std::exception_ptr&, Status status) { done = std::move(status); });
    io_.restart();
    while (!done) io_.run_one();
    EXPECT_TRUE(*done);
    accepted_.push_back(peer.accept());
    return stream;
  }
  Stream take(const TcpPeer& peer) { return connections_.take(peer.endpoint(), std::nullopt); }

  static ConnectionPool::Options options() {
    ConnectionPool::Options options;
    options.idle = std::chrono::hours(1);
    options.per_primary = 2;
    options.most = 3;
    return options;
  }

  TcpPeer peer_, other_, third_;
  asio::io_context io_{1};
  std::vector<Fd> accepted_;
  ConnectionPool connections_{io_, options()};
};

TEST_F(Kept, GivesTheOneUsedLastToItsPrimaryOnly) {
  Stream first = connected(peer_), second = connected(peer_);
  const MessageStream *one = first.get(), *two = second.get();
  connections_.put(std::move(first));
  connections_.put(std::move(second));
  EXPECT_EQ(take(other_), nullptr);
  EXPECT_EQ(take(peer_).get(), two);
  EXPECT_EQ(take(peer_).get(), one);
  EXPECT_EQ(take(peer_), nullptr);
}

TEST_F(Kept, ASourceIsPartOfWhatAConnectionIs) {
  const auto source = *IpAddress::from_text("127.0.0.1");
  connections_.configure({peer_.endpoint()}, source);
  connections_.put(connected(peer_));
  EXPECT_EQ(connections_.count(), 0U) << "leaves from where the route says";
  connections_.put(connected(peer_, source));
  EXPECT_EQ(connections_.take(peer_.endpoint(), std::nullopt), nullptr);
  EXPECT_NE(connections_.take(peer_.endpoint(), source), nullptr);
}

TEST_F(Kept, DoesNotGiveWhatThePeerHasClosedOrSentInto) {
  Stream closed = connected(peer_), sent_into = connected(peer_);
  MessageStream* streams[] = {closed.get(), sent_into.get()};
  connections_.put(std::move(closed));
  connections_.put(std::move(sent_into));
  ASSERT_EQ(connections_.count(), 2U);
  accepted_[0] = {};
  TcpPeer::send(accepted_[1], {0});
  for (MessageStream* stream : streams)
    while (stream->at_rest()) std::this_thread::yield();  // loopback takes a moment
  EXPECT_EQ(take(peer_), nullptr);
  EXPECT_EQ(connections_.count(), 0U);
  EXPECT_TRUE(TcpPeer::closed(accepted_[1]));
}

TEST_F(Kept, TakesNoConnectionThatIsNotAtRest) {
  Stream stream = connected(peer_);
  TcpPeer::send(accepted_[0], {0});
  while (stream->at_rest()) std::this_thread::yield();
  connections_.put(std::move(stream));
  connections_.put(nullptr);
  EXPECT_EQ(connections_.count(), 0U);
}

TEST_F(Kept, HasAFewOfEachPrimaryAndOfAll) {
  for (int i = 0; i < 3; ++i) connections_.put(connected(peer_));
  EXPECT_EQ(connections_.count(), 2U);
  EXPECT_TRUE(TcpPeer::closed(accepted_[2]));
  for (int i = 0; i < 2; ++i) connections_.put(connected(other_));
  EXPECT_EQ(connections_.count(), 3U);
  EXPECT_TRUE(TcpPeer::closed(accepted_[0])) << "the one that waited longest makes room";
}

TEST_F(Kept, ClosesThoseToWhomTheConfigurationHasNotAnyMore) {
  connections_.put(connected(peer_));
  connections_.put(connected(other_));
  Stream under_way = connected(peer_);
  connections_.configure({other_.endpoint()}, std::nullopt);
  EXPECT_TRUE(TcpPeer::closed(accepted_[0]));
  connections_.put(std::move(under_way));
  EXPECT_EQ(connections_.count(), 1U);
  EXPECT_EQ(take(peer_), nullptr);
  EXPECT_NE(take(other_), nullptr);
}

TEST_F(Kept, ClosesThemAfterAWhile) {
  ConnectionPool::Options soon = options();
  soon.idle = std::chrono::milliseconds(20);
  ConnectionPool kept(io_, soon);
  kept.configure({peer_.endpoint()}, std::nullopt);
  kept.put(connected(peer_));
  kept.put(connected(peer_));
  EXPECT_EQ(kept.count(), 2U);
  while (kept.count() > 0) io_.run_one();
  EXPECT_TRUE(TcpPeer::closed(accepted_[0]));
  EXPECT_TRUE(TcpPeer::closed(accepted_[1]));
  kept.put(connected(peer_));
  while (kept.count() > 0) io_.run_one();
}

}  // namespace connection_pool_test
}  // namespace pando::manager
