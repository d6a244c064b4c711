#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message.h"
#include "dns/message/message_writer.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager::testing {

/// A primary of "example." on 127.0.0.1, over TCP. Its coroutines run on the test's own loop.
class FakePrimary {
 public:
  using Records = std::vector<std::string>;  ///< lines for record()

  explicit FakePrimary(asio::io_context& io)
      : acceptor_(io, {asio::ip::address_v4::loopback(), 0}) {
    asio::co_spawn(io, accept(), asio::detached);
  }

  [[nodiscard]] Endpoint endpoint() const {
    return {*IpAddress::from_text("127.0.0.1"), acceptor_.local_endpoint().port()};
  }
  /// The types of the questions so far.
  std::vector<std::string> asked;
  /// The records of the answer by the question's type; a type that is missing is refused.
  std::map<std::string, Records> answers;
  /// If not empty: each answer goes on with messages of these records, without an end.
  Records trickle;
  /// Called before each answer is sent.
  std::function<void()> before_answer = [] {};

  /// As a primary with these records at `serial`: without a history, hence AXFR to everybody.
  void serve(std::uint32_t serial, Records others) {
    const std::string soa = soa_line(serial);
    Records whole{soa};
    whole.insert(whole.end(), others.begin(), others.end());
    whole.push_back(soa);
    answers = {{"SOA", {soa}}, {"AXFR", whole}, {"IXFR", whole}};
  }
  static std::string soa_line(std::uint32_t serial) {
    return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
  }

 private:
  using Socket = asio::ip::tcp::socket;

  asio::awaitable<void> accept() {
    for (;;) {
      asio::error_code error;
      Socket socket =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      asio::co_spawn(acceptor_.get_executor(), talk(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> talk(Socket socket) {
    for (;;) {
      asio::error_code error;
      std::uint8_t length[2];
      co_await asio::async_read(socket, asio::buffer(length),
                                asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      Bytes query(load_be16(length));
      co_await asio::async_read(socket, asio::buffer(query),
                                asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      const Bytes answer = answer_to(query);
      before_answer();
      co_await asio::async_write(socket, asio::buffer(answer),
                                 asio::redirect_error(asio::use_awaitable, error));
      while (!error && !trickle.empty()) {
        const Bytes more = answer_of(query, &trickle);
        co_await asio::steady_timer(socket.get_executor(), std::chrono::milliseconds(10))
            .async_wait(asio::use_awaitable);
        co_await asio::async_write(socket, asio::buffer(more),
                                   asio::redirect_error(asio::use_awaitable, error));
      }
      if (error) co_return;
    }
  }

  Bytes answer_to(ByteView query) {
    dns::MessageReader reader(query);
    EXPECT_TRUE(reader.header());
    const std::string type(to_text(reader.question().value().type));
    asked.push_back(type);
    const auto records = answers.find(type);
    return answer_of(query, records == answers.end() ? nullptr : &records->second);
  }

  /// With the length in front; null: REFUSED.
  static Bytes answer_of(ByteView query, const Records* records) {
    dns::MessageReader reader(query);
    dns::Header header = reader.header().value();
    const dns::Question question = reader.question().value();
    header.qr = header.aa = true;
    if (records == nullptr) header.rcode = static_cast<std::uint8_t>(dns::Rcode::kRefused);
    std::uint8_t space[4096];
    dns::MessageWriter writer(space, sizeof space);
    writer.put_header(header);
    EXPECT_TRUE(writer.put_question(question.name, question.type, dns::RRClass::kIN));
    if (records != nullptr)
      for (const std::string& line : *records) {
        const zone::Record one = record(line);
        EXPECT_TRUE(writer.put_record(dns::Section::kAnswer, one.owner, one.type, dns::RRClass::kIN,
                                      one.ttl.seconds, one.rdata));
      }
    const ByteView message = writer.finish();
    Bytes answer;
    append_be16(answer, static_cast<std::uint16_t>(message.size()));
    answer.insert(answer.end(), message.begin(), message.end());
    return answer;
  }

  asio::ip::tcp::acceptor acceptor_;
};

}  // namespace pando::manager::testing
