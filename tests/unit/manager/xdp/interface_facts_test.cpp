#include "manager/xdp/interface_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"

namespace pando::manager {
namespace interface_facts_test {

InterfaceAddress own(const char* address, std::uint16_t vlan = 0) {
  return {IpAddress::from_text(address).value(), vlan};
}

/// The keys as "ADDRESS@PORT", with "/VLAN" for a tagged one.
std::vector<std::string> redirected(const std::vector<const char*>& listen,
                                    std::vector<InterfaceAddress> addresses,
                                    bool has_vlans = false) {
  std::vector<Endpoint> endpoints;
  for (const char* text : listen) endpoints.push_back(Endpoint::from_text(text).value());
  InterfaceFacts facts;
  facts.addresses = std::move(addresses);
  facts.has_vlans = has_vlans;
  std::vector<std::string> shown;
  for (const XdpAddressKey& key : redirected_addresses(endpoints, facts)) {
    shown.push_back(to_text(Endpoint{IpAddress{key.address}, load_be16(key.port.data())}));
    if (key.vlan != 0) shown.back() += "/" + std::to_string(key.vlan);
  }
  return shown;
}

using Keys = std::vector<std::string>;

TEST(RedirectedAddresses, AWildcardIsEachAddressOfTheInterface) {
  const std::vector<InterfaceAddress> addresses{own("192.0.2.1"), own("192.0.2.2"),
                                                own("2001:db8::1")};
  EXPECT_EQ(redirected({"0.0.0.0@53"}, addresses), (Keys{"192.0.2.1@53", "192.0.2.2@53"}));
  EXPECT_EQ(redirected({"::@53", "0.0.0.0@5353"}, addresses),
            (Keys{"192.0.2.1@5353", "192.0.2.2@5353", "2001:db8::1@53"}));
  EXPECT_EQ(redirected({"0.0.0.0@53"}, {}), Keys{});
}

TEST(RedirectedAddresses, AnAddressOfAVlanIsRedirectedWithItsTagAlone) {
  const std::vector<InterfaceAddress> addresses{own("192.0.2.1"), own("198.51.100.1", 7)};
  EXPECT_EQ(redirected({"0.0.0.0@53"}, addresses, true),
            (Keys{"192.0.2.1@53", "198.51.100.1@53/7"}));
  EXPECT_EQ(redirected({"198.51.100.1@53"}, addresses, true), Keys{"198.51.100.1@53/7"});
}

TEST(RedirectedAddresses, AnAddressOfTwoVlansHasBothTags) {
  EXPECT_EQ(redirected({"192.0.2.1"}, {own("192.0.2.1", 7), own("192.0.2.1", 8)}, true),
            (Keys{"192.0.2.1@53/7", "192.0.2.1@53/8"}));
}

TEST(RedirectedAddresses, AnAddressOfAnotherInterfaceNeedsAnInterfaceWithoutVlans) {
  EXPECT_EQ(redirected({"203.0.113.53"}, {own("192.0.2.1")}), Keys{"203.0.113.53@53"});
  EXPECT_EQ(redirected({"203.0.113.53"}, {own("192.0.2.1")}, true), Keys{});
}

TEST(InterfaceFacts, AnInterfaceThatIsNoneOrNoEthernetIsAnError) {
  const auto none = look_at_interface("nosuchif0");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kNotFound);
  const auto loopback = look_at_interface("lo");
  ASSERT_FALSE(loopback);
  EXPECT_EQ(loopback.error().code, Errc::kUnsupported) << loopback.error().text;
}

}  // namespace interface_facts_test
}  // namespace pando::manager
