#include "worker/tap/query_log_line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "dns/message/message.h"

namespace pando::worker {
namespace query_log_line_test {

Endpoint endpoint(const char* text) { return Endpoint::from_text(text).value(); }

Exchange exchange() {
  Exchange made;
  made.client = {endpoint("192.0.2.1@1024"), endpoint("198.51.100.53@53"), ipc::Transport::kUdp};
  made.received = {1795651200, 7'008'009};
  made.zone = {1, 'a', 0};
  return made;
}

/// A query for `name` (wire form) of type A with RD, and whatever follows the question.
Bytes query(const Bytes& name, const Bytes& more = {}, std::uint8_t additional = 0) {
  Bytes message{0, 1, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, additional};
  append(message, name);
  append(message, Bytes{0, 1, 0, 1});
  append(message, more);
  return message;
}
const Bytes kName{3, 'W', 'w', 'w', 1, 'a', 0};
const Bytes kOptWithDo{0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0};

Bytes response(std::uint8_t flags, std::uint8_t rcode) {
  Bytes message = query(kName);
  message[2] = static_cast<std::uint8_t>(0x80 | flags);
  message[3] = rcode;
  return message;
}

std::string line(ExchangeEnd end, const Bytes& request, const Bytes& response,
                 const Exchange& told = exchange()) {
  std::string out;
  put_query_log_line(told, end, request, response, {1795651200, 7'131'009}, out);
  return out;
}

TEST(QueryLogLine, HasEveryKeyOfAnAnsweredQuery) {
  EXPECT_EQ(line(ExchangeEnd::kAnswered, query(kName, kOptWithDo, 1), response(0x04, 3)),
            "{\"time\":\"2026-11-26T00:00:00.007008Z\",\"client\":\"192.0.2.1\",\"port\":1024,"
            "\"server\":\"198.51.100.53\",\"protocol\":\"udp\",\"opcode\":\"QUERY\","
            "\"qname\":\"Www.a.\",\"qtype\":\"A\",\"qclass\":\"IN\",\"flags\":[\"rd\",\"edns\","
            "\"do\"],\"key\":null,\"zone\":\"a.\",\"result\":\"answered\",\"rcode\":\"NXDOMAIN\","
            "\"response_flags\":[\"aa\"],\"answers\":0,\"request_size\":34,\"size\":23,"
            "\"duration_us\":123}\n");
}

TEST(QueryLogLine, OfARequestWithoutResponseHasTheSameKeys) {
  Exchange told = exchange();
  told.zone.clear();
  told.client.transport = ipc::Transport::kTcp;
  EXPECT_EQ(line(ExchangeEnd::kDropped, query(kName), {}, told),
            "{\"time\":\"2026-11-26T00:00:00.007008Z\",\"client\":\"192.0.2.1\",\"port\":1024,"
            "\"server\":\"198.51.100.53\",\"protocol\":\"tcp\",\"opcode\":\"QUERY\","
            "\"qname\":\"Www.a.\",\"qtype\":\"A\",\"qclass\":\"IN\",\"flags\":[\"rd\"],"
            "\"key\":null,\"zone\":null,\"result\":\"dropped\",\"rcode\":null,"
            "\"response_flags\":[],\"answers\":null,\"request_size\":23,\"size\":null,"
            "\"duration_us\":null}\n");
  EXPECT_NE(line(ExchangeEnd::kTransfer, query(kName), {}).find("\"result\":\"transfer\""),
            std::string::npos);
}

TEST(QueryLogLine, OfAMalformedRequestHasNoQuestion) {
  Bytes cut = query(kName);
  cut.resize(14);
  const std::string told = line(ExchangeEnd::kAnswered, cut, response(0, 1));
  EXPECT_NE(told.find("\"qname\":null,\"qtype\":null,\"qclass\":null"), std::string::npos) << told;
  EXPECT_NE(told.find("\"rcode\":\"FORMERR\""), std::string::npos) << told;
}

TEST(QueryLogLine, AnExtendedRcodeComesFromTheOptRecord) {
  Bytes badvers = response(0, 0);
  badvers[11] = 1;
  append(badvers, Bytes{0, 0, 41, 4, 208, 1, 0, 0, 0, 0, 0});
  EXPECT_NE(line(ExchangeEnd::kAnswered, query(kName), badvers).find("\"rcode\":\"BADVERS\""),
            std::string::npos);
}

TEST(QueryLogLine, NoOctetOfANameEndsStringOrLine) {
  for (int octet = 0; octet < 256; ++octet) {
    const auto c = static_cast<std::uint8_t>(octet);
    const std::string told =
        line(ExchangeEnd::kAnswered, query({4, 'x', c, '"', c, 0}), response(0, 0));
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << octet;
    EXPECT_TRUE(std::all_of(told.begin(), told.end() - 1, [](char one) {
      return one >= ' ' && one <= '~';
    })) << octet;
    EXPECT_NE(told.find("\\\\\\\""), std::string::npos) << "a quote is escaped twice: " << told;
  }
}

TEST(QueryLogLine, OfTheLongestNamesFitsTheManagersBound) {
  constexpr std::size_t kManagersBound = 8192;
  Bytes name;
  for (const std::size_t length : {63U, 63U, 63U, 61U}) {
    name.push_back(static_cast<std::uint8_t>(length));
    name.insert(name.end(), length, 0);
  }
  name.push_back(0);
  Exchange told = exchange();
  told.zone = name;
  EXPECT_LT(line(ExchangeEnd::kAnswered, query(name), response(0, 0), told).size(),
            kManagersBound - 1300) << "a key's name may be as long";
}

TEST(QueryLogLine, AClockThatWasPutBackGivesNoTime) {
  Exchange told = exchange();
  told.received.tv_sec += 100;
  EXPECT_NE(line(ExchangeEnd::kAnswered, query(kName), response(0, 0), told)
                .find("\"duration_us\":0}"),
            std::string::npos);
}

}  // namespace query_log_line_test
}  // namespace pando::worker
