#include "base/address.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <string>

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

/// The address as a socket gives it.
IpAddress received(const char* text, std::uint32_t scope) {
  sockaddr_in6 from{};
  from.sin6_family = AF_INET6;
  const auto octets = IpAddress::from_text(text)->octets;
  std::memcpy(&from.sin6_addr, octets.data(), octets.size());
  from.sin6_scope_id = scope;
  return IpAddress::from_sockaddr(reinterpret_cast<const sockaddr*>(&from));
}

TEST(LinkLocal, HasItsInterface) {
  for (const char* text : {"fe80::1%lo", "fe80::53%absent0", "fe80::1%3", "febf::a:b:c:d%lo"}) {
    const auto address = IpAddress::from_text(text);
    ASSERT_TRUE(address) << text;
    EXPECT_TRUE(address->is_link_local());
    EXPECT_EQ(to_text(*address), text);
    EXPECT_EQ(IpAddress::from_text(text).value(), *address);
    EXPECT_EQ(Endpoint::from_text(std::string(text) + "@5353")->address, *address);
  }
  EXPECT_NE(*IpAddress::from_text("fe80::1%lo"), *IpAddress::from_text("fe80::1%absent0"));
  EXPECT_EQ(to_text(IpAddress::from_text("fe80::1%lo")->without_scope()), "fe80::1");
  for (const char* text : {"2001:db8::1%lo", "127.0.0.1%lo", "::ffff:127.0.0.1%lo", "fe80::1%",
                           "fe80::1%a/b", "fe80::1%0", "fe80:0:1::1", "fe80:0:0:1::1%lo", "%lo"})
    EXPECT_FALSE(IpAddress::from_text(text)) << text;
}

TEST(LinkLocal, IsTheSameFromASocketOnceItsInterfaceIsKnown) {
  const auto lo = static_cast<std::uint32_t>(::if_nametoindex("lo"));
  const auto configured = IpAddress::from_text("fe80::1%lo").value();
  EXPECT_EQ(configured.resolved(), received("fe80::1", lo));
  EXPECT_NE(configured.resolved(), received("fe80::1", lo + 1));
  EXPECT_NE(IpAddress::from_text("fe80::1%absent0")->resolved(), received("fe80::1", lo));
  EXPECT_EQ(received("2001:db8::1", 5), *IpAddress::from_text("2001:db8::1")) << "no scope there";
  EXPECT_EQ(to_text(received("fe80::1", 77)), "fe80::1%77");

  sockaddr_storage storage;
  ASSERT_EQ((Endpoint{configured, 53}).to_sockaddr(storage), sizeof(sockaddr_in6));
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  EXPECT_EQ(v6.sin6_scope_id, lo);
  EXPECT_EQ(v6.sin6_addr.s6_addr[4] | v6.sin6_addr.s6_addr[7], 0) << "no scope on the wire";
  EXPECT_EQ(Endpoint::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage)),
            (Endpoint{configured, 53}).resolved());
}

TEST(LinkLocal, APrefixIsOneInterfacesOrAll) {
  const auto lo = static_cast<std::uint32_t>(::if_nametoindex("lo"));
  const auto contains = [](const char* prefix, const IpAddress& address) {
    return IpPrefix::from_text(prefix)->contains(address);
  };
  for (const char* prefix : {"fe80::1%lo", "fe80::1", "fe80::%lo/64", "fe80::/64", "fe80::/10"})
    EXPECT_TRUE(contains(prefix, received("fe80::1", lo))) << prefix;
  for (const char* prefix : {"fe80::1", "fe80::/64", "fe80::/10"})
    EXPECT_TRUE(contains(prefix, received("fe80::1", lo + 1))) << prefix;
  for (const char* prefix : {"fe80::1%lo", "fe80::%lo/64", "fe80::1%absent0", "fe80::2"})
    EXPECT_FALSE(contains(prefix, received("fe80::1", lo + 1))) << prefix;
  EXPECT_FALSE(contains("fe80::/64", *IpAddress::from_text("2001:db8::1")));
  EXPECT_EQ(to_text(IpPrefix::from_text("fe80::%lo/64").value()), "fe80::%lo/64");
  for (const char* text : {"fe80::%lo/10", "fe80::%lo/63", "fe80::1%lo/64", "fe80::1/64%lo"})
    EXPECT_FALSE(IpPrefix::from_text(text)) << text;
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

TEST(InterfaceNames, ANameHasOneScopeAndANumberIsOne) {
  const auto eth0 = scope_from_text("eth0");
  ASSERT_TRUE(eth0);
  EXPECT_TRUE(is_interface_name(*eth0));
  EXPECT_EQ(*scope_from_text("eth0"), *eth0);
  EXPECT_NE(*scope_from_text("eth1"), *eth0);
  EXPECT_EQ(scope_to_text(*eth0), "eth0");
  EXPECT_EQ(*scope_from_text("7"), 7U);
  EXPECT_FALSE(is_interface_name(7));
  EXPECT_EQ(scope_to_text(7), "7");
}

TEST(InterfaceNames, NumbersAreThoseOfNow) {
  EXPECT_EQ(interface_number(*scope_from_text("lo")), ::if_nametoindex("lo"));
  EXPECT_EQ(interface_number(*scope_from_text("absent0")), kNoInterface);
  EXPECT_EQ(interface_number(3), 3U);
  EXPECT_EQ(interface_number(0), 0U);
}

TEST(InterfaceNames, OtherTextsAreRefused) {
  for (const char* text : {"", "0", "2147483647", "4294967295", ".", "..", "a b", "a/b", "a:b",
                           "a\nb", "abcdefghijklmnop"})
    EXPECT_FALSE(scope_from_text(text)) << text;
  EXPECT_TRUE(scope_from_text("abcdefghijklmno")) << "15 characters are a name's most";
}

TEST(InterfaceNames, TheirNumberIsBounded) {
  const auto fill = [] {  // in a process of its own: other tests need names, too
    int taken = 0;
    for (int i = 0; i < 5000; ++i)
      if (scope_from_text("n" + std::to_string(i))) ++taken;
    const bool known = scope_from_text("n0").has_value();
    std::_Exit(taken > 4000 && taken <= 4096 && known ? 0 : 1);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(0), "");
}

}  // namespace address_test
}  // namespace pando
