#include "base/net/proxy_header.h"

#include <gtest/gtest.h>

#include <random>

namespace pando {
namespace proxy_header_test {

using Kind = ProxyHeader::Kind;

const Bytes kSignature{0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A};

Bytes header(std::uint8_t command, std::uint8_t family, const Bytes& rest) {
  Bytes octets = kSignature;
  octets.push_back(static_cast<std::uint8_t>(0x20 | command));
  octets.push_back(family);
  append_be16(octets, static_cast<std::uint16_t>(rest.size()));
  append(octets, rest);
  return octets;
}

const Bytes kV4{192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0, 53};

Bytes v6_block() {
  Bytes block(36, 0);
  block[0] = block[16] = 0x20;
  block[1] = block[17] = 0x01;
  block[15] = 1;
  block[31] = 2;
  block[33] = 7;
  block[35] = 53;
  return block;
}

TEST(ProxyHeader, NamesClientAndServerOfIpv4) {
  for (const std::uint8_t family : {std::uint8_t{0x11}, std::uint8_t{0x12}}) {  // over TCP and UDP
    const ProxyHeader read = read_proxy_header(header(1, family, kV4));
    EXPECT_EQ(read.kind, Kind::kProxied);
    EXPECT_EQ(read.size, 28U);
    EXPECT_EQ(to_text(read.source), "192.0.2.1@4660");
    EXPECT_EQ(to_text(read.destination), "198.51.100.2@53");
    EXPECT_EQ(read.source.address, *IpAddress::from_text("192.0.2.1"));
  }
}

TEST(ProxyHeader, NamesClientAndServerOfIpv6) {
  const ProxyHeader read = read_proxy_header(header(1, 0x22, v6_block()));
  EXPECT_EQ(read.kind, Kind::kProxied);
  EXPECT_EQ(read.size, 52U);
  EXPECT_EQ(to_text(read.source), "2001::1@7");
  EXPECT_EQ(to_text(read.destination), "2001::2@53");
}

TEST(ProxyHeader, FieldsBehindTheAddressesAndTheMessageAreLeftAlone) {
  Bytes block = kV4;
  append(block, Bytes{0x03, 0, 4, 1, 2, 3, 4});  // a checksum
  Bytes octets = header(1, 0x11, block);
  append(octets, Bytes(40, 0xAA));
  const ProxyHeader read = read_proxy_header(octets);
  EXPECT_EQ(read.kind, Kind::kProxied);
  EXPECT_EQ(read.size, octets.size() - 40);
}

TEST(ProxyHeader, LocalAndUnspecifiedMeanTheConnectionsOwnAddresses) {
  EXPECT_EQ(read_proxy_header(header(0, 0, {})).kind, Kind::kLocal);
  EXPECT_EQ(read_proxy_header(header(0, 0x11, kV4)).size, 28U);
  EXPECT_EQ(read_proxy_header(header(0, 0x11, kV4)).kind, Kind::kLocal);
  EXPECT_EQ(read_proxy_header(header(1, 0, {})).kind, Kind::kLocal);
}

TEST(ProxyHeader, OtherVersionsCommandsAndFamiliesAreMalformed) {
  EXPECT_EQ(read_proxy_header(header(2, 0x11, kV4)).kind, Kind::kMalformed);
  EXPECT_EQ(read_proxy_header(header(1, 0x31, Bytes(216))).kind, Kind::kMalformed);
  EXPECT_EQ(read_proxy_header(header(1, 0x41, kV4)).kind, Kind::kMalformed);
  Bytes octets = header(1, 0x11, kV4);
  octets[12] = 0x11;
  EXPECT_EQ(read_proxy_header(octets).kind, Kind::kMalformed);
}

TEST(ProxyHeader, AddressesThatAreCutShortAreMalformed) {
  for (std::size_t size = 0; size < kV4.size(); ++size)
    EXPECT_EQ(read_proxy_header(header(1, 0x11, Bytes(size))).kind, Kind::kMalformed) << size;
  EXPECT_EQ(read_proxy_header(header(1, 0x21, Bytes(35))).kind, Kind::kMalformed);
}

TEST(ProxyHeader, IsIncompleteUntilItsLastOctet) {
  const Bytes whole = header(1, 0x21, v6_block());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(read_proxy_header(ByteView(whole).first(size)).kind, Kind::kIncomplete) << size;
}

TEST(ProxyHeader, AnythingElseIsNone) {
  Bytes query{0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(read_proxy_header(query).kind, Kind::kNone);
  for (std::size_t i = 0; i < kSignature.size(); ++i) {
    Bytes octets = header(1, 0x11, kV4);
    octets[i] ^= 1;
    EXPECT_EQ(read_proxy_header(octets).kind, Kind::kNone) << i;
  }
}

TEST(ProxyHeader, RandomOctetsBehindTheSignatureNeverReachBeyondTheEnd) {
  std::mt19937 random(20260);
  for (int round = 0; round < 20000; ++round) {
    Bytes octets = kSignature;
    const std::size_t more = random() % 80;
    for (std::size_t i = 0; i < more; ++i) octets.push_back(static_cast<std::uint8_t>(random()));
    if (more > 3) octets[14] = 0;
    const ProxyHeader read = read_proxy_header(octets);
    if (read.kind == Kind::kLocal || read.kind == Kind::kProxied) {
      ASSERT_LE(read.size, octets.size());
    }
  }
}

}  // namespace proxy_header_test
}  // namespace pando
