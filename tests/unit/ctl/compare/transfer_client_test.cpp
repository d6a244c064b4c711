#include "ctl/compare/transfer_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/fd.h"
#include "dns/message/message_reader.h"
#include "dns/message/message_writer.h"
#include "dns/rdata/rdata.h"

namespace pando::ctl {
namespace transfer_client_test {

using dns::RRType;
using ::testing::HasSubstr;
using ::testing::StartsWith;

dns::Name name(std::string_view text) { return dns::Name::from_text(text).value(); }

struct Line {
  std::string owner;
  RRType type;
  std::string rdata;
};

const Line kSoa{"example.", RRType::kSOA, "ns.example. admin.example. 7 1 2 3 4"};
const Line kAddress{"www.example.", RRType::kA, "192.0.2.1"};

Bytes message(std::uint16_t id, const std::vector<Line>& lines,
              dns::Rcode rcode = dns::Rcode::kNoError) {
  std::uint8_t space[4096];
  dns::MessageWriter writer(space, sizeof space);
  dns::Header header;
  header.id = id;
  header.qr = true;
  header.rcode = static_cast<std::uint8_t>(rcode);
  writer.put_header(header);
  EXPECT_TRUE(writer.put_question(name("example."), RRType::kAXFR, dns::RRClass::kIN));
  for (const Line& line : lines) {
    Bytes rdata;
    EXPECT_TRUE(dns::rdata_from_text(line.type, line.rdata, dns::NameView(), rdata));
    EXPECT_TRUE(writer.put_record(dns::Section::kAnswer, name(line.owner), line.type,
                                  dns::RRClass::kIN, 60, rdata));
  }
  const ByteView octets = writer.finish();
  return {octets.begin(), octets.end()};
}

/// A server on loopback that answers one query with the messages that `answer` makes of it.
class OneAnswer {
 public:
  using Answer = std::function<std::vector<Bytes>(std::uint16_t id, Bytes query)>;
  explicit OneAnswer(Answer answer) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage address{};
    at.address = IpAddress::from_text("127.0.0.1").value();
    at.port = 0;
    socklen_t length = at.to_sockaddr(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), raw, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), raw, &length), 0);
    at = Endpoint::from_sockaddr(raw);
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~OneAnswer() { thread_.join(); }

  Endpoint at;

 private:
  void serve(const Answer& answer) const {
    const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::uint8_t query[1024];
    const auto size = ::recv(client.get(), query, sizeof query, 0);
    ASSERT_GT(size, 14);
    for (const Bytes& one : answer(load_be16(query + 2), Bytes(query + 2, query + size))) {
      Bytes framed;
      append_be16(framed, static_cast<std::uint16_t>(one.size()));
      framed.insert(framed.end(), one.begin(), one.end());
      ::send(client.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
    }
    ::shutdown(client.get(), SHUT_WR);
    while (::recv(client.get(), query, sizeof query, 0) > 0) {
    }
  }

  Fd listener_;
  std::thread thread_;
};

Status transfer(const OneAnswer& server, RecordSet& records,
                const dns::TsigKeyring::PreparedKey* key = nullptr,
                std::uint64_t most = kMaxTransferBytes) {
  return transfer_zone({server.at, key, std::chrono::seconds(20)}, records, most);
}

TEST(TransferClient, AZoneComesInSeveralMessages) {
  const OneAnswer server([](std::uint16_t id, const Bytes&) {
    return std::vector<Bytes>{message(id, {kSoa}), message(id, {kAddress}), message(id, {kSoa})};
  });
  RecordSet records(name("EXAMPLE."));
  const auto done = transfer(server, records);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(records.size(), 2U);
  EXPECT_EQ(records.serial(), 7U);
}

TEST(TransferClient, WhatIsNoZoneIsToldWithItsReason) {
  using Messages = std::vector<Bytes>;
  const std::pair<OneAnswer::Answer, const char*> cases[] = {
      {[](auto id, auto) { return Messages{message(id, {}, dns::Rcode::kRefused)}; },
       "the server answers REFUSED: has it the zone"},
      {[](auto id, auto) { return Messages{message(id, {}, dns::Rcode::kServFail)}; },
       "the server answers SERVFAIL"},
      {[](auto id, auto) { return Messages{message(id, {kAddress, kSoa})}; },
       "the zone does not begin with its SOA"},
      {[](auto id, auto) { return Messages{message(id, {kSoa, kAddress})}; },
       "the server closed the connection"},
      {[](auto id, auto) { return Messages{message(id + 1, {kSoa, kSoa})}; },
       "no answer to the query"},
      {[](auto, auto) { return Messages{Bytes(5, 0)}; }, ""},
      {[](auto, auto) { return Messages{}; }, "the server closed the connection"},
  };
  for (const auto& [answer, reason] : cases) {
    const OneAnswer server(answer);
    RecordSet records(name("example."));
    const auto done = transfer(server, records);
    ASSERT_FALSE(done) << reason;
    EXPECT_THAT(done.error().text, StartsWith(reason));
  }
}

TEST(TransferClient, AServerThatSendsWithoutEndIsGivenUp) {
  const OneAnswer server([](std::uint16_t id, const Bytes&) {
    std::vector<Bytes> endless{message(id, {kSoa})};
    endless.resize(1000, message(id, {kAddress, kAddress, kAddress}));
    return endless;
  });
  RecordSet records(name("example."));
  const auto done = transfer(server, records, nullptr, 10'000);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("more than 10000 bytes"));
}

TEST(TransferClient, WithAKeyAllMessagesAreSigned) {
  dns::TsigKeyring keys;
  ASSERT_TRUE(keys.add({name("key."), dns::TsigAlgorithm::kSha256, Bytes(32, 1)}));
  for (const bool sign : {true, false}) {
    const OneAnswer server([sign, &keys](std::uint16_t id, const Bytes& query) {
      const auto tsig = dns::find_tsig(query);
      EXPECT_TRUE(tsig && *tsig);
      const auto now = static_cast<std::uint64_t>(std::time(nullptr));
      const auto verdict = dns::TsigSession::verify_request(query, **tsig, keys, now);
      EXPECT_EQ(verdict.rcode, dns::Rcode::kNoError);
      auto session = dns::TsigSession::for_response(verdict);
      Bytes answer = message(id, {kSoa, kAddress, kSoa});
      if (sign) {
        EXPECT_TRUE(session.sign(answer, now));
      }
      return std::vector<Bytes>{answer};
    });
    RecordSet records(name("example."));
    EXPECT_EQ(transfer(server, records, keys.find(name("key."))).has_value(), sign);
  }
}

TEST(TransferClient, AServerThatIsNotThereIsTold) {
  const Fd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // bound, and does not listen
  Endpoint at{IpAddress::from_text("127.0.0.1").value(), 0};
  sockaddr_storage address{};
  socklen_t length = at.to_sockaddr(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(taken.get(), raw, length), 0);
  ASSERT_EQ(::getsockname(taken.get(), raw, &length), 0);
  RecordSet records(name("example."));
  const auto done =
      transfer_zone({Endpoint::from_sockaddr(raw), nullptr, std::chrono::seconds(20)}, records);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("refused"));
}

}  // namespace transfer_client_test
}  // namespace pando::ctl
