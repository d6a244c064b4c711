#include "zone/settings/compiled_settings.h"

#include <gtest/gtest.h>

#include <random>

#include "zone/settings/acl.h"

namespace pando::zone {
namespace compiled_settings_test {

dns::Name name(const char* text) { return *dns::Name::from_text(text); }
IpAddress address(const char* text) { return *IpAddress::from_text(text); }

AclRule for_address(const char* prefix, bool deny = false) {
  AclRule rule;
  rule.address = *IpPrefix::from_text(prefix);
  rule.deny = deny;
  return rule;
}

AclRule for_key(const char* key) {
  AclRule rule;
  rule.key = name(key);
  return rule;
}

AclRule for_tls(const char* remote, bool deny = false) {
  AclRule rule;
  rule.tls = std::string(remote);
  rule.deny = deny;
  return rule;
}

ZoneSettings full_settings() {
  ZoneSettings settings;
  settings.allow_query = {AclRule{}};
  AclRule update = for_key("update-key.");
  update.names = {name("*.dyn.example.com."), name("a.example.com.")};
  update.types = {dns::RRType::kA, dns::RRType::kAAAA};
  settings.allow_update = {update};
  AclRule both = for_key("k.");
  both.address = *IpPrefix::from_text("2001:db8::/32");
  settings.allow_transfer = {for_address("192.0.2.9", true), for_address("192.0.2.0/24"), both};
  settings.allow_notify = {for_address("::/0"), for_tls("second"), for_tls("any", true)};
  settings.is_secondary = true;
  settings.forward_updates = true;
  return settings;
}

const ServerSettings kServer{
    .identity = "ns1.example.net",
    .version = "1.0",
    .proxies = {*IpPrefix::from_text("10.0.0.0/8"), *IpPrefix::from_text("2001:db8::/32")},
    .udp_payload = 1400,
    .minimal_responses = false,
    .tcp_clients = 77,
    .tcp_idle_ms = 12345,
    .tls_clients = 78,
    .tls_idle_ms = 54321,
    .rate_limit = {
        .responses = 50,
        .slip = 3,
        .ipv4_prefix = 28,
        .ipv6_prefix = 48,
        .exempt = {*IpPrefix::from_text("192.0.2.0/24"), *IpPrefix::from_text("2001:db8::/32")}}};

TEST(ZoneSettings, SurviveEncoding) {
  for (const ZoneSettings& settings : {ZoneSettings{}, full_settings()}) {
    const auto decoded = decode_zone_settings(encode(settings));
    ASSERT_TRUE(decoded) << decoded.error().text;
    EXPECT_EQ(*decoded, settings);
  }
}

TEST(ZoneSettings, FlagsAreKeptApart) {
  for (const bool secondary : {false, true})
    for (const bool forward : {false, true}) {
      ZoneSettings settings;
      settings.is_secondary = secondary;
      settings.forward_updates = forward;
      const auto decoded = decode_zone_settings(encode(settings));
      ASSERT_TRUE(decoded);
      EXPECT_EQ(*decoded, settings);
    }
}

TEST(ServerSettings, SurviveEncoding) {
  for (const ServerSettings& settings : {ServerSettings{}, kServer}) {
    const auto decoded = decode_server_settings(encode(settings));
    ASSERT_TRUE(decoded) << decoded.error().text;
    EXPECT_EQ(*decoded, settings);
  }
}

TEST(ZoneSettings, CutAnywhereAreCorrupt) {
  const Bytes whole = encode(full_settings());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto decoded = decode_zone_settings(ByteView(whole).first(size));
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
  }
}

TEST(ServerSettings, CutAnywhereAreCorrupt) {
  const Bytes whole = encode(kServer);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode_server_settings(ByteView(whole).first(size))) << size;
}

TEST(ZoneSettings, WithOctetsBehindThemAreCorrupt) {
  Bytes zone = encode(full_settings());
  zone.push_back(0);
  EXPECT_FALSE(decode_zone_settings(zone));
  Bytes server = encode(kServer);
  server.push_back(0);
  EXPECT_FALSE(decode_server_settings(server));
}

TEST(ZoneSettings, OfAnotherFormatAreCorrupt) {
  Bytes bytes = encode(full_settings());
  bytes[0] = 2;
  EXPECT_FALSE(decode_zone_settings(bytes));
}

TEST(ZoneSettings, WithAHugeCountAreCorruptBeforeAnythingIsAllocated) {
  Bytes bytes = encode(ZoneSettings{});
  bytes[2] = 0xFF;  // number of allow-query rules
  EXPECT_FALSE(decode_zone_settings(bytes));
}

TEST(ZoneSettings, DamagedAnywhereDecodeToSomethingValidOrAreCorrupt) {
  const Bytes whole = encode(full_settings());
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    Bytes damaged = whole;
    for (int flips = 0; flips < 3; ++flips)
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    if (const auto decoded = decode_zone_settings(damaged)) {
      EXPECT_EQ(encode(*decoded), damaged) << "two forms of the same settings";
    }
  }
}

TEST(Acl, AnEmptyListRefuses) { EXPECT_FALSE(allowed({}, {address("192.0.2.1")})); }

TEST(Acl, TheFirstMatchingRuleDecides) {
  const Acl acl{for_address("192.0.2.9", true), for_address("192.0.2.0/24")};
  EXPECT_FALSE(allowed(acl, {address("192.0.2.9")}));
  EXPECT_TRUE(allowed(acl, {address("192.0.2.10")}));
  EXPECT_FALSE(allowed(acl, {address("192.0.3.10")}));
}

TEST(Acl, AKeyRuleNeedsThatVerifiedKey) {
  const Acl acl{for_key("Update-Key.")};
  const dns::Name same = name("update-KEY.");
  const dns::Name other = name("other.");
  EXPECT_TRUE(allowed(acl, {address("192.0.2.1"), &same}));
  EXPECT_FALSE(allowed(acl, {address("192.0.2.1"), &other}));
  EXPECT_FALSE(allowed(acl, {address("192.0.2.1")}));
}

TEST(Acl, AddressAndKeyMustBothHold) {
  AclRule rule = for_key("k.");
  rule.address = *IpPrefix::from_text("2001:db8::/32");
  const dns::Name key = name("k.");
  EXPECT_TRUE(allowed({rule}, {address("2001:db8::1"), &key}));
  EXPECT_FALSE(allowed({rule}, {address("2001:db9::1"), &key}));
  EXPECT_FALSE(allowed({rule}, {address("2001:db8::1")}));
}

TEST(Acl, ARuleForAllOfIpv4DoesNotMatchIpv6) {
  const Acl acl{for_address("0.0.0.0/0")};
  EXPECT_TRUE(allowed(acl, {address("203.0.113.1")}));
  EXPECT_FALSE(allowed(acl, {address("2001:db8::1")}));
}

TEST(Acl, ARuleWithoutConditionsMatchesEverybody) {
  EXPECT_TRUE(allowed({AclRule{}}, {address("203.0.113.1")}));
  EXPECT_TRUE(allowed({AclRule{}}, {address("2001:db8::1")}));
}

TEST(Acl, ATlsRuleMatchesNobodyOverUdpOrPlainTcp) {
  const dns::Name key = name("k.");
  AclRule with_key = for_key("k.");
  with_key.tls = std::string("any");
  for (const AclRule& rule : {for_tls("any"), for_tls("second"), with_key}) {
    EXPECT_FALSE(allowed({rule}, {address("192.0.2.1"), &key}));
    EXPECT_FALSE(could_allow({rule}, {address("192.0.2.1"), &key}));
    EXPECT_FALSE(concerns_with_some_key(rule, {address("192.0.2.1"), &key}));
  }
  EXPECT_TRUE(allowed({for_tls("any", true), AclRule{}}, {address("192.0.2.1")}))
      << "a denial for TLS does not concern others";
}

TEST(Acl, ATlsRuleNeedsThatIdentity) {
  const PeerIdentity stranger;
  const PeerIdentity second{{"third", "second"}};
  EXPECT_TRUE(allowed({for_tls("any")}, {address("192.0.2.1"), nullptr, &stranger}));
  EXPECT_FALSE(allowed({for_tls("second")}, {address("192.0.2.1"), nullptr, &stranger}));
  EXPECT_TRUE(allowed({for_tls("second")}, {address("192.0.2.1"), nullptr, &second}));
  EXPECT_FALSE(allowed({for_tls("Second")}, {address("192.0.2.1"), nullptr, &second}))
      << "remotes' names have upper and lower case";
  EXPECT_FALSE(allowed({for_tls("secon")}, {address("192.0.2.1"), nullptr, &second}));
  EXPECT_FALSE(
      allowed({for_tls("any", true), AclRule{}}, {address("192.0.2.1"), nullptr, &second}));
}

TEST(Acl, AddressKeyAndIdentityOfOneRuleHoldTogether) {
  AclRule rule = for_key("k.");
  rule.address = *IpPrefix::from_text("192.0.2.0/24");
  rule.tls = std::string("second");
  const dns::Name key = name("k.");
  const dns::Name other = name("other.");
  const PeerIdentity second{{"second"}};
  const PeerIdentity third{{"third"}};
  EXPECT_TRUE(allowed({rule}, {address("192.0.2.1"), &key, &second}));
  EXPECT_FALSE(allowed({rule}, {address("192.0.3.1"), &key, &second}));
  EXPECT_FALSE(allowed({rule}, {address("192.0.2.1"), &other, &second}));
  EXPECT_FALSE(allowed({rule}, {address("192.0.2.1"), nullptr, &second}));
  EXPECT_FALSE(allowed({rule}, {address("192.0.2.1"), &key, &third}));
  EXPECT_FALSE(allowed({rule}, {address("192.0.2.1"), &key}));
  // NSD issue 486: what one rule and what another rule demand do not add up.
  AclRule from_elsewhere = for_address("198.51.100.0/24");
  from_elsewhere.tls = std::string("third");
  EXPECT_FALSE(allowed({rule, from_elsewhere}, {address("192.0.2.1"), &key, &third}));
}

AclRule for_names(std::vector<dns::Name> names, bool deny = false) {
  AclRule rule = for_address("192.0.2.0/24", deny);
  rule.names = std::move(names);
  return rule;
}

TEST(Acl, OnlyALastLabelSelfIsAboutTheKey) {
  EXPECT_TRUE(is_about_key(name("self.")));
  EXPECT_TRUE(is_about_key(name("_acme-challenge.SELF.")));
  EXPECT_FALSE(is_about_key(name("self.example.")));
  EXPECT_FALSE(is_about_key(name("myself.")));
  EXPECT_FALSE(is_about_key(dns::NameView()));
}

TEST(Acl, ARuleWhosePatternsAreAllAboutTheKeyCouldAllowSignersOnly) {
  const IpAddress client = address("192.0.2.1");
  const dns::Name key = name("host.example.");
  const Acl self{for_names({name("self."), name("_acme-challenge.self.")})};
  EXPECT_FALSE(could_allow(self, {client}));
  EXPECT_TRUE(could_allow(self, {client, &key}));
  EXPECT_FALSE(could_allow(self, {address("192.0.3.1"), &key}));
  EXPECT_TRUE(could_allow({for_names({name("self."), name("www.example.")})}, {client}));
  EXPECT_TRUE(could_allow({self[0], for_address("192.0.2.1")}, {client}));
}

TEST(Acl, OnlyADenialOfAllThatIsLeftIsTheEndOfWhatCouldBeAllowed) {
  const IpAddress client = address("192.0.2.1");
  const AclRule all = for_address("192.0.2.0/24");
  AclRule types = for_address("192.0.2.0/24", true);
  types.types = {dns::RRType::kA};
  EXPECT_TRUE(could_allow({for_names({name("www.example.")}, true), types, all}, {client}));
  EXPECT_TRUE(could_allow({for_names({name("self.")}, true), all}, {client}));
  EXPECT_FALSE(could_allow({for_address("192.0.2.1", true), all}, {client}));
  EXPECT_FALSE(could_allow({types}, {client}));
  EXPECT_FALSE(could_allow({}, {client}));
}

}  // namespace compiled_settings_test
}  // namespace pando::zone
