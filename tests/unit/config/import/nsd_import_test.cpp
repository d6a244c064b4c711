#include <filesystem>
#include <fstream>

#include "tests/unit/config/import/import_fixture.h"

namespace pando::config {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace nsd_import_test {

Imported from_nsd(std::string_view text) { return imported(ImportKind::kNsd, text); }

TEST(NsdImport, CaseOfKeysDoesNotCount) {
  const auto result =
      from_nsd("SERVER:\n Zonesdir: \"/Z\"\nZone: Name: a\n ZoneFile: \"%s.Zone\"\n");
  EXPECT_EQ(result.file("a"), "/Z/a.Zone");
}

TEST(NsdImport, MasksArePrefixes) {
  const auto result = from_nsd(R"(
zone:
  name: a
  zonefile: /a
  provide-xfr: 192.0.2.77&255.255.255.0 NOKEY
  provide-xfr: 198.51.100.1&255.255.255.255@53 NOKEY
  provide-xfr: 2001:db8::&ffff:ffff:: NOKEY
  provide-xfr: 10.1.2.3&255.0.255.0 NOKEY
  provide-xfr: 10.1.2.3&ffff:: NOKEY
  allow-notify: 192.0.2.1&0.0.0.0 NOKEY
)");
  EXPECT_THAT(rule_words(result.options("a").allow_transfer),
              ElementsAre("allow 192.0.2.0/24", "allow 198.51.100.1", "allow 2001:db8::/32"));
  EXPECT_THAT(rule_words(result.options("a").allow_notify), ElementsAre("allow 0.0.0.0/0"));
  EXPECT_THAT(result.report(), HasSubstr("provide-xfr 10.1.2.3&255.0.255.0 NOKEY"));
  EXPECT_THAT(result.report(), HasSubstr("provide-xfr 10.1.2.3&ffff:: NOKEY"));
}

TEST(NsdImport, TellsOfAFileWithoutAKnownFolder) {
  const auto result = from_nsd("server:\n zonesdir: \"\"\nzone:\n name: a\n zonefile: x\n");
  EXPECT_THAT(result.report(), HasSubstr("file x: is relative to a folder that is not known"));
}

TEST(NsdImport, TakesZonesWithPatterns) {
  const auto result = from_nsd(R"(
server:
  ip-address: 192.0.2.1@5300
  ip-address: ::1   # loopback
  zonesdir: "/zones"
  identity: "ns1"
  server-count: 4
key:
  name: k
  algorithm: hmac-sha256
  secret: "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
pattern:
  name: base
  provide-xfr: 192.0.2.0/24 k
pattern:
  name: served
  include-pattern: base
  zonefile: "%1/%z/%s.zone"
  notify: 192.0.2.5@54 NOKEY
zone: name: example.com
  include-pattern: served
zone:
  name: "b.example"
  request-xfr: AXFR 192.0.2.9 k
  allow-notify: 192.0.2.9 k
  zonefile: b
)");
  EXPECT_THAT(result.settings.server.listen,
              ElementsAre(*Endpoint::from_text("192.0.2.1@5300"), *Endpoint::from_text("::1")));
  EXPECT_EQ(result.file("example.com"), "/zones/e/com/example.com.zone");
  EXPECT_THAT(rule_words(result.options("example.com").allow_transfer),
              ElementsAre("allow 192.0.2.0/24 k."));
  EXPECT_THAT(result.options("example.com").notify, ElementsAre("192.0.2.5@54"));
  EXPECT_THAT(result.options("b.example").primaries, ElementsAre("192.0.2.9 k."));
  EXPECT_THAT(rule_words(result.options("b.example").allow_notify),
              ElementsAre("allow 192.0.2.9 k."));
  EXPECT_THAT(result.report(), HasSubstr("server-count: see server.workers"));
}

TEST(NsdImport, ServerSectionsAreOneAndTellFamiliesAndWhatIsHidden) {
  const auto result = from_nsd(
      "server:\n  ip4-only: yes\n  do-ip6: no\n  identity: \"\"\n"
      "  hide-version: yes\n"
      "server:\n  port: 5300\n  version: \"mine\"\n  do-ip4: yes\n");
  EXPECT_THAT(result.settings.server.listen, ElementsAre(*Endpoint::from_text("0.0.0.0@5300")));
  EXPECT_EQ(result.settings.server.version, "");
  EXPECT_EQ(result.report(), "");
  const auto other = from_nsd("server:\n  ip-address: 192.0.2.1\nserver:\n  ip6-only: yes\n");
  EXPECT_THAT(other.settings.server.listen, ElementsAre(*Endpoint::from_text("192.0.2.1")));
  const auto shown = from_nsd("server:\n  hide-version: no\n  version: \"mine\"\n");
  EXPECT_EQ(shown.settings.server.version, "mine");
}

/// The names of BIND and of NSD differ.
TEST(NsdImport, TakesRateLimitsByTheirNamesInNsd) {
  const auto result = from_nsd(
      "server:\n  rrl-ratelimit: 7\n  rrl-slip: 3\n  rrl-ipv4-prefix-length: 20\n"
      "  rrl-ipv6-prefix-length: 40\n  rrl-responses-per-second: 9\n");
  const RateLimit& limit = result.settings.server.rate_limit;
  EXPECT_EQ(limit.responses, 7U);
  EXPECT_EQ(limit.slip, 3U);
  EXPECT_EQ(limit.ipv4_prefix, 20U);
  EXPECT_EQ(limit.ipv6_prefix, 40U);
  EXPECT_THAT(result.report(), HasSubstr(":6: rrl-responses-per-second: "));
}

TEST(NsdImport, PatternsBecomeTemplates) {
  const auto result = from_nsd(
      "pattern:\n  name: away\n  request-xfr: 192.0.2.1 NOKEY\n  allow-notify: 192.0.2.1 NOKEY\n"
      "pattern:\n  name: plain\n  zonefile: %s.zone\n");
  EXPECT_TRUE(result.settings.templates.contains("away")) << result.outcome.yaml;
  EXPECT_TRUE(result.settings.templates.contains("plain"));
  EXPECT_THAT(result.changes(), HasSubstr(":1: pattern away: no zone here has it: zones of "
                                          "'nsd-control addzone' are in the zone list"));
}

TEST(NsdImport, ZonesOfTheZoneListAreTaken) {
  const std::string folder = ::testing::TempDir() + "nsd_zone_list";
  std::filesystem::create_directories(folder);
  const auto write = [&folder](const char* name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  write("nsd.conf",
        fmt::format(
            "server:\n  zonelistfile: \"{}/zone.list\"\n  zonesdir: /z\n"
            "pattern:\n  name: plain\n  zonefile: %s.zone\n"
            "pattern:\n  name: member\n  zonefile: %s.zone\n  catalog-producer-zone: cat.test\n"
            "zone:\n  name: cat.test\n  catalog: producer\n  provide-xfr: 192.0.2.1 NOKEY\n",
            folder));
  write("zone.list",
        "# NSD zone list\n# name pattern\nadd one.test plain\ndel gone.test plain\n"
        "add two.test lost\ncat three.test member 17.zones\nadd one.test plain\n");
  auto outcome = import_configuration(folder + "/nsd.conf", {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  const auto result = load_imported(std::move(*outcome));
  EXPECT_EQ(result.file("one.test"), "/z/one.test.zone") << result.report();
  EXPECT_EQ(result.file("three.test"), "/z/three.test.zone");
  EXPECT_EQ(dns::to_text(*result.options("three.test").catalog), "cat.test.");
  EXPECT_EQ(result.options("three.test").catalog_group, "member");
  ASSERT_EQ(result.settings.catalogs.size(), 1U);
  EXPECT_TRUE(result.settings.catalogs[0].produces());
  EXPECT_THAT(result.changes(), HasSubstr("zone.list:5: zone two.test: no such pattern: lost"));
  EXPECT_THAT(result.changes(), HasSubstr("zone.list:7: zone one.test: a zone of this name"));
  EXPECT_EQ(result.outcome.changes(), 2U) << result.report();
  std::filesystem::remove_all(folder);
}

TEST(NsdImport, CatalogsAreConsumedWithPatternsAsGroups) {
  const auto result = from_nsd(
      "pattern:\n  name: members\n  provide-xfr: 192.0.2.9 NOKEY\n"
      "zone:\n  name: c.test\n  catalog: consumer\n  catalog-member-pattern: members\n"
      "  request-xfr: 192.0.2.1 NOKEY\n");
  ASSERT_EQ(result.settings.catalogs.size(), 1U) << result.report();
  EXPECT_EQ(result.settings.catalogs[0].template_name, "members");
  EXPECT_EQ(result.settings.catalogs[0].groups.size(), 1U);
  EXPECT_EQ(result.changes(), "");
}

TEST(NsdImport, WhatTheServerHasHereIsTaken) {
  const auto result = from_nsd(
      "server:\n  nsid: \"ascii_ns1\"\n  xdp-interface: eth0\n  ipv4-edns-size: 1000\n"
      "  refuse-any: yes\n  tls-service-key: /key\n  proxy-protocol-port: 5301\n"
      "dnstap:\n  dnstap-enable: yes\n  dnstap-socket-path: \"/run/dnstap.sock\"\n"
      "  dnstap-log-auth-query-messages: yes\n");
  const Server& server = result.settings.server;
  EXPECT_EQ(server.identity, "ns1");
  ASSERT_EQ(server.xdp.size(), 1U);
  EXPECT_EQ(server.xdp[0].interface, "eth0");
  EXPECT_EQ(server.udp_payload, 1000);
  EXPECT_EQ(server.dnstap.value().socket, "/run/dnstap.sock");
  EXPECT_FALSE(server.dnstap->has(Dnstap::Messages::kResponses));
  EXPECT_EQ(result.outcome.changes(), 2U) << result.report();
}

TEST(NsdImport, AlgorithmsOfKeysNeedNoHmac) {
  const auto result = from_nsd(
      "key:\n  name: k\n  algorithm: SHA512\n  secret: \"MTIzNA==\"\n"
      "zone:\n  name: a\n  request-xfr: 192.0.2.1 k\n");
  ASSERT_EQ(result.settings.keys.size(), 1U) << result.report();
  EXPECT_EQ(result.settings.keys[0].algorithm, dns::TsigAlgorithm::kSha512);
  EXPECT_THAT(result.options("a").primaries, ElementsAre("192.0.2.1 k."));
}

TEST(NsdImport, BlockedAddressesComeFirst) {
  const auto result = from_nsd(R"(
zone:
  name: a
  zonefile: a
  provide-xfr: 192.0.2.0-192.0.2.5 NOKEY
  provide-xfr: 0.0.0.0/0 NOKEY
  provide-xfr: 192.0.2.3 BLOCKED
)");
  EXPECT_THAT(
      rule_words(result.options("a").allow_transfer),
      ElementsAre("deny 192.0.2.3", "allow 192.0.2.4/31", "allow 192.0.2.0/30", "allow 0.0.0.0/0"));
}

TEST(NsdImport, ARuleThatCannotBeReadAllowsNobody) {
  const auto result = from_nsd("zone:\n name: a\n zonefile: a\n provide-xfr: 192.0.2.1 lost\n");
  EXPECT_TRUE(result.options("a").allow_transfer.empty());
  EXPECT_THAT(result.report(), HasSubstr(":4: provide-xfr 192.0.2.1 lost: is not an address"));
}

TEST(NsdImport, SeveralSettingsMayShareALine) {
  const auto result = from_nsd(R"(
key: name: k algorithm: sha512 secret: "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
zone: NAME: one.example zonefile: /x
zone:
  name:
    two.example
  zonefile: "/z" # a comment: with a setting
  provide-xfr: 10.0.0.0/8 NOKEY provide-xfr: 10.0.0.66 BLOCKED
  provide-xfr: 192.0.2.1 k notify: 192.0.2.9 k request-xfr: axfr 192.0.2.8 k allow-notify:
  192.0.2.8 NOKEY
)");
  ASSERT_EQ(result.settings.keys.size(), 1U) << result.report();
  EXPECT_EQ(result.settings.keys[0].algorithm, dns::TsigAlgorithm::kSha512);
  EXPECT_EQ(result.file("one.example"), "/x");
  const ZoneOptions& two = result.options("two.example");
  EXPECT_THAT(rule_words(two.allow_transfer),
              ElementsAre("deny 10.0.0.66", "allow 10.0.0.0/8", "allow 192.0.2.1 k."));
  EXPECT_THAT(two.notify, ElementsAre("192.0.2.9 k."));
  EXPECT_THAT(two.primaries, ElementsAre("192.0.2.8 k."));
  EXPECT_THAT(rule_words(two.allow_notify), ElementsAre("allow 192.0.2.8"));
}

TEST(NsdImport, ValuesThatEndWithAColonAreNoSettings) {
  const auto result = from_nsd(
      "zone:\n name: a\n zonefile: \"name:\"\n provide-xfr: 2001:db8:: NOKEY\n"
      "zone:\n name: b\n zonefile: /x#y:\n novelty: one two: three\n");
  EXPECT_EQ(result.file("a"), "/etc/nsd/name:");
  EXPECT_THAT(rule_words(result.options("a").allow_transfer), ElementsAre("allow 2001:db8::"));
  EXPECT_EQ(result.file("b"), "/x#y:");
  EXPECT_THAT(result.report(), HasSubstr("zone b: novelty: has no counterpart here"));
}

TEST(NsdImport, ATransferOverTlsAloneAllowsNobody) {
  const auto result = from_nsd(
      "zone:\n name: a\n zonefile: /a\n provide-xfr: 10.0.0.0/8 NOKEY auth\n"
      " provide-xfr: 10.0.0.1\n");
  EXPECT_TRUE(result.options("a").allow_transfer.empty());
  EXPECT_THAT(result.report(), HasSubstr(":4: provide-xfr 10.0.0.0/8 NOKEY auth: there is no TLS"));
  EXPECT_THAT(result.report(), HasSubstr(":5: provide-xfr 10.0.0.1"));
}

TEST(NsdImport, BackslashesAreKept) {
  const auto result = from_nsd(
      "zone:\n name: \"a\\.b.example\"\n zonefile: \"/x\\y\\\"z\"\n"
      "zone:\n name: a\\.c.example\n zonefile: /x\\ y\n");
  EXPECT_EQ(result.file("a\\.b.example"), "/x\\y\\\"z") << result.report();
  EXPECT_EQ(result.file("a\\.c.example"), "/x\\ y");
}

TEST(NsdImport, APatternThatIncludesItselfEnds) {
  const auto result = from_nsd(
      "pattern:\n name: p\n include-pattern: p\n include-pattern: p\n"
      "zone:\n name: a\n zonefile: a\n include-pattern: p\n");
  EXPECT_EQ(result.outcome.zones, 1U);
  EXPECT_THAT(result.report(), HasSubstr("patterns are too deep"));
}

TEST(NsdImport, ASlashInANameIsNoFolder) {
  const auto result = from_nsd(
      "pattern:\n name: p\n zonefile: \"%s/%x.%1\"\n"
      "zone:\n name: 0/25.a.b.c\n include-pattern: p\n"
      "zone:\n name: a.0/25.b.c\n include-pattern: p\n");
  EXPECT_EQ(result.file("0/25.a.b.c"), "/etc/nsd/0\\04725.a.b.c/a.0") << result.report();
  EXPECT_EQ(result.file("a.0/25.b.c"), "/etc/nsd/a.0\\04725.b.c/0\\04725.a");
}

TEST(NsdImport, FaultsOfTheSyntaxHaveFileAndLine) {
  EXPECT_EQ(import_error(ImportKind::kNsd, "server:\nnonsense\n"),
            "/x.conf:2: is not 'key: value'");
  EXPECT_EQ(import_error(ImportKind::kNsd, "name: x\n"), "/x.conf:1: 'name' stands in no section");
  EXPECT_EQ(import_error(ImportKind::kNsd, "zone:\n name: \"x\n"),
            "/x.conf:2: a quoted text without an end");
  for (const char* text : {"zone:zone:", "zone:\n name: a b\n", "zone:\n \"name:\" a\n"})
    EXPECT_THAT(import_error(ImportKind::kNsd, text), HasSubstr("is not 'key: value'")) << text;
  EXPECT_EQ(import_error(ImportKind::kNsd, "zone:\n name:\n zonefile: x\n"),
            "/x.conf:2: 'name' has no value");
}

}  // namespace nsd_import_test
}  // namespace pando::config
