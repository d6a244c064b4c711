#include "worker/net/tcp_connection.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <filesystem>
#include <functional>

#include "ipc/packet_socket.h"
#include "shm/slots.h"
#include "tests/unit/worker/query_builder.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::worker {
namespace tcp_connection_test {

using asio::ip::tcp;
using namespace pando::testing;

/// One connection, with its host played by the test, and the client at its other end.
class Connection : public ::testing::Test, public TcpHost {
 protected:
  Connection() {
    auto files = slots_.lend(0);
    EXPECT_TRUE(core_.attach(std::move(*files), zone::layout_fingerprint(), 0, Fd()));
    core_.look_at_settings();  // as the service does before it accepts
    tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    client_.connect(acceptor.local_endpoint());
    TcpConnection::Socket socket(io_, acceptor.accept().release());
    Client client;
    client.remote = *Endpoint::from_text("127.0.0.1@1000");
    client.local = *Endpoint::from_text("127.0.0.1@53");
    client.transport = ipc::Transport::kTcp;
    connection_ = std::make_shared<TcpConnection>(*this, std::move(socket), client);
    connection_->start();
  }
  ~Connection() override {
    if (!has_ended_) connection_->close();
    connection_.reset();
    run_until([] { return true; });
    std::filesystem::remove_all(directory_);
  }

  Core& core() noexcept override { return core_; }
  std::span<std::uint8_t> space() noexcept override { return space_; }
  std::span<std::uint8_t> receive_space() noexcept override { return receive_space_; }
  void progressed(TcpConnection& connection) noexcept override {
    EXPECT_EQ(&connection, connection_.get());
    ++progress_;
  }
  void stalled(TcpConnection&) noexcept override {
    core_.counting().add(ipc::Counter::kTcpTimeouts);
  }
  void ended(TcpConnection& connection) noexcept override {
    EXPECT_EQ(&connection, connection_.get());
    has_ended_ = true;
  }

  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    do {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(5));
    } while (!done());
    return true;
  }
  static Bytes framed(const Bytes& message) {
    Bytes out;
    append_be16(out, static_cast<std::uint16_t>(message.size()));
    append(out, message);
    return out;
  }
  static Bytes query(std::uint16_t id) {
    Query query;
    query.id = id;
    return query.octets();
  }
  void send(const Bytes& octets) { asio::write(client_, asio::buffer(octets)); }
  /// The ID of the next response.
  std::uint16_t receive_id() {
    EXPECT_TRUE(run_until([this] { return client_.available() > 1; }));
    std::array<std::uint8_t, 2> length{};
    asio::read(client_, asio::buffer(length));
    Bytes message(load_be16(length.data()));
    EXPECT_TRUE(run_until([&] { return client_.available() >= message.size(); }));
    asio::read(client_, asio::buffer(message));
    return load_be16(message.data());
  }
  /// No octet follows, and the connection is closed for sending.
  bool is_shut() {
    client_.non_blocking(true);
    asio::error_code error;
    return run_until([&] {
             std::uint8_t octet = 0;
             EXPECT_EQ(client_.read_some(asio::buffer(&octet, 1), error), 0U);
             return error != asio::error::would_block;
           }) &&
           error == asio::error::eof;
  }

  ZoneStore zones_{{{"example.com.",
                     "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
                     "www 300 A 192.0.2.10\n",
                     {{allow_all()}, {}, {allow_all()}, {}, false, false}}},
                   {}};
  std::string directory_ = zones_.path() + ".slots";
  shm::SlotTable slots_ = make_slots();
  asio::io_context io_{1};
  std::string managers_socket_ = zones_.path() + ".sock";
  ManagerLink link_{io_, {0, 2, managers_socket_}, link_handlers()};
  Core core_{link_};
  Bytes space_ = Bytes(65'535);
  Bytes receive_space_ = Bytes(65'535);
  tcp::socket client_{io_};
  std::shared_ptr<TcpConnection> connection_;
  int progress_ = 0;
  bool has_ended_ = false;

 private:
  static ManagerLink::Handlers link_handlers() {
    ManagerLink::Handlers handlers;
    handlers.sockets = [] { return std::vector<std::pair<ipc::SocketDescription, int>>(); };
    return handlers;
  }
  shm::SlotTable make_slots() {
    auto table = shm::SlotTable::open(directory_, zones_.path(), zone::layout_fingerprint());
    EXPECT_TRUE(table && table->add(0));
    return std::move(*table);
  }
};

/// More than are taken in one turn of the event loop.
TEST_F(Connection, PipelinedQueriesAreAnsweredInTheirOrder) {
  Bytes all;
  for (std::uint16_t id = 1; id <= 100; ++id) append(all, framed(query(id)));
  send(all);
  for (std::uint16_t id = 1; id <= 100; ++id) EXPECT_EQ(receive_id(), id);
  EXPECT_TRUE(connection_->idle());
  EXPECT_FALSE(has_ended_);
}

TEST_F(Connection, AQueryMayComeOctetByOctet) {
  for (const std::uint8_t octet : framed(query(7))) {
    EXPECT_EQ(client_.available(), 0U);
    send({octet});
    run_until([] { return true; });
  }
  EXPECT_EQ(receive_id(), 7U);
}

TEST_F(Connection, IsNotIdleWithAPartOfAQuery) {
  Bytes octets = framed(query(7));
  octets.pop_back();
  send(octets);
  EXPECT_TRUE(run_until([this] { return !connection_->idle(); }));
}

/// The client may have sent its end together with its queries.
TEST_F(Connection, QueriesBeforeTheEndOfInputAreAnswered) {
  Bytes both = framed(query(1));
  append(both, framed(query(2)));
  send(both);
  client_.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(receive_id(), 1U);
  EXPECT_EQ(receive_id(), 2U);
  EXPECT_TRUE(is_shut());
  EXPECT_TRUE(run_until([this] { return has_ended_; }));
}

/// Where the next request begins is not known after it.
TEST_F(Connection, NothingAfterAMalformedRequestIsAnswered) {
  Bytes all = framed(query(1));
  append(all, framed({0, 1, 2}));  // no header
  append(all, framed(query(2)));
  send(all);
  EXPECT_EQ(receive_id(), 1U);
  EXPECT_TRUE(is_shut());
}

/// Most connections are idle most of the time.
TEST_F(Connection, HoldsNoBufferWhileItIsIdle) {
  Bytes all;
  for (std::uint16_t id = 1; id <= 100; ++id) append(all, framed(query(id)));
  const std::uint8_t last = all.back();
  all.pop_back();
  send(all);
  for (std::uint16_t id = 1; id <= 99; ++id) EXPECT_EQ(receive_id(), id);
  EXPECT_GT(connection_->buffer_bytes(), 0U) << "for a part of a query";
  send({last});
  EXPECT_EQ(receive_id(), 100U);
  EXPECT_TRUE(connection_->idle());
  EXPECT_EQ(connection_->buffer_bytes(), 0U);
}

TEST_F(Connection, APartOfAQueryIsNoProgress) {
  Bytes octets = framed(query(7));
  const std::uint8_t last = octets.back();
  octets.pop_back();
  send(octets);
  EXPECT_TRUE(run_until([this] { return !connection_->idle(); }));
  EXPECT_EQ(progress_, 0);
  send({last});
  EXPECT_EQ(receive_id(), 7U);
  EXPECT_EQ(progress_, 2) << "the query, and its response";
}

TEST_F(Connection, EndsAndIsCountedWhenItStalls) {
  connection_->end_stalled();
  EXPECT_TRUE(has_ended_);
  EXPECT_EQ(core_.counting().value(ipc::Counter::kTcpTimeouts), 1U);
  EXPECT_TRUE(is_shut());
}

/// The manager may take longer than `limits.tcp-idle`, for which the client is not to blame.
TEST_F(Connection, DoesNotStallWhileTheManagerHasItsUpdate) {
  const Fd listening = ipc::listen_packets(managers_socket_, std::nullopt).value();
  link_.start();
  const Fd manager = ipc::accept_packets(listening.get()).value();
  ::unlink(managers_socket_.c_str());
  ASSERT_TRUE(run_until([this] { return link_.connected(); }));
  send(framed(Query{.opcode = 5, .qname = "example.com.", .qtype = dns::RRType::kSOA}.octets()));
  ASSERT_TRUE(run_until([this] { return link_.pending() == 1; }));
  const int before = progress_;
  connection_->end_stalled();
  EXPECT_FALSE(has_ended_);
  EXPECT_EQ(progress_, before + 1) << "it waits for the whole time again";
  EXPECT_EQ(core_.counting().value(ipc::Counter::kTcpTimeouts), 0U);
}

TEST_F(Connection, EndsWhenTheClientLeaves) {
  client_.close();
  EXPECT_TRUE(run_until([this] { return has_ended_; }));
}

}  // namespace tcp_connection_test
}  // namespace pando::worker
