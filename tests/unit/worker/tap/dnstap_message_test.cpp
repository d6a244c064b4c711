#include "worker/tap/dnstap_message.h"

#include <gtest/gtest.h>

namespace pando::worker {
namespace dnstap_message_test {

Endpoint endpoint(const char* text) { return Endpoint::from_text(text).value(); }

/// A header alone, with this third octet (QR, opcode, flags).
Bytes header(std::uint8_t flags) {
  Bytes message(12, 0);
  message[2] = flags;
  return message;
}

Exchange exchange() {
  Exchange made;
  made.client = {endpoint("192.0.2.1@1024"), endpoint("192.0.2.53@53"), ipc::Transport::kUdp};
  made.received = {300, 7};
  made.zone = {1, 'a', 0};
  return made;
}

TEST(DnstapMessage, TheTypeFollowsQrAndOpcode) {
  EXPECT_EQ(dnstap_type(header(0x00)), DnstapType::kAuthQuery);
  EXPECT_EQ(dnstap_type(header(0x80)), DnstapType::kAuthResponse);
  EXPECT_EQ(dnstap_type(header(0x84)), DnstapType::kAuthResponse);
  EXPECT_EQ(dnstap_type(header(5 << 3)), DnstapType::kUpdateQuery);
  EXPECT_EQ(dnstap_type(header(0x80 | 5 << 3)), DnstapType::kUpdateResponse);
  EXPECT_EQ(dnstap_type(header(4 << 3)), DnstapType::kAuthQuery) << "NOTIFY";
}

TEST(DnstapMessage, ThePrefixHasIdentityVersionAndType) {
  EXPECT_EQ(dnstap_prefix("ns", "v"),
            (Bytes{1 << 3 | 2, 2, 'n', 's', 2 << 3 | 2, 1, 'v', 15 << 3, 1}));
  EXPECT_EQ(dnstap_prefix("", ""), (Bytes{15 << 3, 1}));
}

TEST(DnstapMessage, AQueryHasTheOctetsOfTheSchema) {
  Bytes head;
  put_dnstap_head(exchange(), header(0), {301, 8}, head);
  const Bytes message{
      1 << 3, 1,                          // AUTH_QUERY
      2 << 3, 1,                          // INET
      3 << 3, 1,                          // UDP
      4 << 3 | 2, 4, 192, 0, 2, 1,        // query_address
      5 << 3 | 2, 4, 192, 0, 2, 53,       // response_address
      6 << 3, 0x80, 0x08,                 // query_port 1024
      7 << 3, 53,                         // response_port
      8 << 3, 0xAC, 0x02,                 // query_time_sec 300
      9 << 3 | 5, 7, 0, 0, 0,             // query_time_nsec
      10 << 3 | 2, 12,                    // query_message follows
  };
  Bytes expected{14 << 3 | 2, static_cast<std::uint8_t>(message.size() + 12)};
  append(expected, message);
  EXPECT_EQ(head, expected);
}

TEST(DnstapMessage, AResponseHasZoneAndBothTimes) {
  Exchange over_tls = exchange();
  over_tls.client = {endpoint("2001:db8::1@1"), endpoint("2001:db8::53@853"),
                     ipc::Transport::kTls};
  Bytes head;
  put_dnstap_head(over_tls, header(0x80), {301, 0x01020304}, head);
  Bytes message{1 << 3, 2, 2 << 3, 2, 3 << 3, 3, 4 << 3 | 2, 16};
  append(message, over_tls.client.remote.address.octets);
  append(message, Bytes{5 << 3 | 2, 16});
  append(message, over_tls.client.local.address.octets);
  append(message, Bytes{6 << 3, 1, 7 << 3, 0xD5, 0x06});        // ports 1 and 853
  append(message, Bytes{8 << 3, 0xAC, 0x02, 9 << 3 | 5, 7, 0, 0, 0});
  append(message, Bytes{11 << 3 | 2, 3, 1, 'a', 0});            // query_zone
  append(message, Bytes{12 << 3, 0xAD, 0x02, 13 << 3 | 5, 4, 3, 2, 1});
  append(message, Bytes{14 << 3 | 2, 12});                      // response_message follows
  Bytes expected{14 << 3 | 2, static_cast<std::uint8_t>(message.size() + 12)};
  append(expected, message);
  EXPECT_EQ(head, expected);
}

TEST(DnstapMessage, LengthsAboveOneOctetCountTheMessage) {
  Bytes response(40'000, 0);
  response[2] = 0x80;
  Exchange no_zone = exchange();
  no_zone.zone.clear();
  Bytes head;
  put_dnstap_head(no_zone, response, {0, 0}, head);
  ASSERT_EQ(head[0], 14 << 3 | 2);
  // A varint of three octets, and all that stands behind it.
  const std::size_t length =
      (head[1] & 0x7FU) | (head[2] & 0x7FU) << 7 | std::size_t{head[3]} << 14;
  EXPECT_EQ(length, head.size() - 4 + response.size());
}

}  // namespace dnstap_message_test
}  // namespace pando::worker
