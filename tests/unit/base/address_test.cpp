#include "base/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

namespace pando {
namespace address_test {

TEST(IpAddress, ReadsAndWritesBothFamilies) {
  for (const char* text : {"192.0.2.1", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::1"}) {
    const auto address = IpAddress::from_text(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_text(*address), text);
  }
  EXPECT_TRUE(IpAddress::from_text("192.0.2.1")->is_v4());
  EXPECT_FALSE(IpAddress::from_text("::1")->is_v4());
}

TEST(IpAddress, MappedIpv4IsIpv4) {
  EXPECT_EQ(IpAddress::from_text("::ffff:192.0.2.1").value(),
            IpAddress::from_text("192.0.2.1").value());
}

TEST(IpAddress, RefusesEverythingElse) {
  for (const char* text : {"", "192.0.2", "192.0.2.256", "192.0.2.1 ", ":::", "host", "1.2.3.4.5",
                           "192.0.2.1/24", "::1%lo"})
    EXPECT_FALSE(IpAddress::from_text(text)) << text;
  EXPECT_FALSE(IpAddress::from_text(std::string_view("192.0.2.1\0x", 11))) << "a NUL ends nothing";
}

TEST(IpPrefix, CountsInItsOwnFamily) {
  EXPECT_EQ(to_text(IpPrefix::from_text("192.0.2.0/24").value()), "192.0.2.0/24");
  EXPECT_EQ(to_text(IpPrefix::from_text("192.0.2.1").value()), "192.0.2.1/32");
  EXPECT_EQ(to_text(IpPrefix::from_text("0.0.0.0/0").value()), "0.0.0.0/0");
  EXPECT_EQ(to_text(IpPrefix::from_text("2001:db8::/32").value()), "2001:db8::/32");
  EXPECT_EQ(to_text(IpPrefix::from_text("::1").value()), "::1/128");
  EXPECT_EQ(to_text(IpPrefix::from_text("::/0").value()), "::/0");
}

TEST(IpPrefix, RefusesHostBitsAndBadLengths) {
  for (const char* text : {"192.0.2.1/24", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1", "/24",
                           "192.0.2.0/24/1", "2001:db8::1/64", "::/129", "192.0.2.0/2 "})
    EXPECT_FALSE(IpPrefix::from_text(text)) << text;
}

TEST(IpPrefix, ContainsItsAddressesOnly) {
  const auto contains = [](const char* prefix, const char* address) {
    return IpPrefix::from_text(prefix)->contains(*IpAddress::from_text(address));
  };
  EXPECT_TRUE(contains("192.0.2.0/25", "192.0.2.127"));
  EXPECT_FALSE(contains("192.0.2.0/25", "192.0.2.128"));
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.2"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(contains("::/0", "192.0.2.1")) << "::/0 is everything";
  EXPECT_FALSE(contains("0.0.0.0/0", "2001:db8::1"));
}

TEST(Endpoint, HasAPort) {
  EXPECT_EQ(to_text(Endpoint::from_text("127.0.0.1@5300").value()), "127.0.0.1@5300");
  EXPECT_EQ(to_text(Endpoint::from_text("::1").value()), "::1@53");
  EXPECT_EQ(to_text(Endpoint::from_text("::1@65535").value()), "::1@65535");
  for (const char* text : {"", "@53", "127.0.0.1@", "127.0.0.1@0", "127.0.0.1@65536",
                           "127.0.0.1@+1", "127.0.0.1@53@53"})
    EXPECT_FALSE(Endpoint::from_text(text)) << text;
}

TEST(Endpoint, SurvivesTheTripThroughASockaddr) {
  for (const char* text : {"127.0.0.1@5300", "::1@53", "2001:db8::1@1"}) {
    const Endpoint endpoint = *Endpoint::from_text(text);
    sockaddr_storage storage;
    const socklen_t length = endpoint.to_sockaddr(storage);
    EXPECT_EQ(length, endpoint.address.is_v4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    EXPECT_EQ(Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&storage)), endpoint);
  }
}

TEST(IpAddress, OfASocketOfAnotherFamilyIsUnspecified) {
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  EXPECT_EQ(IpAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&storage)), IpAddress{});
}

}  // namespace address_test
}  // namespace pando
