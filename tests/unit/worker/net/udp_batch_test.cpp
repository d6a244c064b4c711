#include "worker/net/udp_batch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/datagram.h"
#include "base/fd.h"

namespace pando::worker {
namespace udp_batch_test {

struct Bound {
  Fd socket;
  Endpoint endpoint;
  [[nodiscard]] UdpBatch::Source source(bool wildcard = false) const {
    return {socket.get(), endpoint, wildcard};
  }
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
  ASSERT_EQ(batch_->receive(server.source()), 10U);
  for (std::size_t i = 0; i < 10; i += 3) {
    EXPECT_EQ(Endpoint::from_sockaddr(batch_->sender(i)), clients[i].endpoint);
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
  ASSERT_EQ(batch_->receive(server.source()), 1U);
  EXPECT_EQ(batch_->message(0).size(), 65507U);
}

TEST_F(UdpBatchTest, TakesNoMoreThanABatchAtOnce) {
  const Bound server = bind_udp("127.0.0.1");
  const Bound client = bind_udp("127.0.0.1");
  for (std::size_t i = 0; i < UdpBatch::kMessages + 5; ++i)
    send_to(client.socket, server.endpoint, Bytes{1});
  EXPECT_EQ(batch_->receive(server.source()), UdpBatch::kMessages);
  EXPECT_EQ(batch_->receive(server.source()), 5U);
  EXPECT_EQ(batch_->receive(server.source()), 0U);
}

TEST_F(UdpBatchTest, AWildcardSocketAnswersFromTheAddressThatWasAsked) {
  const Bound server = bind_udp("0.0.0.0", true);
  const Bound client = bind_udp("127.0.0.1");
  const Endpoint asked{IpAddress::from_text("127.0.0.77").value(), server.endpoint.port};
  send_to(client.socket, asked, Bytes{1});
  ASSERT_EQ(batch_->receive(server.source(true)), 1U);
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
  ASSERT_EQ(batch_->receive(server.source(true)), 1U);
  EXPECT_EQ(batch_->destination(0), asked.address);
  batch_->respond(0, 1);
  EXPECT_EQ(batch_->send(server.socket.get(), true), 0U);
  EXPECT_EQ(receive_at(client.socket).second, asked);
}

TEST_F(UdpBatchTest, OneResponseThatCannotBeSentDoesNotKeepTheOthersBack) {
  const Bound server = bind_udp("127.0.0.1");
  const Bound client = bind_udp("127.0.0.1");
  for (int i = 0; i < 3; ++i) send_to(client.socket, server.endpoint, Bytes{1});
  ASSERT_EQ(batch_->receive(server.source()), 3U);
  batch_->respond(0, 1);
  batch_->respond(1, 70000);  // larger than any datagram: the kernel says EMSGSIZE
  batch_->respond(2, 1);
  EXPECT_EQ(batch_->send(server.socket.get(), false), 1U);
  EXPECT_EQ(receive_at(client.socket).first.size(), 1U);
  EXPECT_EQ(receive_at(client.socket).first.size(), 1U);
}

// What a process leaves behind
// -----------------------------------------------------------------------------

class KeptBatch : public ::testing::Test {
 protected:
  KeptBatch() {
    char pattern[] = "/tmp/pando-batch-XXXXXX";
    file_ = Fd(::mkostemp(pattern, O_CLOEXEC));
    ::unlink(pattern);
    EXPECT_EQ(::ftruncate(file_.get(), kOffset + static_cast<off_t>(UdpBatch::kKeptOctets)), 0);
  }
  /// A process's batch; its end without done() is what a kill is.
  std::unique_ptr<UdpBatch> next_process() const {
    auto batch = std::make_unique<UdpBatch>();
    EXPECT_TRUE(batch->keep_in(file_.get(), kOffset, UdpBatch::kKeptOctets));
    return batch;
  }
  void send_queries(int count) const {
    for (int i = 0; i < count; ++i)
      send_to(client_.socket, server_.endpoint, Bytes{static_cast<std::uint8_t>(i)});
  }
  static Bytes octets(const UdpBatch& batch, std::size_t i) {
    const ByteView message = batch.message(i);
    return {message.begin(), message.end()};
  }
  static std::vector<int> inherited(UdpBatch& batch) {
    std::vector<int> found;
    for (std::size_t i = 0; i < UdpBatch::kMessages; ++i)
      if (batch.inherit(i)) found.push_back(batch.message(i)[0]);
    return found;
  }

  static constexpr off_t kOffset = 16384;
  Fd file_;
  Bound server_ = bind_udp("127.0.0.1");
  Bound client_ = bind_udp("127.0.0.1");
};

TEST_F(KeptBatch, IsAnsweredByTheSuccessor) {
  send_queries(3);
  ASSERT_EQ(next_process()->receive(server_.source()), 3U);
  const auto batch = next_process();
  ASSERT_TRUE(batch->inherited(server_.endpoint));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(batch->inherit(i));
    EXPECT_EQ(octets(*batch, i), (Bytes{static_cast<std::uint8_t>(i)}));
    EXPECT_EQ(Endpoint::from_sockaddr(batch->sender(i)), client_.endpoint);
    batch->space(i)[0] = static_cast<std::uint8_t>(i + 100);
    batch->respond(i, 1);
    EXPECT_EQ(batch->send(server_.socket.get(), false), 0U);
    EXPECT_EQ(receive_at(client_.socket).first, Bytes{static_cast<std::uint8_t>(i + 100)});
  }
  EXPECT_FALSE(batch->inherit(3));
}

TEST_F(KeptBatch, IsNobodysWhenItWasAnswered) {
  send_queries(3);
  {
    const auto batch = next_process();
    ASSERT_EQ(batch->receive(server_.source()), 3U);
    batch->done();
  }
  EXPECT_FALSE(next_process()->inherited(server_.endpoint));
}

TEST_F(KeptBatch, HoldsNothingOfEarlierOnes) {
  const auto batch = next_process();
  send_queries(5);
  ASSERT_EQ(batch->receive(server_.source()), 5U);
  batch->done();
  send_queries(1);
  ASSERT_EQ(batch->receive(server_.source()), 1U);
  EXPECT_EQ(inherited(*next_process()), std::vector<int>{0});
}

TEST_F(KeptBatch, IsForTheSocketItCameTo) {
  send_queries(1);
  ASSERT_EQ(next_process()->receive(server_.source()), 1U);
  EXPECT_FALSE(next_process()->inherited(client_.endpoint));
  EXPECT_TRUE(next_process()->inherited(server_.endpoint));
}

TEST_F(KeptBatch, AMessageThatKillsIsTriedOnceMoreOnly) {
  send_queries(4);
  ASSERT_EQ(next_process()->receive(server_.source()), 4U);
  {
    const auto batch = next_process();
    ASSERT_TRUE(batch->inherit(0));
    ASSERT_TRUE(batch->inherit(1));  // and this one kills
  }
  EXPECT_EQ(inherited(*next_process()), (std::vector<int>{2, 3}));
}

TEST_F(KeptBatch, LeavesOutWhatIsTooLong) {
  constexpr std::uint8_t kSent = 32;  // to each place in a page, short enough and too long
  const auto sent = [](std::uint8_t i) {
    return Bytes(UdpBatch::kLongestKept + (i / 16 + i) % 2, i);
  };
  for (std::uint8_t i = 0; i < kSent; ++i) send_to(client_.socket, server_.endpoint, sent(i));
  {
    const auto batch = next_process();
    ASSERT_EQ(batch->receive(server_.source()), kSent);
    for (std::uint8_t i = 0; i < kSent; ++i) EXPECT_EQ(octets(*batch, i), sent(i));
  }
  const auto batch = next_process();
  for (std::uint8_t i = 0; i < kSent; ++i) {
    const bool fits = sent(i).size() == UdpBatch::kLongestKept;
    ASSERT_EQ(batch->inherit(i), fits) << int{i};
    if (fits) {
      EXPECT_EQ(octets(*batch, i), sent(i));
    }
  }
}

TEST_F(KeptBatch, LargestDatagramsLeaveEachOtherAlone) {
  constexpr std::size_t kLargest = 65507;  // of UDP over IPv4
  const auto batch = next_process();
  for (const int first : {0, 1, 14, 15, 16}) {  // the start in a page falls back behind 15
    send_queries(first);
    send_to(client_.socket, server_.endpoint, Bytes(kLargest, 1));
    send_to(client_.socket, server_.endpoint, Bytes(kLargest, 2));
    const auto at = static_cast<std::size_t>(first);
    ASSERT_EQ(batch->receive(server_.source()), at + 2);
    EXPECT_EQ(octets(*batch, at), Bytes(kLargest, 1));
    EXPECT_EQ(octets(*batch, at + 1), Bytes(kLargest, 2));
  }
}

/// Whoever else has the file may write to it at any moment.
TEST_F(KeptBatch, NothingInTheFileLeadsTheKernelAnywhere) {
  const auto batch = next_process();
  void* const shared = ::mmap(nullptr, UdpBatch::kKeptOctets, PROT_READ | PROT_WRITE, MAP_SHARED,
                              file_.get(), kOffset);
  ASSERT_NE(shared, MAP_FAILED);
  for (const int octet : {0xFF, 0x41, 0x00}) {
    std::memset(shared, octet, UdpBatch::kKeptOctets);
    send_queries(2);
    ASSERT_EQ(batch->receive(server_.source()), 2U) << octet;
    EXPECT_EQ(octets(*batch, 1), Bytes{1});
    EXPECT_EQ(Endpoint::from_sockaddr(batch->sender(1)), client_.endpoint);
    std::memset(shared, octet, UdpBatch::kKeptOctets - UdpBatch::kMessages * UdpBatch::kPage);
    batch->space(0)[0] = 7;
    batch->respond(0, 1);
    static_cast<void>(batch->send(server_.socket.get(), false));  // the address may be nonsense now
    batch->done();
  }
  ::munmap(shared, UdpBatch::kKeptOctets);
}

/// Stops `child` when it leaves recvmmsg, and kills it there.
void kill_within_receive(pid_t child) {
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);  // its SIGSTOP
  while (true) {
    ASSERT_EQ(::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSTOPPED(status));
    user_regs_struct registers{};
    ASSERT_EQ(::ptrace(PTRACE_GETREGS, child, nullptr, &registers), 0);
    const bool left = registers.orig_rax == SYS_recvmmsg &&
                      static_cast<long>(registers.rax) != -ENOSYS;  // as it enters
    if (left) break;
  }
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

TEST_F(KeptBatch, IsTheSuccessorsAlsoWhenTheKernelHadJustReceivedIt) {
  // An update with one record; a query with an OPT record.
  const Bytes update{0, 1, 0x28, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 'a', 0, 0, 6, 0, 1,
                     0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1};
  const Bytes query{0, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 'a', 0, 0, 1, 0, 1,
                    0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0};
  // Longer ones before, so that their octets lie behind.
  send_to(client_.socket, server_.endpoint, Bytes(500, 1));
  send_to(client_.socket, server_.endpoint, Bytes(500, 1));
  {
    const auto batch = next_process();
    ASSERT_EQ(batch->receive(server_.source()), 2U);
    batch->done();
  }
  send_to(client_.socket, server_.endpoint, update);
  send_to(client_.socket, server_.endpoint, query);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto batch = next_process();
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    batch->receive(server_.source());
    ::_exit(0);
  }
  kill_within_receive(child);
  const auto batch = next_process();
  ASSERT_TRUE(batch->inherited(server_.endpoint));
  ASSERT_TRUE(batch->inherit(0));
  EXPECT_EQ(octets(*batch, 0), update);
  ASSERT_TRUE(batch->inherit(1));
  EXPECT_EQ(octets(*batch, 1), query);
  EXPECT_EQ(Endpoint::from_sockaddr(batch->sender(1)), client_.endpoint);
  EXPECT_FALSE(batch->inherit(2));
}

TEST_F(KeptBatch, RemembersTheAddressThatWasAsked) {
  const Bound server = bind_udp("0.0.0.0", true);
  const Endpoint asked{IpAddress::from_text("127.0.0.77").value(), server.endpoint.port};
  send_to(client_.socket, asked, Bytes{1});
  ASSERT_EQ(next_process()->receive(server.source(true)), 1U);
  const auto batch = next_process();
  ASSERT_TRUE(batch->inherited(server.endpoint) && batch->inherit(0));
  batch->respond(0, 1);
  EXPECT_EQ(batch->send(server.socket.get(), true), 0U);
  EXPECT_EQ(receive_at(client_.socket).second, asked);
}

TEST_F(KeptBatch, GarbageInTheFileHarmsNobody) {
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    send_queries(1);
    ASSERT_EQ(next_process()->receive(server_.source(true)), 1U);
    // Behind magic and place, which have to be right for anything to be read at all.
    Bytes noise(UdpBatch::kKeptOctets - 64);
    for (auto& octet : noise)
      octet = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    ASSERT_EQ(::pwrite(file_.get(), noise.data(), noise.size(), kOffset + 64),
              static_cast<ssize_t>(noise.size()));
    const auto batch = next_process();
    for (std::size_t i = 0; i < UdpBatch::kMessages; ++i) {
      if (!batch->inherit(i)) continue;
      EXPECT_LE(batch->message(i).size(), UdpBatch::kLongestKept);
      [[maybe_unused]] const auto asked = batch->destination(i);
      batch->respond(i, 1);
      [[maybe_unused]] const auto failed = batch->send(server_.socket.get(), true);
    }
  }
}

TEST_F(KeptBatch, NeedsRoom) {
  UdpBatch batch;
  EXPECT_FALSE(batch.keep_in(file_.get(), kOffset, UdpBatch::kKeptOctets - 1));
  EXPECT_FALSE(batch.keep_in(-1, kOffset, UdpBatch::kKeptOctets));
}

}  // namespace udp_batch_test
}  // namespace pando::worker
