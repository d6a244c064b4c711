#include "worker/net/tcp_service.h"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "shm/slots.h"
#include "tests/unit/worker/query_builder.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::worker {
namespace tcp_service_test {

using asio::ip::tcp;
using std::chrono::milliseconds;
using namespace pando::testing;

/// A worker's TCP service in slot 0, and a client of it.
class TcpClients : public ::testing::Test {
 protected:
  explicit TcpClients(const zone::ServerSettings& settings = few_places())
      : zones_(one_zone(), settings) {
    auto files = slots_.lend(0);
    EXPECT_TRUE(core_.attach(std::move(*files), zone::layout_fingerprint(), 0, Fd()));
    tcp::acceptor listening(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    listening_ = listening.local_endpoint();
    listening.non_blocking(true);
    ipc::SocketDescription description;
    description.local.address = *IpAddress::from_text("127.0.0.1");
    description.transport = ipc::Transport::kTcp;
    service_.add(description, Fd(listening.release()));
    client_.connect(listening_);
    EXPECT_TRUE(run_until([this] { return connections() == 1; }));
  }
  ~TcpClients() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::uint64_t timeouts() {
    return core_.counting().value(ipc::Counter::kTcpTimeouts);
  }
  [[nodiscard]] std::uint64_t connections() {
    return slots_.page(0)->counters[ipc::counter_index(ipc::Counter::kTcpOpen)].load(
        std::memory_order_relaxed);
  }
  tcp::socket connect_from(const char* address) {
    tcp::socket socket(io_);
    socket.open(tcp::v4());
    socket.bind({asio::ip::make_address(address), 0});
    socket.connect(listening_);
    return socket;
  }
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(milliseconds(5));
    }
    return true;
  }
  /// Comes back when the service's kernel has it; the service has not looked yet.
  void send(const Bytes& message) {
    Bytes framed;
    append_be16(framed, static_cast<std::uint16_t>(message.size()));
    append(framed, message);
    asio::write(client_, asio::buffer(framed));
    int unacknowledged = 1;
    while (unacknowledged > 0) {
      ASSERT_EQ(::ioctl(client_.native_handle(), SIOCOUTQ, &unacknowledged), 0);
      std::this_thread::yield();
    }
  }
  /// The response that the client has got.
  Bytes receive() {
    EXPECT_TRUE(run_until([this] { return client_.available() > 0; }));
    std::array<std::uint8_t, 2> length{};
    asio::read(client_, asio::buffer(length));
    Bytes message(load_be16(length.data()));
    asio::read(client_, asio::buffer(message));
    return message;
  }

  static zone::ServerSettings few_places() {
    zone::ServerSettings settings;
    settings.tcp_clients = 64;
    return settings;
  }
  static zone::ServerSettings with_limit(std::uint32_t idle_ms) {
    zone::ServerSettings settings = few_places();
    settings.tcp_idle_ms = idle_ms;
    return settings;
  }

  ZoneStore zones_;
  std::string directory_ = zones_.path() + ".slots";
  shm::SlotTable slots_ = make_slots();
  asio::io_context io_{1};
  ManagerLink link_{io_, {}, {}};
  Core core_{link_};
  TcpService service_{io_, core_, [](std::uint32_t) {}};
  tcp::socket client_{io_};
  tcp::endpoint listening_;

 private:
  static std::vector<TestZone> one_zone() {
    return {{"example.com.",
             "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
             "www 300 A 192.0.2.10\n"}};
  }
  shm::SlotTable make_slots() {
    auto table = shm::SlotTable::open(directory_, zones_.path(), zone::layout_fingerprint());
    EXPECT_TRUE(table && table->add(0));
    return std::move(*table);
  }
};

TEST_F(TcpClients, AreIdleWhenTheyHaveTheirAnswers) {
  send(Query{}.octets());
  EXPECT_EQ(read_response(receive()).answer_text().size(), 1U);
  EXPECT_EQ(service_.clients().close_idle(std::chrono::hours(1)), 1U) << "not for that long";
  EXPECT_EQ(service_.clients().close_idle(milliseconds(0)), 0U);
}

/// The histogram counts a response once it is sent, and no request without a response.
TEST_F(TcpClients, AreCountedByTheTimeOfTheirResponses) {
  const auto counted = [this] {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < ipc::kLatencies; ++i)
      sum += core_.counting().value(ipc::kLatencyBase + i);
    return sum;
  };
  EXPECT_EQ(counted(), 0U);
  send(Query{}.octets());
  receive();
  EXPECT_EQ(counted(), 1U);
  Bytes response = Query{}.octets();
  response[2] |= 0x80;  // QR: a response, which gets none
  send(response);
  EXPECT_TRUE(run_until([this] { return core_.counting().value(ipc::Counter::kDropped) == 1; }));
  EXPECT_EQ(counted(), 1U);
}

/// A worker that stops closes those that are idle, between whatever else it does.
TEST_F(TcpClients, AreNotIdleWithARequestThatIsNotReadYet) {
  send(Query{}.octets());
  ASSERT_EQ(service_.clients().close_idle(milliseconds(0)), 1U);
  EXPECT_EQ(read_response(receive()).answer_text().size(), 1U);
  EXPECT_EQ(service_.clients().close_idle(milliseconds(0)), 0U);
}

/// 17 connections of one address where 64 are allowed: a quarter is 16.
TEST_F(TcpClients, OfOneAddressHoldAShareOfThePlaces) {
  std::vector<tcp::socket> others;
  for (int i = 0; i < 15; ++i) others.push_back(connect_from("127.0.0.1"));
  EXPECT_TRUE(run_until([this] { return connections() == 16; }));
  tcp::socket refused = connect_from("127.0.0.1");
  const tcp::socket of_another = connect_from("127.0.0.2");
  EXPECT_TRUE(run_until([this] { return connections() == 17; }));
  asio::error_code error;
  char octet = 0;
  refused.read_some(asio::buffer(&octet, 1), error);
  EXPECT_EQ(error, asio::error::eof) << "closed by the service";
  others.pop_back();
  EXPECT_TRUE(run_until([this] { return connections() == 16; }));
  const tcp::socket again = connect_from("127.0.0.1");
  EXPECT_TRUE(run_until([this] { return connections() == 17; })) << "a place was given back";
}

/// `limit` is what the settings say; the clock is the test's.
TEST_F(TcpClients, EndTheLongestSilentFirst) {
  const auto limit = milliseconds(few_places().tcp_idle_ms);
  tcp::socket silent = connect_from("127.0.0.2");
  EXPECT_TRUE(run_until([this] { return connections() == 2; }));
  const auto between = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() == between) std::this_thread::yield();
  send(Query{}.octets());
  receive();  // the older connection has made progress since
  service_.clients().end_stalled(between + limit);
  EXPECT_EQ(connections(), 1U);
  EXPECT_EQ(timeouts(), 1U);
  asio::error_code error;
  char octet = 0;
  silent.read_some(asio::buffer(&octet, 1), error);
  EXPECT_EQ(error, asio::error::eof);
  send(Query{}.octets());
  EXPECT_EQ(read_response(receive()).answer_text().size(), 1U);
}

class ManyClients : public TcpClients {
 protected:
  ManyClients() : TcpClients(many_places()) {}
  static zone::ServerSettings many_places() {
    zone::ServerSettings settings;
    settings.tcp_clients = 1000;
    return settings;
  }
};

/// Other clients are served in between.
TEST_F(ManyClients, ThatStallTogetherEndInSeveralTurns) {
  std::vector<tcp::socket> others;
  for (int i = 0; i < 99; ++i) others.push_back(connect_from("127.0.0.1"));
  EXPECT_TRUE(run_until([this] { return connections() == 100; }));
  const auto later = std::chrono::steady_clock::now() + std::chrono::hours(2);
  service_.clients().end_stalled(later);
  EXPECT_EQ(connections(), 36U);
  service_.clients().end_stalled(later);
  EXPECT_EQ(connections(), 0U);
  EXPECT_EQ(timeouts(), 100U);
}

/// A service whose clients must make progress within a tenth of a second.
class ImpatientClients : public TcpClients {
 protected:
  ImpatientClients() : TcpClients(with_limit(100)) {}
};

TEST_F(ImpatientClients, EndByTheTimer) {
  EXPECT_TRUE(run_until([this] { return connections() == 0; }));
  EXPECT_EQ(timeouts(), 1U);
  const tcp::socket next = connect_from("127.0.0.1");
  EXPECT_TRUE(run_until([this] { return connections() == 1; }));
  EXPECT_TRUE(run_until([this] { return connections() == 0; })) << "the timer waits again";
  EXPECT_EQ(timeouts(), 2U);
}

class PatientClients : public TcpClients {
 protected:
  PatientClients() : TcpClients(with_limit(3'600'000)) {}
};

/// The timer may wait for the end of the old limit, an hour later.
TEST_F(PatientClients, EndSoonAfterTheLimitWasLowered) {
  auto transaction = zones_.store().begin();
  const auto before = zones_.store().current();
  zone::Draft draft(transaction, before.root, before.number + 1);
  ASSERT_TRUE(draft.put_server_settings(with_limit(100)));
  const auto root = draft.root();
  ASSERT_TRUE(zones_.store().publish(std::move(transaction), root, 0));
  send(Query{}.octets());
  receive();
  EXPECT_TRUE(run_until([this] { return connections() == 0; }));
  EXPECT_EQ(timeouts(), 1U);
}

}  // namespace tcp_service_test
}  // namespace pando::worker
