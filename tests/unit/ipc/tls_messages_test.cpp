#include "ipc/tls_messages.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace pando::ipc {
namespace tls_messages_test {

Endpoint endpoint(const char* text) { return Endpoint::from_text(text).value(); }
IpPrefix prefix(const char* text) { return IpPrefix::from_text(text).value(); }

std::vector<FromTls> messages_of_tls() {
  return {TlsHello{3, "00ff"}, TlsCertificateResult{"key and certificate differ"},
          TlsCounts{1, 2, 3, 4, 5, 6, 7, 8}};
}

std::vector<ToTls> messages_to_tls() {
  TlsTicketKey key{};
  key.back() = 9;
  return {TlsCertificate{},
          TlsTicketKeys{{key, TlsTicketKey{}}},
          TlsDemands{},
          TlsLimits{1, 2, 3, 4, 5, {prefix("192.0.2.0/24"), prefix("2001:db8::/32")}},
          TlsListen{{{7, endpoint("2001:db8::1@853"), Transport::kTls, 3, false}}},
          TlsUnlisten{{7, 8}},
          TlsWorker{4},
          Logging{"debug", "json"},
          TlsStop{30'000}};
}

TEST(TlsMessages, EveryMessageSurvivesARoundTrip) {
  for (const FromTls& message : messages_of_tls()) {
    const auto decoded = decode_from_tls(encode(message));
    ASSERT_TRUE(decoded) << decoded.error().text;
    EXPECT_EQ(*decoded, message) << message.index();
  }
  for (const ToTls& message : messages_to_tls()) {
    const auto decoded = decode_to_tls(encode(message));
    ASSERT_TRUE(decoded) << decoded.error().text;
    EXPECT_EQ(*decoded, message) << message.index();
  }
  const TlsConnection connection{endpoint("192.0.2.1@4000"), endpoint("192.0.2.2@853"), "dot",
                                 0x0304, {"second", "third"}};
  const auto decoded = decode_tls_connection(encode(connection));
  ASSERT_TRUE(decoded) << decoded.error().text;
  EXPECT_EQ(*decoded, connection);
}

TEST(TlsMessages, NoPartOfAMessageIsAMessage) {
  const TlsConnection connection{endpoint("192.0.2.1@4000"), endpoint("192.0.2.2@853"), "dot",
                                 0x0304, {"second"}};
  Bytes packet = encode(connection);
  for (std::size_t length = 0; length < packet.size(); ++length)
    EXPECT_FALSE(decode_tls_connection(ByteView(packet).first(length))) << length;
  packet.push_back(0);
  EXPECT_FALSE(decode_tls_connection(packet));
}

TEST(TlsMessages, APrefixLongerThanAnAddressIsRefused) {
  Bytes packet = encode(ToTls(TlsLimits{1, 2, 3, 4, 5, {prefix("::/0")}}));
  packet.back() = 129;
  EXPECT_FALSE(decode_to_tls(packet));
}

TEST(TlsMessages, DemandsSurviveARoundTripAndHaveWholePins) {
  const std::vector<TlsDemand> demands{
      {"second", "ns2.example", Bytes(200'000, 'c'), {}},
      {"third", "", {}, {Bytes(32, 1), Bytes(32, 2), Bytes(32, 3), Bytes(32, 4)}}};
  const auto decoded = decode_tls_demands(encode(demands));
  ASSERT_TRUE(decoded) << decoded.error().text;
  EXPECT_EQ(*decoded, demands);

  auto bad = demands;
  bad[1].pins[3].pop_back();
  EXPECT_FALSE(decode_tls_demands(encode(bad)));
  bad[1].pins = std::vector<Bytes>(kMaxPins + 1, Bytes(32, 1));
  EXPECT_FALSE(decode_tls_demands(encode(bad)));
}

TEST(TlsFile, HasItsOctetsAndTakesNoOthers) {
  const Bytes octets(100'000, 7);
  const auto file = make_tls_file(octets);
  ASSERT_TRUE(file) << file.error().text;
  const auto read = read_tls_file(file->get());
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(*read, octets);
  const std::uint8_t other = 8;
  EXPECT_LT(::pwrite(file->get(), &other, 1, 0), 0) << "its reader could be deceived later";
  EXPECT_LT(::ftruncate(file->get(), 0), 0);
}

}  // namespace tls_messages_test
}  // namespace pando::ipc
