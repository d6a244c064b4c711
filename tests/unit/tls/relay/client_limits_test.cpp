#include "tls/relay/client_limits.h"

#include <gtest/gtest.h>

namespace pando::tls {
namespace client_limits_test {

using Verdict = ClientLimits::Verdict;

const IpAddress kOne = *IpAddress::from_text("192.0.2.1");
const IpAddress kOther = *IpAddress::from_text("192.0.2.2");

ipc::TlsLimits limits(std::uint32_t connections, std::uint32_t handshakes, std::uint32_t second) {
  ipc::TlsLimits limits;
  limits.connections = connections;
  limits.handshakes = handshakes;
  limits.handshakes_second = second;
  return limits;
}

ClientLimits with(const ipc::TlsLimits& values) {
  ClientLimits made;
  made.set(values);
  return made;
}

TEST(ClientLimits, HoldsTheNumberOfConnections) {
  auto clients = with(limits(2, 1000, 1000));
  EXPECT_EQ(clients.open(), Verdict::kAdmitted);
  EXPECT_EQ(clients.open(), Verdict::kAdmitted);
  EXPECT_EQ(clients.open(), Verdict::kConnections);
  clients.close(nullptr);
  EXPECT_EQ(clients.open(), Verdict::kAdmitted);
}

TEST(ClientLimits, OneHolderHasAQuarterOfTheConnections) {
  auto clients = with(limits(400, 10'000, 10'000));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(clients.begin(kOne, 1000), Verdict::kAdmitted) << i;
  EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kConnections);
  EXPECT_EQ(clients.begin(kOther, 1000), Verdict::kAdmitted);
  clients.close(&kOne);
  EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kAdmitted);
}

TEST(ClientLimits, AFewConnectionsAreAdmittedWhateverTheLimit) {
  auto clients = with(limits(8, 10'000, 10'000));
  for (std::size_t i = 0; i < ClientLimits::kPlacesAnyway; ++i)
    EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kAdmitted) << i;
  EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kConnections);
}

TEST(ClientLimits, HandshakesThatEndedMakeRoom) {
  auto clients = with(limits(10'000, 100, 10'000));
  for (int i = 0; i < 25; ++i) ASSERT_EQ(clients.begin(kOne, 1000), Verdict::kAdmitted) << i;
  EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kHandshakes);
  clients.end_handshake(kOne);
  EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kAdmitted);
}

TEST(ClientLimits, AllHoldersTogetherHaveALimitOfHandshakes) {
  auto clients = with(limits(10'000, 64, 10'000));
  IpAddress address = kOne;
  for (std::uint8_t i = 0; i < 64; ++i) {
    address.octets[15] = i;
    ASSERT_EQ(clients.begin(address, 1000), Verdict::kAdmitted) << int{i};
  }
  address.octets[15] = 64;
  EXPECT_EQ(clients.begin(address, 1000), Verdict::kHandshakes);
}

TEST(ClientLimits, AHolderHasARateOfHandshakes) {
  auto clients = with(limits(10'000, 10'000, 20));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(clients.begin(kOne, 1000), Verdict::kAdmitted) << i;
    clients.end_handshake(kOne);
    clients.close(&kOne);
  }
  EXPECT_EQ(clients.begin(kOne, 1000), Verdict::kRate);
  EXPECT_EQ(clients.begin(kOther, 1000), Verdict::kAdmitted);
  EXPECT_EQ(clients.begin(kOne, 1051), Verdict::kAdmitted) << "one each 50 ms";
  EXPECT_EQ(clients.begin(kOne, 1051), Verdict::kRate);
}

TEST(ClientLimits, AHolderIsNotForgottenBeforeItsRateIsFree) {
  auto clients = with(limits(10'000, 10'000, 20));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(clients.begin(kOne, 1900), Verdict::kAdmitted) << i;
    clients.end_handshake(kOne);
    clients.close(&kOne);
  }
  EXPECT_EQ(clients.begin(kOther, 2001), Verdict::kAdmitted) << "holders are looked at";
  EXPECT_EQ(clients.begin(kOne, 2001), Verdict::kAdmitted);
  EXPECT_EQ(clients.begin(kOne, 2001), Verdict::kAdmitted) << "two in 100 ms";
  EXPECT_EQ(clients.begin(kOne, 2001), Verdict::kRate);
}

}  // namespace client_limits_test
}  // namespace pando::tls
