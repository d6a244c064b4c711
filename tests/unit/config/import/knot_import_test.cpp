#include "tests/unit/config/import/import_fixture.h"

namespace pando::config {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace knot_import_test {

Imported from_knot(std::string_view text) { return imported(ImportKind::kKnot, text); }

constexpr std::string_view kPeers = R"(
key:
  - id: k
    algorithm: hmac-sha256
    secret: MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=
remote:
  - id: up
    address: [192.0.2.1@5301, 2001:db8::1]
    key: k
  - id: down
    address: 192.0.2.2
remotes:
  - id: both
    remote: [up, down]
)";

TEST(KnotImport, TakesZonesWithTemplates) {
  const auto result = from_knot(std::string(kPeers) + R"(
server:
    listen: [ 192.0.2.1@53, ::@5300 ]
    identity: ns1
template:
  - id: default
    storage: /zones
    file: %s.db
  - id: other
    storage: "/other"
    file: "%c[0-1]/%l[0]/%s"
zone:
  - domain: example.com
    notify: both
  - domain: example.org
    template: other
  - domain: b.example
    master: up
)");
  EXPECT_EQ(result.file("example.com"), "/zones/example.com.db");
  EXPECT_EQ(result.file("example.org"), "/other/ex/org/example.org");
  EXPECT_EQ(result.file("b.example"), "");
  EXPECT_THAT(result.options("example.com").notify,
              ElementsAre("192.0.2.1@5301 k.", "2001:db8::1 k.", "192.0.2.2"));
  EXPECT_THAT(result.options("b.example").primaries,
              ElementsAre("192.0.2.1@5301 k.", "2001:db8::1 k."));
  EXPECT_THAT(result.settings.server.listen,
              ElementsAre(*Endpoint::from_text("192.0.2.1"), *Endpoint::from_text("::@5300")));
}

TEST(KnotImport, MapsRulesByAction) {
  const auto result = from_knot(std::string(kPeers) + R"(
acl:
  - id: bad
    address: 192.0.2.66
    deny: on
  - id: xfr
    address: [192.0.2.0/24, 198.51.100.1-198.51.100.2]
    key: k
    action: [transfer, notify]
  - id: dyn
    key: k
    action: update
    update-owner: name
    update-owner-match: equal
    update-owner-name: [www, mail.a.]
    update-type: [A, AAAA]
zone:
  - domain: a
    acl: [bad, xfr]
    acl: dyn
)");
  EXPECT_THAT(rule_words(result.options("a").allow_transfer),
              ElementsAre("deny 192.0.2.66", "allow 198.51.100.2 k.", "allow 198.51.100.1 k.",
                          "allow 192.0.2.0/24 k."));
  EXPECT_THAT(rule_words(result.options("a").allow_update),
              ElementsAre("deny 192.0.2.66", "allow k. @www.a. @mail.a. A AAAA"));
  EXPECT_THAT(rule_words(result.options("a").allow_query),
              ElementsAre("deny 192.0.2.66", "allow ::/0"));
}

TEST(KnotImport, AListMayHaveSeveralLines) {
  const auto result =
      from_knot(std::string(kPeers) + "zone:\n  - domain: a\n    notify: [ up,\n      down ]\n");
  EXPECT_EQ(result.options("a").notify.size(), 3U);
}

TEST(KnotImport, MissingReferencesAreReported) {
  const auto result =
      from_knot("zone:\n  - domain: a\n    notify: lost\n    acl: gone\n    template: none\n");
  for (const char* part :
       {":3: remote lost: no such remote", ":4: acl gone: no such acl", "no such template: none"})
    EXPECT_THAT(result.report(), HasSubstr(part));
  EXPECT_TRUE(result.options("a").allow_transfer.empty());
}

/// Behind a DS record an unsigned zone is an outage.
TEST(KnotImport, ACatalogWhoseMembersKnotSignsIsLeftOut) {
  const auto result = from_knot(R"(
remote:
  - id: hub
    address: 192.0.2.1
template:
  - id: signed
    dnssec-signing: on
zone:
  - domain: members.example
    master: hub
    catalog-role: interpret
    catalog-template: signed
)");
  EXPECT_THAT(result.settings.catalogs, IsEmpty()) << result.report();
  EXPECT_THAT(result.changes(), HasSubstr("is left out: Knot signs its members (dnssec-signing)"));
}

TEST(KnotImport, ZonesThatKnotSignsAreSignedByTheirKeysAlone) {
  const auto result = from_knot(R"(
remote:
  - id: hub
    address: 192.0.2.1
template:
  - id: default
    dnssec-signing: on
  - id: plain
    file: /z/%s
  - id: online
    global-module: mod-onlinesign
zone:
  - domain: one
  - domain: two
    template: plain
  - domain: three
    template: plain
    dnssec-signing: on
  - domain: four
    template: online
  - domain: five
    dnssec-signing: off
    file: /z/five
  - domain: six
    master: hub
)");
  EXPECT_EQ(result.settings.zones.size(), 4U) << result.report();
  EXPECT_EQ(result.options("two").dnssec + result.options("five").dnssec, "");
  EXPECT_EQ(result.options("one").dnssec, "knot-default");
  EXPECT_EQ(result.options("three").dnssec, "knot-default");
  EXPECT_FALSE(result.settings.dnssec_policy("knot-default")->make_keys);
  ASSERT_EQ(result.outcome.key_imports.size(), 2U);
  EXPECT_EQ(result.outcome.key_imports[0].command,
            "(cd /var/lib/knot/keys/keys && pandoctl dnssec import one. $(keymgr -D "
            "/var/lib/knot/keys one. list | awk '{print ($3 == \"ZSK\" ? \"--zsk \" : \"\") $1 "
            "\".pem\"}'))");
  EXPECT_THAT(result.changes(),
              HasSubstr("zone one: Knot signs it (dnssec-signing): it is not served before"));
  EXPECT_THAT(result.changes(), HasSubstr("zone four: is left out: Knot signs it (mod-onlinesign"));
  EXPECT_THAT(result.changes(), HasSubstr("zone six: is left out: Knot signs it (dnssec-signing)"));
  EXPECT_THAT(result.report(), HasSubstr("no key is rolled by itself here (zsk-lifetime: 30d)"));
}

TEST(KnotImport, APolicyOfKnotBecomesOneOfOurs) {
  const auto result = from_knot(R"(
database:
  storage: "/srv/knot db"
  kasp-db: kasp
keystore:
  - id: files
    backend: pem
    config: /srv/pem
policy:
  - id: own
    algorithm: ecdsap384sha384
    keystore: files
    single-type-signing: on
    rrsig-lifetime: 10d
    rrsig-refresh: 3d
    propagation-delay: 10m
    cds-cdnskey-publish: none
    nsec3: on
    nsec3-iterations: 10
    nsec3-opt-out: on
zone:
  - domain: one
    file: /z/one
    dnssec-signing: on
    dnssec-policy: own
)");
  EXPECT_EQ(result.options("one").dnssec, "knot-own");
  const DnssecPolicy policy = *result.settings.dnssec_policy("knot-own");
  EXPECT_EQ(policy.algorithm, 14);
  EXPECT_EQ(policy.validity, std::chrono::days(10));
  EXPECT_EQ(policy.refresh, std::chrono::days(3));
  EXPECT_EQ(policy.propagation, std::chrono::minutes(10));
  EXPECT_EQ(policy.parent_ds_ttl, DnssecPolicy().parent_ds_ttl);
  EXPECT_FALSE(policy.cds);
  EXPECT_EQ(policy.nsec3, Nsec3Use::kOptOut);
  EXPECT_THAT(result.report(), Not(HasSubstr("rolled")));
  EXPECT_THAT(result.outcome.key_imports[0].command,
              HasSubstr("(cd /srv/pem && pandoctl dnssec import one. $(keymgr -D '/srv/knot db/kasp'"));
}

/// Each of these would be served by other keys, or not at all.
TEST(KnotImport, ZonesThatCannotBeSignedHereAreLeftOut) {
  const auto result = from_knot(R"(
keystore:
  - id: hsm
    backend: pkcs11
policy:
  - id: hsm
    keystore: hsm
  - id: old
    algorithm: rsasha1
  - id: away
    offline-ksk: on
  - id: many
    dnskey-management: incremental
template:
  - id: default
    dnssec-signing: on
zone:
  - domain: one
    dnssec-policy: hsm
  - domain: two
    dnssec-policy: old
  - domain: three
    dnssec-policy: away
  - domain: five
    dnssec-policy: many
  - domain: six
    dnssec-policy: lost
)");
  EXPECT_EQ(result.settings.zones.size(), 0U) << result.outcome.yaml;
  for (const char* line : {"zone one: is left out: Knot signs it (dnssec-signing), and its keys are in",
                           "zone two: is left out: Knot signs it (dnssec-signing), by algorithm rsasha1",
                           "zone three: is left out: Knot signs it (dnssec-signing), and its KSK",
                           "zone five: is left out: Knot signs it (dnssec-signing), and other servers",
                           "zone six: is left out: Knot signs it (dnssec-signing), and its policy lost"})
    EXPECT_THAT(result.changes(), HasSubstr(line));
}

TEST(KnotImport, WhatTheServerHasHereIsTaken) {
  const auto result = from_knot(R"(
server:
  nsid: 0x6e7331
  udp-max-payload: 1400
  proxy-allowlist: [192.0.2.0/24, 2001:db8::1]
  automatic-acl: off
xdp:
  listen: [eth0, "eth1@53", 192.0.2.1]
mod-rrl:
  - id: mild
    rate-limit: 20
    slip: 3
    whitelist: [198.51.100.0/24]
mod-dnstap:
  - id: tap
    sink: unix:/run/dnstap.sock
    log-responses: off
template:
  - id: default
    global-module: [mod-rrl/mild, mod-dnstap/tap, mod-stats]
zone:
  - domain: a
    file: /a
    serial-policy: unixtime
    notify-delay: 5
    module: mod-geoip/x
)");
  const Server& server = result.settings.server;
  EXPECT_EQ(server.identity, "ns1");
  EXPECT_EQ(server.udp_payload, 1400);
  EXPECT_EQ(server.proxy_protocol_from.size(), 2U);
  ASSERT_EQ(server.xdp.size(), 2U);
  EXPECT_EQ(server.xdp[1].interface, "eth1");
  EXPECT_EQ(server.rate_limit.responses, 20U);
  EXPECT_EQ(server.rate_limit.slip, 3U);
  EXPECT_EQ(server.rate_limit.exempt.size(), 1U);
  EXPECT_EQ(server.dnstap.value().socket, "/run/dnstap.sock");
  EXPECT_FALSE(server.dnstap->has(Dnstap::Messages::kResponses));
  EXPECT_EQ(result.options("a").serial_policy, SerialPolicy::kUnixtime);
  EXPECT_EQ(result.options("a").notify_delay, std::chrono::seconds(5));
  EXPECT_EQ(result.outcome.changes(), 1U) << result.report();
  EXPECT_THAT(result.changes(), HasSubstr("zone a: mod-geoip/x: this module is not there"));
}

TEST(KnotImport, CatalogsAreConsumedAndProduced) {
  const auto result = from_knot(R"(
remote:
  - id: up
    address: 192.0.2.1
acl:
  - id: out
    address: 192.0.2.9
    action: transfer
template:
  - id: members
    acl: out
  - id: special
    notify: up
zone:
  - domain: in.example
    master: up
    catalog-role: interpret
    catalog-template: [members, special]
  - domain: member.example
    file: /m
    catalog-role: member
    catalog-zone: out.example
    catalog-group: g
  - domain: out.example
    acl: out
    catalog-role: generate
)");
  ASSERT_EQ(result.settings.catalogs.size(), 2U) << result.report();
  const Catalog& in = result.settings.catalogs[0];
  EXPECT_THAT(in.primaries, ElementsAre("192.0.2.1"));
  EXPECT_EQ(in.template_name, "members");
  ASSERT_EQ(in.groups.size(), 2U);
  EXPECT_EQ(in.groups[1].template_name, "special");
  EXPECT_TRUE(result.settings.catalogs[1].produces());
  EXPECT_EQ(dns::to_text(*result.options("member.example").catalog), "out.example.");
  EXPECT_EQ(result.options("member.example").catalog_group, "g");
  EXPECT_EQ(result.changes(), "");
}

TEST(KnotImport, FilesAreNamedInLowerCaseAndASlashIsNoFolder) {
  const auto result = from_knot(
      "template:\n  - id: default\n    storage: /z\n    file: \"%s/%l[2].%c[0-1]\"\n"
      "zone:\n  - domain: 0/25.a.Test\n  - domain: A.b.c\n");
  EXPECT_EQ(result.file("0/25.a.test"), "/z/0_25.a.test/0_25.0_") << result.report();
  EXPECT_EQ(result.file("a.b.c"), "/z/a.b.c/a.a.");
}

TEST(KnotImport, KeepsBackslashesButThoseBeforeQuotes) {
  const auto result = from_knot(
      "zone:\n  - domain: \"a\\.b.example\"\n    file: \"/x\\y\\\\\"\n"
      "  - domain: a\\.c.example\n    file: /x\\\"y\n"
      "  - domain: d.example\n    file: \"/x\\\"y\"\n"
      "  - domain: e.example\n    file: /'x'\n");
  EXPECT_EQ(result.file("a\\.b.example"), "/x\\y\\\\") << result.report();
  EXPECT_EQ(result.file("a\\.c.example"), "/x\"y");
  EXPECT_EQ(result.file("d.example"), "/x\"y");
  EXPECT_EQ(result.file("e.example"), "/'x'");
}

TEST(KnotImport, FaultsOfTheSyntaxHaveFileAndLine) {
  EXPECT_EQ(import_error(ImportKind::kKnot, "zones {\n example.com {\n"),
            "/x.conf:1: is not 'key: value'");
  EXPECT_EQ(import_error(ImportKind::kKnot, "zone:\n  - domain: a\n    acl: [ a,\n"),
            "/x.conf:3: a list without an end");
}

}  // namespace knot_import_test
}  // namespace pando::config
