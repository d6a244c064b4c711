#include "manager/workers/listeners.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <set>

#include "manager/workers/listening_socket.h"
#include "tests/unit/manager/systemd/notify_socket.h"

namespace pando::manager {
namespace listeners_test {

Endpoint free_endpoint(const char* address = "127.0.0.1") {
  // A port that is free for UDP and TCP now; tests of one machine run one after the other.
  for (std::uint16_t port = 15300; port < 16300; ++port) {
    const Endpoint candidate{IpAddress::from_text(address).value(), port};
    sockaddr_storage storage;
    const socklen_t length = candidate.to_sockaddr(storage);
    Fd udp(::socket(storage.ss_family, SOCK_DGRAM, 0));
    Fd tcp(::socket(storage.ss_family, SOCK_STREAM, 0));
    if (::bind(udp.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 &&
        ::bind(tcp.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0)
      return candidate;
  }
  ADD_FAILURE() << "no free port";
  return {};
}

class ListenersTest : public ::testing::Test {
 protected:
  Endpoint local_ = free_endpoint();
  Listeners listeners_{Listeners::Addresses{{local_}, {}}};

  void open(std::initializer_list<std::uint32_t> slots) {
    for (const auto slot : slots) ASSERT_TRUE(listeners_.open(slot));
  }
  int udp_of(std::uint32_t slot) const { return socket_of(slot, ipc::Transport::kUdp); }
  int tcp_of(std::uint32_t slot) const { return socket_of(slot, ipc::Transport::kTcp); }
  int socket_of(std::uint32_t slot, ipc::Transport transport) const {
    for (const auto& socket : listeners_.of(slot))
      if (socket.description.transport == transport) return socket.fd.get();
    return -1;
  }
  /// Sends `count` datagrams, each from a port of its own.
  void send(int count) const {
    sockaddr_storage to;
    const socklen_t length = local_.to_sockaddr(to);
    for (int i = 0; i < count; ++i) {
      Fd client(::socket(to.ss_family, SOCK_DGRAM, 0));
      const char byte = 'q';
      ASSERT_EQ(::sendto(client.get(), &byte, 1, 0, reinterpret_cast<sockaddr*>(&to), length), 1);
    }
  }
  int receive_all(std::uint32_t slot) const {
    char byte;
    int count = 0;
    while (::recv(udp_of(slot), &byte, 1, MSG_DONTWAIT) >= 0) ++count;
    return count;
  }
  std::vector<Fd> connect(int count) const {
    sockaddr_storage to;
    const socklen_t length = local_.to_sockaddr(to);
    std::vector<Fd> clients;
    for (int i = 0; i < count; ++i) {
      clients.emplace_back(::socket(to.ss_family, SOCK_STREAM, 0));
      EXPECT_EQ(::connect(clients.back().get(), reinterpret_cast<sockaddr*>(&to), length), 0);
    }
    return clients;
  }
  int accept_all(std::uint32_t slot) const {
    int count = 0;
    for (;;) {
      Fd accepted(::accept4(tcp_of(slot), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted) return count;
      ++count;
    }
  }
};

TEST_F(ListenersTest, EachSlotGetsItsShareOfDatagrams) {
  open({0, 1});
  send(200);
  const int first = receive_all(0);
  const int second = receive_all(1);
  EXPECT_EQ(first + second, 200);
  EXPECT_GT(first, 30);
  EXPECT_GT(second, 30);
}

TEST_F(ListenersTest, SocketsAreNonBlockingAndClosedOnExec) {
  open({0});
  for (const auto& socket : listeners_.of(0)) {
    EXPECT_NE(::fcntl(socket.fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(socket.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(ListenersTest, DatagramsFollowNoPathMtuThatAnybodyMayForge) {  // RFC 9715 §3.1
  open({0});
  int value = -1;
  socklen_t length = sizeof value;
  ASSERT_EQ(::getsockopt(udp_of(0), IPPROTO_IP, IP_MTU_DISCOVER, &value, &length), 0);
  EXPECT_EQ(value, IP_PMTUDISC_OMIT);
  const auto v6 = open_listening_socket(free_endpoint("::1"), ipc::Transport::kUdp);
  ASSERT_TRUE(v6);
  ASSERT_EQ(::getsockopt(v6->get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &value, &length), 0);
  EXPECT_EQ(value, IPV6_PMTUDISC_OMIT);
}

TEST_F(ListenersTest, SteeringKeepsNewDatagramsFromAnExcludedSlotWhateverItsPosition) {
  open({0, 1, 2});
  for (const std::uint32_t excluded : {0U, 1U, 2U}) {
    ASSERT_TRUE(listeners_.steer_away({excluded}));
    send(120);
    EXPECT_EQ(receive_all(excluded), 0);
    int others = 0;
    for (const std::uint32_t slot : {0U, 1U, 2U}) {
      const int got = receive_all(slot);
      if (slot != excluded) {
        EXPECT_GT(got, 10) << slot;
      }
      others += got;
    }
    EXPECT_EQ(others, 120);
  }
}

TEST_F(ListenersTest, SteeringAwayFromTwoOfFourLeavesTheOtherTwo) {
  open({0, 1, 2, 3});
  ASSERT_TRUE(listeners_.steer_away({1, 2}));
  send(100);
  EXPECT_EQ(receive_all(1) + receive_all(2), 0);
  EXPECT_EQ(receive_all(0) + receive_all(3), 100);
}

TEST_F(ListenersTest, WhatIsQueuedStaysWhenTrafficIsSteeredAwayAndTheSocketCloses) {
  open({0, 1});
  send(100);
  ASSERT_TRUE(listeners_.steer_away({1}));
  EXPECT_TRUE(listeners_.has_queue(1));
  const int queued = receive_all(1);
  EXPECT_FALSE(listeners_.has_queue(1));
  send(100);
  listeners_.close(1);
  send(100);
  EXPECT_EQ(queued + receive_all(0), 300);
}

TEST_F(ListenersTest, AWithdrawnSocketGetsNothingMoreAndCanStillBeRead) {
  open({0, 1, 2});
  send(90);
  listeners_.withdraw(0);
  EXPECT_TRUE(listeners_.has_queue(0));
  const int queued = receive_all(0);
  EXPECT_GT(queued, 5);
  send(100);
  EXPECT_EQ(receive_all(0), 0);
  EXPECT_EQ(queued + receive_all(1) + receive_all(2), 190);
  // The kernel has moved slot 2 to slot 0's place, and we know it.
  ASSERT_TRUE(listeners_.steer_away({2}));
  send(100);
  EXPECT_EQ(receive_all(1), 100);
  listeners_.close(0);
  send(100);
  EXPECT_EQ(receive_all(1), 100);
}

/// A client's socket of the same family.
class Client {
 public:
  explicit Client(const Endpoint& server) {
    Endpoint any = server;
    any.port = 0;
    sockaddr_storage storage;
    socklen_t length = any.to_sockaddr(storage);
    socket_ = Fd(::socket(storage.ss_family, SOCK_DGRAM, 0));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&storage), length), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&storage), &length), 0);
    endpoint = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&storage));
  }
  /// Who sent the datagram that waits; nothing when none does.
  std::optional<Endpoint> sender() const {
    sockaddr_storage from;
    socklen_t length = sizeof from;
    char byte;
    if (::recvfrom(socket_.get(), &byte, 1, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from),
                   &length) != 1)
      return std::nullopt;
    return Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&from));
  }
  Endpoint endpoint;

 private:
  Fd socket_;
};

TEST_F(ListenersTest, AResponseLeavesThroughASocketOfTheSlot) {
  open({0, 1});
  const Client client(local_);
  const Bytes response{'r'};
  const auto& udp = listeners_.of(0)[0].description;
  const auto& tcp = listeners_.of(0)[1].description;
  ASSERT_EQ(udp.transport, ipc::Transport::kUdp);
  EXPECT_TRUE(listeners_.respond(0, udp.id, response, client.endpoint, local_.address));
  EXPECT_EQ(client.sender(), local_);
  EXPECT_FALSE(listeners_.respond(1, udp.id, response, client.endpoint, local_.address));
  EXPECT_FALSE(listeners_.respond(0, tcp.id, response, client.endpoint, local_.address));
  EXPECT_FALSE(listeners_.respond(9, udp.id, response, client.endpoint, local_.address));
  listeners_.withdraw(0);
  EXPECT_FALSE(listeners_.respond(0, udp.id, response, client.endpoint, local_.address));
  EXPECT_FALSE(client.sender());
}

TEST_F(ListenersTest, AResponseOfAWildcardSocketLeavesFromTheAddressThatWasAsked) {
  const Endpoint any = Endpoint::from_text(fmt::format("0.0.0.0@{}", local_.port)).value();
  Listeners listeners({{any}, {}});
  ASSERT_TRUE(listeners.open(0));
  const Endpoint asked = Endpoint::from_text(fmt::format("127.0.0.7@{}", local_.port)).value();
  const Client client(asked);
  const std::uint32_t id = listeners.of(0)[0].description.id;
  EXPECT_TRUE(listeners.respond(0, id, Bytes{'r'}, client.endpoint, asked.address));
  EXPECT_EQ(client.sender(), asked);
}

TEST_F(ListenersTest, SocketsThatAWorkerLeftImpairedAreReplaced) {
  open({0, 1});
  EXPECT_TRUE(listeners_.drop_impaired(0).empty());
  sockaddr_storage somewhere;
  const socklen_t length = Endpoint{local_.address, 9}.to_sockaddr(somewhere);
  const int on = 1;
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{1, drop_all};
  const std::vector<std::function<int(int udp, int tcp)>> deeds{
      [&](int udp, int) {
        return ::connect(udp, reinterpret_cast<const sockaddr*>(&somewhere), length);
      },
      [&](int udp, int) { return ::shutdown(udp, SHUT_WR) == 0 || errno == ENOTCONN ? 0 : -1; },
      [&](int, int tcp) { return ::shutdown(tcp, SHUT_RD); },
      [&](int udp, int) { return ::setsockopt(udp, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on); },
      [&](int, int tcp) {
        return ::setsockopt(tcp, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
      }};
  for (std::size_t i = 0; i < deeds.size(); ++i) {
    const int done = deeds[i](udp_of(0), tcp_of(0));
    // Linux 6.18 lets nobody but root put a filter on a TCP socket.
    if (done != 0 && errno == EPERM) GTEST_SKIP() << "this kernel allows this to root alone";
    ASSERT_EQ(done, 0) << i;
    EXPECT_EQ(listeners_.drop_impaired(0).size(), 1U) << i;
    EXPECT_EQ(listeners_.of(0).size(), 1U) << i;
    ASSERT_TRUE(listeners_.open(0));
    EXPECT_TRUE(listeners_.drop_impaired(0).empty()) << i;
  }
  send(200);
  EXPECT_EQ(receive_all(0) + receive_all(1), 200);
}

TEST_F(ListenersTest, AWithdrawnSlotCanBeOpenedAgain) {
  open({0, 1});
  listeners_.withdraw(1);
  listeners_.drop_withdrawn(1);
  EXPECT_EQ(listeners_.of(1).size(), 1U) << "its TCP socket stays";
  open({1});
  EXPECT_EQ(listeners_.of(1).size(), 2U);
  send(200);
  EXPECT_GT(receive_all(0), 30);
  EXPECT_GT(receive_all(1), 30);
}

TEST_F(ListenersTest, PositionsFollowTheKernelAfterAClose) {
  open({0, 1, 2, 3});
  listeners_.close(0);  // the kernel moves the last, slot 3, to the place of slot 0
  ASSERT_TRUE(listeners_.steer_away({3}));
  send(100);
  EXPECT_EQ(receive_all(3), 0);
  listeners_.close(2);
  open({7});
  ASSERT_TRUE(listeners_.steer_away({1}));
  receive_all(1), receive_all(3), receive_all(7);
  send(100);
  EXPECT_EQ(receive_all(1), 0);
  EXPECT_EQ(receive_all(3) + receive_all(7), 100);
}

TEST_F(ListenersTest, ConnectionsAreSteeredToo) {
  open({0, 1, 2});
  ASSERT_TRUE(listeners_.steer_away({1}));
  const auto clients = connect(40);
  EXPECT_EQ(accept_all(1), 0);
  EXPECT_EQ(accept_all(0) + accept_all(2), 40);
}

TEST_F(ListenersTest, NothingExcludedGivesTheChoiceBackToTheKernel) {
  open({0, 1});
  ASSERT_TRUE(listeners_.steer_away({1}));
  ASSERT_TRUE(listeners_.steer_away({}));
  send(100);
  EXPECT_GT(receive_all(1), 10);
}

TEST_F(ListenersTest, AnAdoptedWorkersSocketKeepsItsPosition) {
  open({0, 1, 2});
  Listeners next({{local_}, {}});
  // As after a manager's restart: workers report in any order, with duplicates of the descriptors.
  for (const std::uint32_t slot : {2U, 0U, 1U})
    for (const auto& socket : listeners_.of(slot))
      ASSERT_TRUE(
          next.adopt(slot, socket.description, Fd(::fcntl(socket.fd.get(), F_DUPFD_CLOEXEC, 0))));
  ASSERT_TRUE(next.steer_away({1}));
  send(100);
  EXPECT_EQ(receive_all(1), 0);
  for (const auto& socket : next.of(2)) EXPECT_EQ(socket.description.position, 2U);
}

TEST_F(ListenersTest, ASocketThatIsNotWhatItIsSaidToBeIsRefused) {
  open({0});
  Listeners next({{local_}, {}});
  const auto& sockets = listeners_.of(0);
  auto as_tcp = sockets[0].description;
  as_tcp.transport = ipc::Transport::kTcp;
  EXPECT_EQ(next.adopt(0, as_tcp, Fd(::dup(sockets[0].fd.get()))).error().code, Errc::kInvalid);
  Fd unbound(::socket(AF_INET, SOCK_DGRAM, 0));
  EXPECT_EQ(next.adopt(0, sockets[0].description, std::move(unbound)).error().code, Errc::kInvalid);
  Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(next.adopt(0, sockets[0].description, std::move(file)));
}

TEST_F(ListenersTest, ASocketOfAnAddressNotServedAnyMoreIsNotAdopted) {
  open({0});
  Listeners next({{}, {}});
  const auto& socket = listeners_.of(0)[0];
  EXPECT_EQ(next.adopt(0, socket.description, Fd(::dup(socket.fd.get()))).error().code,
            Errc::kNotFound);
}

TEST_F(ListenersTest, ASlotHasOneSocketPerAddressAndProtocol) {
  open({0});
  open({0});
  EXPECT_EQ(listeners_.of(0).size(), 2U);
}

TEST_F(ListenersTest, ASocketThatComesBackIsTheSlotsOwnOrAStranger) {
  open({0});
  const auto& socket = listeners_.of(0)[0];
  EXPECT_TRUE(listeners_.adopt(0, socket.description, Fd(::dup(socket.fd.get()))));
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  Listeners other({{local_}, {}});
  ASSERT_TRUE(other.open(0));
  const auto& stranger = other.of(0)[0];
  EXPECT_EQ(listeners_.adopt(0, stranger.description, Fd(::dup(stranger.fd.get()))).error().code,
            Errc::kExists);
}

TEST_F(ListenersTest, ChangedAddressesOpenAndCloseSocketsOfAllSlots) {
  open({0, 1});
  std::set<std::uint32_t> old_ids;
  for (const auto& socket : listeners_.of(1)) old_ids.insert(socket.description.id);
  const Endpoint other = free_endpoint("::1");
  const auto change = listeners_.set_addresses({{other}, {}});
  EXPECT_TRUE(change.errors.empty());
  EXPECT_EQ(std::set<std::uint32_t>(change.closed.at(1).begin(), change.closed.at(1).end()),
            old_ids);
  for (const std::uint32_t slot : {0U, 1U}) {
    ASSERT_EQ(listeners_.of(slot).size(), 2U);
    for (const auto& socket : listeners_.of(slot)) EXPECT_EQ(socket.description.local, other);
  }
}

TEST_F(ListenersTest, AnAddressThatIsNotThereYetCanBeBound) {
  Listeners listeners({{Endpoint::from_text("192.0.2.77@5300").value(),
                        Endpoint::from_text("2001:db8::77@5300").value()},
                       {}});
  const auto opened = listeners.open(0);
  EXPECT_TRUE(opened) << opened.error().text;
}

TEST_F(ListenersTest, AnAddressInUseIsAnErrorThatNamesIt) {
  Fd other(::socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_storage storage;
  const socklen_t length = local_.to_sockaddr(storage);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&storage), length), 0);
  const auto opened = listeners_.open(0);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find(to_text(local_)), std::string::npos) << opened.error().text;
}

// Sockets that the service manager keeps

class KeptListeners : public ListenersTest {
 protected:
  /// Made anew, since the first one has seen no service manager.
  KeptListeners() { listeners_ = Listeners(Listeners::Addresses{{local_}, {}}); }

  /// Slot by slot, since the service manager's socket holds ten messages that nobody reads.
  void open(std::initializer_list<std::uint32_t> slots) {
    for (const std::uint32_t slot : slots) {
      ListenersTest::open({slot});
      service_manager_.stored();
    }
  }
  /// As the next manager gets them: in the order of their names, which is none of theirs.
  std::vector<systemd::InheritedDescriptor> passed() {
    std::vector<systemd::InheritedDescriptor> list;
    for (const auto& [name, fd] : service_manager_.stored())
      list.push_back({name, Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0))});
    return list;
  }
  /// Ends the manager and its workers; the next manager has `addresses`.
  void restart(Listeners::Addresses addresses) {
    auto list = passed();
    listeners_.leave();
    listeners_ = Listeners(std::move(addresses));
    listeners_.restore(std::move(list));
  }
  void restart() { restart({{local_}, {}}); }
  std::set<std::string> names() {
    std::set<std::string> all;
    for (const auto& [name, fd] : service_manager_.stored()) all.insert(name);
    return all;
  }
  static std::string name_of(std::uint32_t slot, const Listeners::Socket& socket) {
    return systemd::to_text({slot, socket.description.position, cookie_of(socket.fd.get())});
  }
  std::set<std::string> expected_names() const {
    std::set<std::string> all;
    for (const std::uint32_t slot : listeners_.slots())
      for (const auto& socket : listeners_.of(slot))
        if (!socket.withdrawn) all.insert(name_of(slot, socket));
    return all;
  }

  systemd::testing::NotifySocket service_manager_;
};

TEST_F(KeptListeners, EachSocketIsKeptFromItsOpeningOn) {
  open({0, 1});
  EXPECT_EQ(names().size(), 4U);
  EXPECT_EQ(names(), expected_names());
}

TEST_F(KeptListeners, QueriesAndConnectionsWaitForTheNextManager) {
  open({0, 1, 2});
  send(60);
  const auto before = connect(30);
  restart();
  send(60);
  const auto after = connect(30);
  EXPECT_EQ(receive_all(0) + receive_all(1) + receive_all(2), 120);
  EXPECT_EQ(accept_all(0) + accept_all(1) + accept_all(2), 60);
  open({0, 1, 2});
  for (const std::uint32_t slot : {0U, 1U, 2U})
    EXPECT_EQ(listeners_.of(slot).size(), 2U) << "nothing was missing";
  EXPECT_EQ(names(), expected_names());
}

TEST_F(KeptListeners, PositionsComeBackSoThatSteeringFindsTheRightSocket) {
  open({0, 1, 2, 3});
  listeners_.close(1);  // 3 takes its place
  EXPECT_EQ(names(), expected_names());
  ASSERT_EQ(names().size(), 6U);
  for (const std::uint32_t excluded : {0U, 2U, 3U}) {
    restart();
    ASSERT_TRUE(listeners_.steer_away({excluded}));
    send(120);
    const auto clients = connect(40);
    EXPECT_EQ(receive_all(excluded), 0) << excluded;
    EXPECT_EQ(accept_all(excluded), 0) << excluded;
    EXPECT_EQ(receive_all(0) + receive_all(2) + receive_all(3), 120);
    EXPECT_EQ(accept_all(0) + accept_all(2) + accept_all(3), 40);
  }
}

TEST_F(KeptListeners, AClosedTcpSocketTakesNoConnectionWhileTheServiceManagerStillHasIt) {
  open({0, 1});
  service_manager_.stored();  // it has descriptors of its own, and hears nothing more for now
  listeners_.close(1);
  const auto clients = connect(40);
  EXPECT_EQ(accept_all(0), 40);
  EXPECT_EQ(names(), expected_names());
}

TEST_F(KeptListeners, AWithdrawnSocketIsNotKept) {
  open({0, 1});
  listeners_.withdraw(1);
  EXPECT_EQ(names(), expected_names());
  EXPECT_EQ(names().size(), 3U);
}

TEST_F(KeptListeners, TheEndOfTheProcessTakesNothingOut) {
  open({0, 1});
  const auto kept = names();
  listeners_.leave();
  listeners_.close(0);
  listeners_.close(1);
  EXPECT_EQ(names(), kept);
  const auto clients = connect(10);
  restart();
  EXPECT_EQ(accept_all(0) + accept_all(1), 10);
}

TEST_F(KeptListeners, ASocketOfAnAddressThatIsNotServedAnyMoreIsClosed) {
  open({0});
  const Endpoint other = free_endpoint("::1");
  restart({{other}, {}});
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(listeners_.of(0).empty());
  open({0});
  EXPECT_EQ(names(), expected_names());
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(KeptListeners, AReloadTakesOutWhatIsNotServedAnyMore) {
  open({0});
  const Endpoint other = free_endpoint("::1");
  EXPECT_TRUE(listeners_.set_addresses({{other}, {}}).errors.empty());
  EXPECT_EQ(names(), expected_names());
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(KeptListeners, ASocketThatAWorkerHasShutDoesNotComeBack) {
  open({0, 1});
  ::shutdown(tcp_of(1), SHUT_RDWR);
  restart();
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  ASSERT_EQ(listeners_.of(1).size(), 1U);
  open({0, 1});
  EXPECT_EQ(listeners_.of(1).size(), 2U);
  EXPECT_EQ(names(), expected_names());
}

TEST_F(KeptListeners, ANameThatBelongsToAnotherSocketIsRefused) {
  open({0});
  auto list = passed();
  std::swap(list[0].fd, list[1].fd);
  Listeners next({{local_}, {}});
  next.restore(std::move(list));
  EXPECT_TRUE(next.of(0).empty());
}

TEST_F(KeptListeners, AnAdoptedWorkersSocketIsTheKeptOne) {
  open({0});
  const auto descriptions =
      std::vector{listeners_.of(0)[0].description, listeners_.of(0)[1].description};
  std::vector<Fd> workers;
  for (const auto& socket : listeners_.of(0)) workers.emplace_back(::dup(socket.fd.get()));
  restart();
  for (const std::size_t i : {0U, 1U})
    EXPECT_TRUE(listeners_.adopt(0, descriptions[i], std::move(workers[i])));
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  EXPECT_EQ(names(), expected_names());
}

// Sockets of socket units

class SharedListeners : public ListenersTest {
 protected:
  /// As systemd opens it: no SO_REUSEPORT, blocking.
  static Fd unit_socket(const Endpoint& local, int type, bool v6_only = true) {
    sockaddr_storage address;
    const socklen_t length = local.to_sockaddr(address);
    Fd socket(::socket(address.ss_family, type | SOCK_CLOEXEC, 0));
    if (address.ss_family == AF_INET6) {
      const int value = v6_only ? 1 : 0;
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &value, sizeof value);
    }
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(::listen(socket.get(), 16), 0);
    }
    return socket;
  }
  static std::vector<systemd::InheritedDescriptor> passed(const Endpoint& local) {
    std::vector<systemd::InheritedDescriptor> list;
    for (const int type : {SOCK_DGRAM, SOCK_STREAM})
      list.push_back({"pando.socket", unit_socket(local, type)});
    return list;
  }
};

TEST_F(SharedListeners, AnAddressOfASocketUnitIsOpenedForNoSlot) {
  listeners_.restore(passed(local_));
  open({0, 1});
  EXPECT_TRUE(listeners_.of(0).empty());
  ASSERT_EQ(listeners_.shared().size(), 2U);
  for (const auto* socket : listeners_.shared()) {
    EXPECT_EQ(socket->description.local, local_);
    EXPECT_NE(::fcntl(socket->fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(socket->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_FALSE(is_impaired(socket->fd.get(), socket->description));
  }
  listeners_.withdraw(0);
  listeners_.close(0);
  EXPECT_EQ(listeners_.shared().size(), 2U) << "the other slot's worker serves on";
}

TEST_F(SharedListeners, AddressesCountAndNotNames) {
  const Endpoint other = free_endpoint("::1");
  auto list = passed(other);
  list[0].name = "dns-udp";
  listeners_.restore(std::move(list));
  EXPECT_TRUE(listeners_.shared().empty()) << "not configured";
  open({0});
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  EXPECT_TRUE(listeners_.set_addresses({{local_, other}, {}}).errors.empty());
  EXPECT_EQ(listeners_.shared().size(), 2U) << "configured by a reload";
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  const auto change = listeners_.set_addresses({{local_}, {}});
  EXPECT_EQ(change.closed.at(0).size(), 2U) << "workers close theirs";
  EXPECT_TRUE(listeners_.shared().empty());
}

TEST_F(SharedListeners, AnAdoptedWorkerHandsASharedSocketBack) {
  listeners_.restore(passed(local_));
  const auto* socket = listeners_.shared()[0];
  EXPECT_TRUE(listeners_.adopt(0, socket->description, Fd(::dup(socket->fd.get()))));
  EXPECT_TRUE(listeners_.of(0).empty());
  const Endpoint other = free_endpoint("127.0.0.1");
  auto description = socket->description;
  EXPECT_EQ(listeners_.adopt(0, description, unit_socket(other, SOCK_DGRAM)).error().code,
            Errc::kExists);
}

TEST_F(SharedListeners, OneSocketForAnAddressAndProtocol) {
  auto list = passed(local_);
  list.push_back({"again", Fd(::dup(list[0].fd.get()))});
  listeners_.restore(std::move(list));
  EXPECT_EQ(listeners_.shared().size(), 2U);
}

TEST_F(SharedListeners, ASocketThatCannotServeIsRefused) {
  std::vector<systemd::InheritedDescriptor> list;
  const Endpoint any{IpAddress::from_text("::").value(), local_.port};
  list.push_back({"both-families", unit_socket(any, SOCK_DGRAM, false)});
  list.push_back({"file", Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))});
  list.push_back({"local", Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))});
  Listeners listeners({{any}, {}});
  listeners.restore(std::move(list));
  EXPECT_TRUE(listeners.shared().empty());
}

TEST(ListenersOfAnInterface, OneThatDoesNotExistIsNoAddressYet) {
  const auto here = free_endpoint();
  const auto there = Endpoint::from_text("fe80::1%absent0@53").value();
  Listeners listeners(Listeners::Addresses{{here, there}, {}});
  const Status opened = listeners.open(0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kNotFound);
  EXPECT_EQ(listeners.of(0).size(), 2U) << "UDP and TCP of the other address";
  EXPECT_EQ(listeners.addresses().at("fe80::1%absent0@53"),
            "fe80::1%absent0@53: its interface does not exist");
  EXPECT_EQ(listeners.addresses().at(to_text(here)), "");
  EXPECT_FALSE(listeners.has_moved_interface());
}

}  // namespace listeners_test
}  // namespace pando::manager
