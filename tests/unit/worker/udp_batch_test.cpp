#include "worker/udp_batch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "base/fd.h"

namespace pando::worker {
namespace {

struct Bound {
  Fd socket;
  Endpoint endpoint;
};

Bound bind_udp(const char* address, bool wildcard = false) {
  Bound bound;
  const Endpoint wanted{IpAddress::from_text(address).value(), 0};
  sockaddr_storage storage;
  socklen_t length = wanted.to_sockaddr(storage);
  bound.socket = Fd(::socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (wildcard && storage.ss_family == AF_INET)
    ::setsockopt(bound.socket.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  if (wildcard && storage.ss_family == AF_INET6) {
    ::setsockopt(bound.socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    ::setsockopt(bound.socket.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  }
  EXPECT_EQ(::bind(bound.socket.get(), reinterpret_cast<sockaddr*>(&storage), length), 0);
  length = sizeof storage;
  ::getsockname(bound.socket.get(), reinterpret_cast<sockaddr*>(&storage), &length);
  bound.endpoint = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&storage));
  return bound;
}

void send_to(const Fd& from, const Endpoint& to, ByteView octets) {
  sockaddr_storage storage;
  const socklen_t length = to.to_sockaddr(storage);
  ASSERT_EQ(::sendto(from.get(), octets.data(), octets.size(), 0,
                     reinterpret_cast<sockaddr*>(&storage), length),
            static_cast<ssize_t>(octets.size()));
}

/// What waits at `socket`, and who sent it.
std::pair<Bytes, Endpoint> receive_at(const Fd& socket) {
  Bytes octets(65536);
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  const ssize_t got = ::recvfrom(socket.get(), octets.data(), octets.size(), 0,
                                 reinterpret_cast<sockaddr*>(&storage), &length);
  octets.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return {octets, Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&storage))};
}

class UdpBatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<UdpBatch> batch_ = std::make_unique<UdpBatch>();
};

TEST_F(UdpBatchTest, ResponsesGoToThoseWhoAskedAlsoWhenSomeGetNone) {
  const Bound server = bind_udp("127.0.0.1");
  std::vector<Bound> clients;
  for (std::uint8_t i = 0; i < 10; ++i) {
    clients.push_back(bind_udp("127.0.0.1"));
    send_to(clients.back().socket, server.endpoint, Bytes{i});
  }
  ASSERT_EQ(batch_->receive(server.socket.get(), false), 10U);
  for (std::size_t i = 0; i < 10; i += 3) {
    EXPECT_EQ(batch_->sender(i), clients[i].endpoint);
    batch_->space(i)[0] = static_cast<std::uint8_t>(batch_->message(i)[0] + 100);
    batch_->respond(i, 1);
  }
  EXPECT_EQ(batch_->send(server.socket.get(), false), 0U);
  for (std::uint8_t i = 0; i < 10; ++i) {
    const auto [octets, from] = receive_at(clients[i].socket);
    EXPECT_EQ(octets, i % 3 == 0 ? Bytes{static_cast<std::uint8_t>(i + 100)} : Bytes{});
  }
}

TEST_F(UdpBatchTest, TakesTheLargestDatagram) {
  const Bound server = bind_udp("127.0.0.1");
  const Bound client = bind_udp("127.0.0.1");
  send_to(client.socket, server.endpoint, Bytes(65507, 9));
  ASSERT_EQ(batch_->receive(server.socket.get(), false), 1U);
  EXPECT_EQ(batch_->message(0).size(), 65507U);
}

TEST_F(UdpBatchTest, TakesNoMoreThanABatchAtOnce) {
  const Bound server = bind_udp("127.0.0.1");
  const Bound client = bind_udp("127.0.0.1");
  for (std::size_t i = 0; i < UdpBatch::kMessages + 5; ++i)
    send_to(client.socket, server.endpoint, Bytes{1});
  EXPECT_EQ(batch_->receive(server.socket.get(), false), UdpBatch::kMessages);
  EXPECT_EQ(batch_->receive(server.socket.get(), false), 5U);
  EXPECT_EQ(batch_->receive(server.socket.get(), false), 0U);
}

TEST_F(UdpBatchTest, AWildcardSocketAnswersFromTheAddressThatWasAsked) {
  const Bound server = bind_udp("0.0.0.0", true);
  const Bound client = bind_udp("127.0.0.1");
  const Endpoint asked{IpAddress::from_text("127.0.0.77").value(), server.endpoint.port};
  send_to(client.socket, asked, Bytes{1});
  ASSERT_EQ(batch_->receive(server.socket.get(), true), 1U);
  EXPECT_EQ(batch_->destination(0), asked.address);
  batch_->respond(0, 1);
  EXPECT_EQ(batch_->send(server.socket.get(), true), 0U);
  EXPECT_EQ(receive_at(client.socket).second, asked);
  // A later answer, to a forwarded request.
  EXPECT_TRUE(send_datagram(server.socket.get(), Bytes{2}, client.endpoint, asked.address));
  EXPECT_EQ(receive_at(client.socket).second, asked);
}

TEST_F(UdpBatchTest, AWildcardSocketOfIpv6DoesSoToo) {
  const Bound server = bind_udp("::", true);
  const Bound client = bind_udp("::1");
  const Endpoint asked{IpAddress::from_text("::1").value(), server.endpoint.port};
  send_to(client.socket, asked, Bytes{1});
  ASSERT_EQ(batch_->receive(server.socket.get(), true), 1U);
  EXPECT_EQ(batch_->destination(0), asked.address);
  batch_->respond(0, 1);
  EXPECT_EQ(batch_->send(server.socket.get(), true), 0U);
  EXPECT_EQ(receive_at(client.socket).second, asked);
}

TEST_F(UdpBatchTest, OneResponseThatCannotBeSentDoesNotKeepTheOthersBack) {
  const Bound server = bind_udp("127.0.0.1");
  const Bound client = bind_udp("127.0.0.1");
  for (int i = 0; i < 3; ++i) send_to(client.socket, server.endpoint, Bytes{1});
  ASSERT_EQ(batch_->receive(server.socket.get(), false), 3U);
  batch_->respond(0, 1);
  batch_->respond(1, 70000);  // larger than any datagram: the kernel says EMSGSIZE
  batch_->respond(2, 1);
  EXPECT_EQ(batch_->send(server.socket.get(), false), 1U);
  EXPECT_EQ(receive_at(client.socket).first.size(), 1U);
  EXPECT_EQ(receive_at(client.socket).first.size(), 1U);
}

}  // namespace
}  // namespace pando::worker
