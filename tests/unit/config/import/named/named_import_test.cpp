#include "tests/unit/config/import/import_fixture.h"
#include "tests/unit/config/load_fixture.h"

namespace pando::config {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace named_import_test {

Imported from_bind(std::string_view text) { return imported(ImportKind::kBind, text); }

constexpr std::string_view kKey =
    "key k { algorithm hmac-sha256; secret \"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=\"; };\n";

zone::Acl transfer_of(std::string_view list, std::string_view before = "") {
  const auto result = from_bind(fmt::format(
      "{}{}zone a {{ type primary; file \"a\"; allow-transfer {{ {} }}; }};", kKey, before, list));
  return result.options("a").allow_transfer;
}

TEST(NamedImport, TakesAPrimaryZoneBelowTheDirectory) {
  const auto result = from_bind(R"(
options { directory "/var/cache/bind"; /* a
comment */ listen-on port 5300 { 192.0.2.1; }; listen-on-v6 { none; }; server-id "ns1"; };
zone "example.com" IN { type master; file "db.example"; }; # rest
zone "example.org" { type primary; file "/zones/org"; }; // rest)");
  EXPECT_EQ(result.file("example.com"), "/var/cache/bind/db.example");
  EXPECT_EQ(result.file("example.org"), "/zones/org");
  EXPECT_THAT(result.settings.server.listen, ElementsAre(*Endpoint::from_text("192.0.2.1@5300")));
  EXPECT_EQ(result.settings.server.identity, "ns1");
}

TEST(NamedImport, CaseCountsInFilesAlone) {
  const auto result = from_bind(R"(
Options { Directory "/Zones"; Listen-On Port 54 { LocalHost; }; Recursion NO; Version NONE;
  Allow-Query { ANY; }; };
KEY K { Algorithm HMAC-SHA256; Secret "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="; };
ACL Trusted { 192.0.2.0/24; !2001:DB8::1; Key k; };
Primaries Mains { 192.0.2.1 KEY k; 2001:DB8::7 Port 55; };
Server 2001:DB8::8 { Keys k; };
ZONE a IN { Type MASTER; File "A.zone"; Allow-Transfer { trusted; }; Notify NO;
  Update-Policy { Grant k ZoneSub any; }; };
Zone b { type Slave; Masters { MAINS; 2001:db8::8; }; };
Zone c CHAOS { type primary; file "c"; };)");
  EXPECT_EQ(result.file("a"), "/Zones/A.zone");
  EXPECT_THAT(rule_words(result.options("a").allow_transfer),
              ElementsAre("allow 192.0.2.0/24", "deny 2001:db8::1", "allow K."));
  EXPECT_THAT(rule_words(result.options("a").allow_update), ElementsAre("allow K."));
  EXPECT_THAT(result.options("b").primaries,
              ElementsAre("192.0.2.1 K.", "2001:db8::7@55", "2001:db8::8 K."));
  EXPECT_EQ(result.settings.server.listen.front(), *Endpoint::from_text("127.0.0.1@54"));
  EXPECT_THAT(result.report(), HasSubstr("zone c: is not of class IN"));
  EXPECT_THAT(result.report(), Not(HasSubstr("has no counterpart")));
}

TEST(NamedImport, KeepsBackslashesButThoseBeforeQuotes) {
  const auto result = from_bind(R"(
zone "a\.b.example" { type primary; file "/x\y\"z\\"; };)");
  EXPECT_EQ(result.file("a\\.b.example"), "/x\\y\"z\\\\");
}

TEST(NamedImport, FindsIncludedFilesBelowTheDirectoryThatIsReadBefore) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "etc/named.conf", fmt::format("include \"first.conf\";\n"
                                    "options {{ directory \"{}/var\"; }};\n"
                                    "include \"second.conf\"; include \"more/a*.conf\";\n",
                                    folder.path()));
  const auto zone = [](std::string_view name) {
    return fmt::format("zone {0} {{ type primary; file \"{0}\"; }};\n", name);
  };
  folder.write("etc/first.conf", zone("first"));
  folder.write("etc/second.conf", zone("wrong"));
  folder.write("etc/last.conf", zone("last"));
  folder.write("var/second.conf", zone("second"));
  folder.write("var/more/a.conf", "include \"third.conf\";\n");
  folder.write("var/more/third.conf", zone("beside"));
  folder.write("var/third.conf", zone("third") + "include \"last.conf\";\n");
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  const Imported result = load_imported(std::move(*outcome));
  for (const std::string_view name : {"first", "second", "third", "last"})
    EXPECT_EQ(result.file(name), fmt::format("{}/var/{}", folder.path(), name));
  EXPECT_EQ(result.settings.zones.size(), 4U) << result.outcome.yaml;
}

TEST(NamedImport, TheDirectoryMayStandInAnIncludedFile) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("named.conf", "options { include \"o.conf\"; };\ninclude \"z.conf\";\n");
  folder.write("o.conf", fmt::format("directory \"{}/var\";\n", folder.path()));
  folder.write("z.conf", "zone wrong { type primary; file \"x\"; };\n");
  folder.write("var/z.conf", "zone right { type primary; file \"x\"; };\n");
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  const Imported result = load_imported(std::move(*outcome));
  EXPECT_EQ(result.file("right"), folder.path() + "/var/x");
  EXPECT_EQ(result.settings.zones.size(), 1U) << result.outcome.yaml;
}

TEST(NamedImport, FoldersMayHaveTheCharactersOfPatterns) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("br[1]/named.conf", fmt::format("include \"own*.conf\"; include \"own.conf\";\n"
                                                   "options {{ directory \"{}/d*[2]\\x\"; }};\n"
                                                   "include \"z?.conf\"; include \"[1].conf\";\n",
                                                   folder.path()));
  const auto zone = [](std::string_view name) {
    return fmt::format("zone {0} {{ type primary; file \"/{0}\"; }};\n", name);
  };
  folder.write("br[1]/own1.conf", zone("own1"));
  folder.write("br[1]/own.conf", zone("own"));
  folder.write("br1/own1.conf", zone("wrong"));
  folder.write("d*[2]\\x/zz.conf", zone("zz"));
  folder.write("d*[2]\\x/[1].conf", zone("literal"));
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  const Imported result = load_imported(std::move(*outcome));
  for (const std::string_view name : {"own1", "own", "zz", "literal"})
    EXPECT_EQ(result.file(name), fmt::format("/{}", name)) << result.report();
  EXPECT_EQ(result.settings.zones.size(), 4U) << result.outcome.yaml;
}

TEST(NamedImport, KeysOfServersCountForAddressesAndNetworks) {
  const auto result = from_bind(std::string(kKey) + R"(
server 2001:db8:0::1 { keys { k; }; };
server 10.0.0.0/24 { keys k; };
server 10.0.0.7 { bogus no; };
server ::/0 { keys { k; }; };
server here { keys { k; }; };
zone a { type secondary;
  primaries { 2001:db8::1; 10.0.0.1; 10.0.0.7; 10.0.1.1; 2001:db8::2 port 54; }; };)");
  EXPECT_THAT(
      result.options("a").primaries,
      ElementsAre("2001:db8::1 k.", "10.0.0.1 k.", "10.0.0.7", "10.0.1.1", "2001:db8::2@54 k."));
  EXPECT_THAT(result.report(), HasSubstr("server here: is neither an address nor a network"));
}

TEST(NamedImport, APolicyWithAKeyThatIsNotThereSaysSo) {
  const auto result = from_bind(
      "zone a { type primary; file \"a\"; update-policy { grant nokey ZoneSub any; }; };");
  EXPECT_THAT(result.report(), HasSubstr("update-policy grant nokey ZoneSub: no such key"));
}

TEST(NamedImport, TellsOfAFileWithoutAKnownFolder) {
  EXPECT_THAT(from_bind("zone a { type primary; file \"x\"; };").report(),
              HasSubstr("file x: is relative to a folder that is not known"));
  EXPECT_THAT(from_bind("options { directory \"y\"; };\n"
                        "zone a { type primary; file \"x\"; };")
                  .report(),
              HasSubstr("file y/x: is relative to a folder that is not known"));
}

TEST(NamedImport, TakesASecondaryZoneWithKeyAndList) {
  const auto result = from_bind(std::string(kKey) + R"(
masters upstream port 5301 { 192.0.2.1 key k; 2001:db8::1 port 54; };
server 192.0.2.9 { keys { k; }; };
zone b { type slave; masters { upstream; 192.0.2.9; }; file "b"; also-notify { 192.0.2.3; }; };)");
  EXPECT_THAT(result.options("b").primaries,
              ElementsAre("192.0.2.1@5301 k.", "2001:db8::1@54", "192.0.2.9 k."));
  EXPECT_THAT(result.options("b").notify, ElementsAre("192.0.2.3"));
  EXPECT_EQ(result.file("b"), "");
  EXPECT_THAT(result.report(), HasSubstr("zone b: file: BIND writes the copies"));
}

TEST(NamedImport, InheritsAccessFromOptionsAndOneView) {
  const auto result = from_bind(R"(
options { allow-transfer { 192.0.2.1; }; allow-query { 192.0.2.0/24; }; };
view all { allow-transfer { 192.0.2.2; };
  zone a { type primary; file "a"; };
  zone b { type primary; file "b"; allow-transfer { none; }; }; };)");
  EXPECT_THAT(rule_words(result.options("a").allow_transfer), ElementsAre("allow 192.0.2.2"));
  EXPECT_THAT(rule_words(result.options("a").allow_query), ElementsAre("allow 192.0.2.0/24"));
  EXPECT_TRUE(result.options("b").allow_transfer.empty());
}

TEST(NamedImport, KeywordsAndNamesOfListsHaveNoCase) {
  const auto result = from_bind(R"(
Options { Directory "/Zones"; };
ACL Friends { 192.0.2.0/24; };
Masters Others { 192.0.2.9; };
Zone "a" In { Type Master; File "A"; Allow-Transfer { friends; !FRIENDS; None; }; };
Zone "b" { Type Slave; Masters { OTHERS; }; Notify No; };
)");
  EXPECT_EQ(result.file("a"), "/Zones/A");
  EXPECT_THAT(rule_words(result.options("a").allow_transfer), ElementsAre("allow 192.0.2.0/24"));
  EXPECT_THAT(result.options("b").primaries, ElementsAre("192.0.2.9"));
}

TEST(NamedImport, AZoneWithABlankInItsNameIsReported) {
  const auto result = from_bind("zone \"a in {\n\" { type primary; file \"/a\"; };\n");
  EXPECT_EQ(result.outcome.zones, 0U);
  EXPECT_THAT(result.report(), HasSubstr("has a blank in its name; is a quotation mark missing?"));
}

TEST(NamedImport, RefusesZonesOfSeveralViewsByName) {
  const auto result = from_bind(
      "view inside { zone a { type primary; file \"a\"; }; };\n"
      "view outside { zone a { type primary; file \"b\"; }; };");
  EXPECT_EQ(result.outcome.zones, 0U);
  EXPECT_THAT(result.report(), HasSubstr("/etc/x/x.conf:1: zone a: is in view inside, one of 2"));
  EXPECT_THAT(result.report(), HasSubstr("/etc/x/x.conf:2: zone a: is in view outside, one of 2"));
}

TEST(NamedImport, ReportsZonesOfOtherTypes) {
  const auto result = from_bind(R"(
options { response-policy { zone "rpz.example"; }; };
zone "." { type hint; file "root"; };
zone f { type forward; forwarders { 192.0.2.1; }; };
zone s { type stub; masters { 192.0.2.1; }; };
zone m { type mirror; };
zone bind CH { type primary; file "b"; };
zone rpz.example { type primary; file "r"; };
zone n { type primary; };)");
  EXPECT_EQ(result.outcome.zones, 0U);
  for (const char* line :
       {":3: zone .: zones of type hint", ":4: zone f: zones of type forward",
        ":5: zone s: zones of type stub", ":6: zone m: zones of type mirror",
        ":7: zone bind: is not of class IN", ":8: zone rpz.example: is a response policy",
        ":9: zone n: a zone has neither a file nor primaries"})
    EXPECT_THAT(result.report(), HasSubstr(line));
}

TEST(NamedImport, ListsKeepTheirOrder) {
  EXPECT_THAT(rule_words(transfer_of("!192.0.2.1; 192.0.2.0/24; key k;")),
              ElementsAre("deny 192.0.2.1", "allow 192.0.2.0/24", "allow k."));
  EXPECT_THAT(rule_words(transfer_of("10/8; 192.168/16; 192.0.2.77/24;")),
              ElementsAre("allow 10.0.0.0/8", "allow 192.168.0.0/16", "allow 192.0.2.0/24"));
}

TEST(NamedImport, AnAddressAndAKeyTogetherAreOneRule) {
  // The usual way to say "with key k, from 192.0.2.0/24 only".
  EXPECT_THAT(rule_words(transfer_of("!{ !192.0.2.0/24; any; }; key k;")),
              ElementsAre("allow 192.0.2.0/24 k."));
}

TEST(NamedImport, ADenyInANamedListOnlyEndsThatList) {
  EXPECT_THAT(
      rule_words(transfer_of("l; 192.0.2.1;", "acl l { !192.0.2.1; 192.0.2.0/24; };")),
      ElementsAre("allow 192.0.2.1", "deny 192.0.2.1", "allow 192.0.2.0/24", "allow 192.0.2.1"));
}

TEST(NamedImport, AnUnknownElementNeverOpensAccess) {
  EXPECT_THAT(rule_words(transfer_of("localnets; 192.0.2.1;")), ElementsAre("allow 192.0.2.1"));
  EXPECT_THAT(rule_words(transfer_of("192.0.2.1; !localnets; any;")),
              ElementsAre("allow 192.0.2.1"));
  EXPECT_THAT(rule_words(transfer_of("!{ localnets; }; any;")), ElementsAre());
  EXPECT_THAT(rule_words(transfer_of("key other; any;")), ElementsAre("allow ::/0"));
  EXPECT_THAT(rule_words(transfer_of("!key other; any;")), ElementsAre());
}

TEST(NamedImport, AllOfIpv6IsNotEverybody) {
  EXPECT_THAT(rule_words(transfer_of("::/0;")), ElementsAre("deny 0.0.0.0/0", "allow ::/0"));
}

TEST(NamedImport, ListsThatReferToEachOtherAreReported) {
  EXPECT_THAT(rule_words(transfer_of("l; 192.0.2.1;", "acl l { m; }; acl m { l; };")),
              ElementsAre("allow 192.0.2.1"));
  // Each of these references would else be followed within all others.
  const std::string_view itself = "acl l { 192.0.2.7; l; l; l; l; l; l; l; l; };";
  EXPECT_THAT(rule_words(transfer_of("l; 192.0.2.1;", itself)),
              ElementsAre("allow 192.0.2.7", "allow 192.0.2.1"));
}

/// Lists "l0" to "l13" of which each has the one before eight times.
std::string lists_in_lists(std::string_view keyword) {
  std::string text = fmt::format("{} l0 {{ 192.0.2.7; }};\n", keyword);
  for (int i = 1; i < 14; ++i) {
    text += fmt::format("{} l{} {{", keyword, i);
    for (int times = 0; times < 8; ++times) text += fmt::format(" l{};", i - 1);
    text += " };\n";
  }
  return text;
}

TEST(NamedImport, ListsInListsThatStandForBillionsAreReported) {
  EXPECT_THAT(rule_words(transfer_of("l13; 192.0.2.1;", lists_in_lists("acl"))),
              ElementsAre("allow 192.0.2.1"));
  const auto result = from_bind(lists_in_lists("primaries") +
                                "zone a { type secondary; primaries { l13; }; };\n"
                                "zone b { type secondary; primaries { 192.0.2.9; }; };");
  EXPECT_THAT(result.report(), HasSubstr("lists of remotes are too deep or too long"));
  // The list of one zone takes nothing away from the next zone.
  EXPECT_EQ(result.options("b").primaries.size(), 1U) << result.report();
}

TEST(NamedImport, MapsUpdatePolicies) {
  const auto result = from_bind(std::string(kKey) + R"(
zone a { type primary; file "a"; update-policy {
  grant k name www.a. A AAAA;
  grant k subdomain dyn.a. ANY;
  grant * self * TXT;
  grant k krb5-self . A; }; };)");
  EXPECT_THAT(rule_words(result.options("a").allow_update),
              ElementsAre("allow k. @www.a. A AAAA", "allow k. @dyn.a. @*.dyn.a.",
                          "allow ::/0 @self. TXT"));
  EXPECT_THAT(result.report(), HasSubstr("update-policy grant k krb5-self: has no counterpart"));
}

TEST(NamedImport, APolicyWithoutTypesLeavesTheApexTypesOut) {
  const auto result =
      from_bind(std::string(kKey) +
                "zone a { type primary; file \"a\"; update-policy { grant k zonesub; }; };");
  EXPECT_THAT(rule_words(result.options("a").allow_update),
              ElementsAre("deny k. NS SOA RRSIG NSEC NSEC3", "allow k."));
}

TEST(NamedImport, UpdatesThatASecondaryForwards) {
  const auto result = from_bind(
      "zone a { type secondary; primaries { 192.0.2.1; }; "
      "allow-update-forwarding { 192.0.2.0/24; }; };\n"
      "zone b { type secondary; primaries { 192.0.2.1; }; allow-update-forwarding { none; }; };");
  EXPECT_TRUE(result.options("a").forward_updates);
  EXPECT_FALSE(result.options("b").forward_updates);
}

TEST(NamedImport, SecretsGoIntoFilesUnlessAskedFor) {
  const auto apart = imported(ImportKind::kBind, kKey, false);
  EXPECT_THAT(apart.outcome.yaml, HasSubstr("secret-file: k.key"));
  EXPECT_THAT(apart.outcome.yaml, Not(HasSubstr("MTIz")));
  EXPECT_THAT(apart.report(), HasSubstr("key k.: its secret belongs into the file k.key"));
  ASSERT_EQ(apart.outcome.secrets.size(), 1U);
  const auto inside = from_bind(kKey);
  ASSERT_EQ(inside.settings.keys.size(), 1U);
  EXPECT_EQ(inside.settings.keys[0].secret.size(), 32U);
}

TEST(NamedImport, SharedOptionsBecomeATemplate) {
  const auto result = from_bind(
      "zone a { type primary; file \"a\"; allow-transfer { 192.0.2.1; }; };"
      "zone b { type primary; file \"b\"; allow-transfer { 192.0.2.1; }; };");
  EXPECT_THAT(result.outcome.yaml, HasSubstr("templates:\n  - name: group\n"));
  EXPECT_THAT(rule_words(result.options("b").allow_transfer), ElementsAre("allow 192.0.2.1"));
}

TEST(NamedImport, StatementsWithoutACounterpartAreReported) {
  const auto result = from_bind(
      "logging { channel x { null; }; };\noptions { recursion yes; pid-file \"x\"; };\n"
      "zone a { type primary; file \"a\"; inline-signing yes; };");
  EXPECT_THAT(result.report(), HasSubstr(":1: logging: see server.log"));
  EXPECT_THAT(result.report(), HasSubstr(":2: recursion: pando answers for its own zones"));
  EXPECT_THAT(result.changes(), HasSubstr("zone a: BIND signs it (inline-signing yes): it is not"));
  EXPECT_THAT(result.changes(), HasSubstr(":2: recursion: pando answers"));
  EXPECT_THAT(result.changes(), Not(HasSubstr("logging")));
  const auto off = from_bind(
      "options { recursion no; allow-recursion { none; }; allow-query-cache { none; }; "
      "dnssec-validation auto; response-policy { }; };\nzone . { type hint; file \"x\"; };");
  EXPECT_EQ(off.changes(), "") << "what is off, or concerns a resolver, changes no answer";
}

std::string commands_of(const Imported& result) {
  std::string text;
  for (const KeyImport& key : result.outcome.key_imports) text += key.command + "\n";
  return text;
}

/// Behind a DS record an unsigned zone is an outage, and so is one with another key.
TEST(NamedImport, ZonesThatBindSignsAreSignedByTheirKeysAlone) {
  const auto result = from_bind(R"(
dnssec-policy short { };
options { inline-signing no; directory "/var/lib/bind"; };
zone one { type primary; file "/1"; dnssec-policy default; };
zone Two { type primary; file "/2"; inline-signing yes; key-directory "keys dir"; };
zone three { type primary; file "/3"; auto-dnssec maintain; allow-update { 192.0.2.1; };
  sig-validity-interval 20; };
zone four { type secondary; primaries { 192.0.2.2; }; dnssec-policy short; };
zone five { type primary; file "/5"; dnssec-policy none; };
zone six { type primary; file "/6"; auto-dnssec off; };
)");
  EXPECT_EQ(result.settings.zones.size(), 5U) << result.report();
  EXPECT_EQ(result.options("five").dnssec + result.options("six").dnssec, "");
  EXPECT_EQ(result.options("one").dnssec, "bind-default");
  EXPECT_EQ(result.options("two").dnssec, "bind");
  EXPECT_EQ(result.options("three").dnssec, "bind-2");
  for (const DnssecPolicy& policy : result.settings.dnssec_policies)
    EXPECT_FALSE(policy.make_keys) << policy.name;
  EXPECT_EQ(result.settings.dnssec_policy("bind-2")->validity, std::chrono::days(20));
  EXPECT_EQ(result.settings.dnssec_policy("bind-2")->refresh, std::chrono::days(5));
  EXPECT_EQ(commands_of(result),
            "pandoctl dnssec import one. /var/lib/bind/Kone.+*.private\n"
            "pandoctl dnssec import Two. '/var/lib/bind/keys dir/Ktwo.+'*.private\n"
            "pandoctl dnssec import three. /var/lib/bind/Kthree.+*.private\n");
  for (const char* line :
       {"zone one: BIND signs it (dnssec-policy default): it is not served before the manager has",
        "zone three: BIND signs it (auto-dnssec maintain): it is not served",
        "zone four: is left out: BIND signs it (dnssec-policy short)"})
    EXPECT_THAT(result.changes(), HasSubstr(line));
}

TEST(NamedImport, APolicyOfBindBecomesOneOfOurs) {
  const auto result = from_bind(R"(
dnssec-policy "own" {
  keys { ksk key-directory lifetime unlimited algorithm ed25519; zsk lifetime P60D algorithm 15; };
  signatures-validity 1w; signatures-validity-dnskey 2w; signatures-refresh PT36H;
  zone-propagation-delay 300; parent-ds-ttl P1DT1H; cds-digest-types { }; max-zone-ttl 1d;
};
options { dnssec-policy own; };
zone one { type primary; file "/1"; };
zone two { type primary; file "/2"; };
)");
  ASSERT_EQ(result.settings.dnssec_policies.size(), 1U) << result.report();
  const DnssecPolicy& policy = result.settings.dnssec_policies.front();
  EXPECT_EQ(policy.name, "bind-own");
  EXPECT_EQ(policy.algorithm, 15);
  EXPECT_EQ(policy.validity, std::chrono::days(7));
  EXPECT_EQ(policy.refresh, std::chrono::hours(36));
  EXPECT_EQ(policy.propagation, std::chrono::minutes(5));
  EXPECT_EQ(policy.parent_ds_ttl, std::chrono::hours(25));
  EXPECT_FALSE(policy.cds);
  EXPECT_EQ(result.options("two").dnssec, "bind-own");
  EXPECT_THAT(result.report(), HasSubstr("no key is rolled by itself here (zsk lifetime P60D)"));
}

TEST(NamedImport, DenialIsHashedAsBefore) {
  const auto result = from_bind(R"(
dnssec-policy hashed { nsec3param iterations 5 optout no salt-length 8; };
dnssec-policy large { nsec3param optout yes; };
zone one { type primary; file "/1"; dnssec-policy hashed; };
zone two { type primary; file "/2"; dnssec-policy large; };
)");
  EXPECT_EQ(result.settings.dnssec_policy(result.options("one").dnssec)->nsec3, Nsec3Use::kOn);
  EXPECT_EQ(result.settings.dnssec_policy(result.options("two").dnssec)->nsec3, Nsec3Use::kOptOut);
}

/// Each of these would be served by other keys, or not at all.
TEST(NamedImport, ZonesThatCannotBeSignedHereAreLeftOut) {
  const auto result = from_bind(R"(
dnssec-policy hsm { keys { csk key-store "pkcs" lifetime unlimited algorithm 13; }; };
dnssec-policy old { keys { csk lifetime unlimited algorithm rsasha1 2048; }; };
dnssec-policy away { offline-ksk yes; };
zone one { type primary; file "/1"; dnssec-policy hsm; };
zone two { type primary; file "/2"; dnssec-policy old; };
zone three { type primary; file "/3"; dnssec-policy away; };
zone five { type primary; file "/5"; dnssec-policy insecure; };
zone six { type primary; file "/6"; dnssec-policy lost; };
)");
  EXPECT_EQ(result.settings.zones.size(), 0U) << result.outcome.yaml;
  EXPECT_THAT(result.settings.dnssec_policies, IsEmpty());
  for (const char* line : {"zone one: is left out: BIND signs it (dnssec-policy hsm), and its keys "
                           "are in the key store pkcs. Transfer it",
                           "zone two: is left out: BIND signs it (dnssec-policy old), by algorithm "
                           "rsasha1, which does not sign here",
                           "zone three: is left out: BIND signs it (dnssec-policy away), and its KSK",
                           "zone five: is left out: BIND signs it (dnssec-policy insecure), which",
                           "zone six: is left out: BIND signs it (dnssec-policy lost), and its policy"})
    EXPECT_THAT(result.changes(), HasSubstr(line));
}

TEST(NamedImport, ACatalogWhoseMembersBindSignsIsLeftOut) {
  const auto result = from_bind(R"(
options { dnssec-policy default; catalog-zones { zone members.example; }; };
zone members.example { type secondary; primaries { 192.0.2.1; }; dnssec-policy none; };
)");
  EXPECT_THAT(result.settings.catalogs, IsEmpty()) << result.report();
  EXPECT_THAT(result.changes(),
              HasSubstr("is left out: BIND signs its members (dnssec-policy default)"));
}

TEST(NamedImport, APolicyOfAllZonesIsThatOfEach) {
  const auto result = from_bind(R"(
options { dnssec-policy default; };
zone one { type primary; file "/1"; };
zone two { type primary; file "/2"; dnssec-policy "none"; };
)");
  EXPECT_EQ(result.options("one").dnssec, "bind-default");
  EXPECT_EQ(result.options("two").dnssec, "");
}

TEST(NamedImport, WhatChangesAnswersComesFirst) {
  const auto result = from_bind(
      "options { pid-file \"x\"; allow-transfer { none; }; notify no; };\n"
      "zone a { type primary; file \"/a\"; };\nzone b { type forward; };");
  ASSERT_EQ(result.outcome.omissions.size(), 2U) << result.report();
  EXPECT_EQ(result.outcome.omissions[0].statement, "zone b");
  EXPECT_EQ(result.outcome.omissions[1].statement, "pid-file");
  EXPECT_EQ(result.outcome.changes(), 1U);
}

TEST(NamedImport, TheHostsOwnKeyIsMadeByTheManager) {
  const auto result = from_bind(
      "zone a { type primary; file \"/a\"; update-policy local; };"
      "zone b { type primary; file \"/b\"; update-policy local; };");
  ASSERT_EQ(result.settings.keys.size(), 1U) << result.outcome.yaml;
  EXPECT_EQ(result.settings.keys[0].session_file, "/run/pando/session.key");
  EXPECT_THAT(rule_words(result.options("b").allow_update),
              ElementsAre("allow 127.0.0.0/8 local-ddns.", "allow ::1 local-ddns."));
  EXPECT_TRUE(result.outcome.secrets.empty());
}

TEST(NamedImport, CatalogsAreConsumed) {
  const auto result = from_bind(R"(
options {
  allow-transfer { 192.0.2.7; };
  catalog-zones { zone "c.example" default-primaries { 192.0.2.1; } in-memory no; };
};
zone "c.example" { type secondary; file "/c"; primaries { 192.0.2.1; }; };
)");
  ASSERT_EQ(result.settings.catalogs.size(), 1U) << result.report();
  const Catalog& catalog = result.settings.catalogs[0];
  EXPECT_FALSE(catalog.produces());
  EXPECT_THAT(catalog.primaries, ElementsAre("192.0.2.1"));
  EXPECT_EQ(catalog.template_name, "members");
  EXPECT_THAT(result.outcome.yaml, HasSubstr("- name: members\n    allow-transfer:\n"));
  EXPECT_EQ(result.changes(), "");
}

TEST(NamedImport, SettingsOfTheServerThatAreHereAreTaken) {
  const auto result = from_bind(R"(
options {
  port 5300;
  hostname "ns1";
  transfer-source 192.0.2.3;
  transfer-source-v6 *;
  allow-transfer { none; };
  rate-limit { responses-per-second 9; exempt-clients { 192.0.2.0/24; }; window 15; };
  dnstap { auth; }; dnstap-output unix "/run/dnstap.sock";
};
zone a { type primary; file "/a"; notify explicit; notify-delay 9; serial-update-method date; };
)");
  const Server& server = result.settings.server;
  EXPECT_THAT(server.listen,
              ElementsAre(*Endpoint::from_text("0.0.0.0@5300"), *Endpoint::from_text("::@5300")));
  EXPECT_EQ(server.identity, "ns1");
  EXPECT_EQ(to_text(server.transfer_source.value()), "192.0.2.3");
  ASSERT_EQ(server.rate_limit.exempt.size(), 1U);
  EXPECT_EQ(to_text(server.rate_limit.exempt[0]), "192.0.2.0/24");
  EXPECT_EQ(server.dnstap.value().socket, "/run/dnstap.sock");
  EXPECT_EQ(result.options("a").notify_delay, std::chrono::seconds(9));
  EXPECT_EQ(result.options("a").serial_policy, SerialPolicy::kDate);
  EXPECT_EQ(result.changes(), "");
}

TEST(NamedImport, FaultsOfTheSyntaxHaveFileAndLine) {
  EXPECT_EQ(import_error(ImportKind::kBind, "zone a {\n type primary;\n"),
            "/x.conf:1: a block that begins here has no end");
  EXPECT_EQ(import_error(ImportKind::kBind, "\n};"),
            "/x.conf:2: a closing brace without an opening one");
  EXPECT_EQ(import_error(ImportKind::kBind, "\noptions"),
            "/x.conf:2: a statement that begins here has no semicolon");
  EXPECT_EQ(import_error(ImportKind::kBind, "a \"b;\n"), "/x.conf:1: a quoted text without an end");
  EXPECT_EQ(import_error(ImportKind::kBind, "/* a"), "/x.conf:1: a comment without an end");
  EXPECT_EQ(import_error(ImportKind::kBind, std::string(100'000, '{')),
            "/x.conf:1: more than 32 blocks in each other");
}

TEST(NamedImport, AMissingSemicolonIsReported) {
  const auto result = from_bind("zone a { type primary; file \"a\"; }\nzone b { type primary; };");
  EXPECT_THAT(result.report(), HasSubstr(":1: zone a: has not one block; is a semicolon missing?"));
}

}  // namespace named_import_test
}  // namespace pando::config
