#include <sys/stat.h>

#include "load_fixture.h"
#include "tests/support/trees.h"

namespace pando::config {
namespace load_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Configuration, AnEmptyFileMeansTheDefaults) {
  for (const char* text : {"", "# nothing\n", "---\n", "{}", "server:\nzones:\nzone-lists:\n"}) {
    const Settings settings = good(text);
    EXPECT_EQ(settings.server, Server{}) << text;
    EXPECT_EQ(settings.store, StoreSettings{});
    EXPECT_EQ(settings.limits, Limits{});
    EXPECT_TRUE(settings.zones.empty());
  }
}

TEST(Configuration, ReadsTheServerSection) {
  const Server server = good(R"(
server:
  listen: [127.0.0.1@5300, "::1@5300", 192.0.2.1]
  workers: 4
  run-directory: run
  user: root
  worker-user: nobody
  control-group: staff
  identity: ns1.example.net
  udp-payload: 1400
  minimal-responses: true
  md5: true
  log: {level: debug, format: json}
)")
                            .server;
  EXPECT_EQ(to_text(server.listen.at(0)), "127.0.0.1@5300");
  EXPECT_EQ(to_text(server.listen.at(1)), "::1@5300");
  EXPECT_EQ(to_text(server.listen.at(2)), "192.0.2.1@53");
  EXPECT_EQ(server.workers, (Workers{Workers::Mode::kFixed, 4}));
  EXPECT_EQ(server.run_directory, "/etc/pando/run") << "relative to the file's folder";
  EXPECT_EQ(server.user, "root");
  EXPECT_EQ(server.worker_user, "nobody");
  EXPECT_EQ(server.control_group, "staff");
  EXPECT_EQ(server.identity, "ns1.example.net");
  EXPECT_EQ(server.udp_payload, 1400);
  EXPECT_TRUE(server.md5);
  EXPECT_EQ(server.log.level, LogLevel::kDebug);
  EXPECT_EQ(server.log.format, LogFormat::kJson);
}

TEST(Configuration, ASecretMayStandInAFileOfItsOwn) {
  const TemporaryFolder folder;
  const std::string secret = folder.write("key", "MDEyMzQ1Njc4OWFiY2RlZg==\n");
  const std::string path = folder.write("p.yaml",
                                        "server: {listen: [127.0.0.1@5300]}\n"
                                        "keys: [{name: a, secret-file: key}]\n");
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  const LoadResult good = load(path);
  EXPECT_EQ(good.error_text(), "");
  EXPECT_THAT(good.warnings, ::testing::IsEmpty()) << "the configuration itself has no secret";
  ASSERT_EQ(good.settings.keys.size(), 1U);
  EXPECT_EQ(good.settings.keys[0].secret.size(), 16U);
  ASSERT_EQ(::chmod(secret.c_str(), 0644), 0);
  EXPECT_THAT(load(path).error_text(), HasSubstr("other users can read or write " + secret));
  folder.write("key", "MTEyMzQ1Njc4OWFiY2RlZg==");
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  EXPECT_NE(load(path).fingerprint, good.fingerprint) << "a reload sees the other secret";
}

TEST(Configuration, AKeyHasOneSecret) {
  EXPECT_THAT(errors_of("keys: [{name: a}]"),
              HasSubstr("'secret', 'secret-file' or 'session-file' is missing"));
  EXPECT_EQ(errors_of("keys: [{name: a, session-file: /run/x.key}]"), "");
  EXPECT_THAT(errors_of("keys: [{name: a, session-file: x, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]"),
              HasSubstr("the secret of a 'session-file' is made by the manager"));
  EXPECT_THAT(errors_of("keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZg==, secret-file: x}]"),
              HasSubstr("the key has a 'secret' already"));
  EXPECT_THAT(errors_of("keys: [{name: a, secret-file: /nowhere/x}]"), HasSubstr("/nowhere/x"));
}

TEST(Configuration, SecretsThatOthersCanReadAreAWarning) {
  const TemporaryFolder folder;
  for (const char* text : {"keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]",
                           "server: {cookies: {secrets: [000102030405060708090a0b0c0d0e0f]}}"}) {
    const std::string path = folder.write("p.yaml", text);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    EXPECT_THAT(load(path).warnings,
                ::testing::ElementsAre(HasSubstr(path + ": other users can read")))
        << text;
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    EXPECT_THAT(load(path).warnings, ::testing::IsEmpty()) << text;
  }
  const std::string open = folder.write("open.yaml", "server: {listen: [127.0.0.1@5300]}");
  ASSERT_EQ(::chmod(open.c_str(), 0644), 0);
  EXPECT_THAT(load(open).warnings, ::testing::IsEmpty()) << "no secrets";
}

TEST(Configuration, ReadsTheStoreSection) {
  const StoreSettings store = good(R"(
store: {path: /dev/shm/x/s, size-limit: 1GiB, journal: ../j/, journal-limit: 64MiB}
)")
                                  .store;
  EXPECT_EQ(store.path, "/dev/shm/x/s");
  EXPECT_EQ(store.size_limit, 1ULL << 30);
  EXPECT_EQ(store.journal, "/etc/j/");
  EXPECT_EQ(store.journal_limit, 64ULL << 20);
}

TEST(Configuration, ReadsTheLimitsSection) {
  const Limits limits = good(R"(
limits: {rrset-records: 5, name-types: 6, zone-records: 7, tcp-clients: 8, tcp-idle: 9s,
         transfers-in: 10, transfers-in-per-primary: 11, refresh: [2s, 1week], pin-time: 1min,
         transfer-time: 3min, transfer-size: 4MiB}
)")
                            .limits;
  EXPECT_EQ(limits.rrset_records, 5U);
  EXPECT_EQ(limits.name_types, 6U);
  EXPECT_EQ(limits.zone_records, 7U);
  EXPECT_EQ(limits.tcp_clients, 8U);
  EXPECT_EQ(limits.tcp_idle, 9s);
  EXPECT_EQ(limits.transfers_in, 10U);
  EXPECT_EQ(limits.transfers_in_per_primary, 11U);
  EXPECT_EQ(limits.transfer_time, 3min);
  EXPECT_EQ(limits.transfer_size.of(0), 4ULL << 20);
  EXPECT_EQ(limits.refresh, (DurationRange{2s, std::chrono::weeks(1)}));
  EXPECT_EQ(limits.pin_time, 1min);
}

constexpr std::string_view kKey =
    "keys: [{name: k, algorithm: hmac-sha512, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}]\n";

TEST(Configuration, ReadsKeysAndRemotes) {
  const Settings settings = good(std::string(kKey) + R"(
remotes:
  - {name: upstream, address: [192.0.2.1@5353, "2001:db8::1"], key: K.}
)");
  const Key* key = settings.find_key(name("k"));
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->algorithm, dns::TsigAlgorithm::kSha512);
  EXPECT_EQ(std::string(key->secret.begin(), key->secret.end()), "secret secret secret");
  const Remote* remote = settings.find_remote("upstream");
  ASSERT_NE(remote, nullptr);
  EXPECT_EQ(to_text(remote->address.at(0)), "192.0.2.1@5353");
  EXPECT_EQ(to_text(remote->address.at(1)), "2001:db8::1@53");
  EXPECT_EQ(remote->key, name("k"));
}

TEST(Configuration, ReadsZonesAndTheirRules) {
  const Settings settings = good(std::string(kKey) + R"(
zones:
  - name: example.com
    file: zones/example.com.zone
    allow-query: [{address: 0.0.0.0/0}]
    allow-update: [{key: k, names: ["*.dyn.example.com"], types: [A, AAAA]}]
    allow-transfer: [{key: k}, {address: 192.0.2.9, deny: true}, {address: 192.0.2.0/24}]
    serial-policy: unixtime
    verify: refuse
    verify-command: [/usr/bin/check, -o, "a b"]
    verify-time: 90s
)");
  ASSERT_EQ(settings.zones.size(), 1U);
  const ZoneRef zone = settings.zones[0];
  EXPECT_EQ(zone.name, name("example.com").view());
  EXPECT_EQ(settings.zones.path(0), "/etc/pando/zones/example.com.zone");
  EXPECT_EQ(zone.options->serial_policy, SerialPolicy::kUnixtime);
  EXPECT_EQ(zone.options->verify, SignaturePolicy::kRefuse);
  EXPECT_EQ(zone.options->verify_command,
            (std::vector<std::string>{"/usr/bin/check", "-o", "a b"}));
  EXPECT_EQ(zone.options->verify_time, 90s);
  ASSERT_EQ(zone.options->allow_update.size(), 1U);
  const zone::AclRule& update = zone.options->allow_update[0];
  EXPECT_EQ(update.key, name("k"));
  EXPECT_EQ(update.names, std::vector{name("*.dyn.example.com")});
  EXPECT_EQ(update.types, (std::vector{dns::RRType::kA, dns::RRType::kAAAA}));
  ASSERT_EQ(zone.options->allow_transfer.size(), 3U);
  EXPECT_TRUE(zone.options->allow_transfer[1].deny);
  EXPECT_EQ(to_text(*zone.options->allow_transfer[2].address), "192.0.2.0/24");
}

TEST(Configuration, WithoutRulesEverybodyMayQueryAndNobodyMayTransfer) {
  const Settings settings = good("zones: [{name: a, file: f}]");
  const ZoneOptions& options = *settings.zones[0].options;
  const IpAddress anybody = *IpAddress::from_text("203.0.113.1");
  EXPECT_TRUE(zone::allowed(options.allow_query, {anybody, nullptr}));
  EXPECT_FALSE(zone::allowed(options.allow_transfer, {anybody, nullptr}));
  EXPECT_FALSE(zone::allowed(options.allow_update, {anybody, nullptr}));
}

constexpr std::string_view kTemplates = R"(
remotes: [{name: up, address: [192.0.2.1]}]
templates:
  - {name: hidden, allow-query: [], serial-policy: date}
  - {name: default, allow-transfer: [{address: 127.0.0.0/8}], serial-policy: unixtime}
  - {name: secondary, primaries: [up]}
)";

TEST(Templates, DefaultAppliesToEveryZone) {
  const Settings settings = good(std::string(kTemplates) + "zones: [{name: a, file: f}]");
  EXPECT_EQ(settings.zones[0].options->allow_transfer.size(), 1U);
  EXPECT_EQ(settings.zones[0].options->serial_policy, SerialPolicy::kUnixtime);
}

TEST(Templates, ANamedOneReplacesDefaultKeyByKey) {
  const Settings settings =
      good(std::string(kTemplates) + "zones: [{name: a, file: f, template: hidden}]");
  EXPECT_EQ(settings.zones[0].options->allow_transfer.size(), 1U) << "still from default";
  EXPECT_TRUE(settings.zones[0].options->allow_query.empty());
  EXPECT_EQ(settings.zones[0].options->serial_policy, SerialPolicy::kDate);
}

TEST(Templates, TheZoneItselfHasTheLastWord) {
  const Settings settings =
      good(std::string(kTemplates) +
           "zones: [{name: a, file: f, template: hidden, serial-policy: increment, "
           "allow-transfer: []}]");
  EXPECT_EQ(settings.zones[0].options->serial_policy, SerialPolicy::kIncrement);
  EXPECT_TRUE(settings.zones[0].options->allow_transfer.empty());
}

TEST(Templates, ZonesThatSayNothingOfTheirOwnShareTheOptions) {
  const Settings settings = good(std::string(kTemplates) +
                                 "zones: [{name: a, template: secondary}, "
                                 "{name: b, template: secondary}, {name: c, file: f}]");
  EXPECT_EQ(settings.zones[0].options, settings.zones[1].options);
  EXPECT_NE(settings.zones[0].options, settings.zones[2].options);
}

TEST(Configuration, NeighboursWithTheSameRulesShareThem) {
  const Settings settings =
      good("zones:\n- {name: a, file: f, allow-query: [192.0.2.1]}\n"
           "- {name: b, file: f, allow-query: [192.0.2.1]}\n"
           "- {name: c, file: f, allow-query: [192.0.2.2]}\n- {name: d, file: f}\n");
  EXPECT_EQ(settings.zones[0].options, settings.zones[1].options);
  EXPECT_NE(settings.zones[1].options, settings.zones[2].options);
  EXPECT_EQ(settings.zones[2].options->allow_query[0].address, *IpPrefix::from_text("192.0.2.2"));
  EXPECT_TRUE(zone::allowed(settings.zones[3].options->allow_query,
                            {*IpAddress::from_text("203.0.113.1")}));
}

TEST(Configuration, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(
      load_yaml("server:\n  udp-payload: 100\n").errors,
      std::vector<std::string>{"/etc/pando/p.yaml:2: server.udp-payload: '100' is not a whole "
                               "number from 512 to 4096"});
}

TEST(Configuration, UnknownKeysAreErrors) {
  EXPECT_EQ(errors_of("sever: {}"), "1: sever: unknown key; did you mean 'server'?");
  EXPECT_EQ(errors_of("server:\n  log:\n    levle: info\n"), "3: server.log.levle: unknown key; did you mean 'level'?");
  EXPECT_EQ(errors_of("zones:\n- name: a\n  file: f\n  primary: b\n"),
            "4: zones[0].primary: unknown key; did you mean 'primaries'?");
  EXPECT_EQ(errors_of("templates: [{name: t, file: f}]"), "1: templates[0].file: unknown key");
}

TEST(Configuration, DuplicateKeysAreErrors) {
  EXPECT_EQ(errors_of("limits:\n  tcp-clients: 1\n  tcp-idle: 1s\n  tcp-clients: 2\n"),
            "4: limits.tcp-clients: given twice, first in line 2");
  EXPECT_EQ(errors_of("zones: []\nserver: {}\nzones: []\n"),
            "3: zones: given twice, first in line 1");
}

TEST(Configuration, ASecondaryZoneHasNoExportInterval) {
  const std::string remotes = "remotes: [{name: r, address: [\"::1\"]}]\n";
  EXPECT_EQ(
      errors_of(remotes + "zones:\n- {name: z, primaries: [r], export-interval: 1s}\n"),
      "3: zones[0]: zone z. is secondary, its copy needs no 'export-interval' (it may be 'off')");
  EXPECT_EQ(errors_of(remotes + "templates: [{name: default, export-interval: 1s}]\n"
                                "zones:\n- {name: z, primaries: [r], export-interval: off}\n"
                                "- {name: y, file: f}\n"),
            "");
}

TEST(Configuration, AllProblemsAreReportedInTheOrderOfLines) {
  EXPECT_EQ(errors_of("zones:\n"
                      "- {name: a..b, file: f}\n"
                      "- {name: b}\n"
                      "limits:\n"
                      "  tcp-clients: many\n"
                      "x: 1\n"),
            "2: zones[0].name: empty label in name 'a..b'\n"
            "3: zones[1]: zone b. has neither 'file' nor 'primaries'\n"
            "5: limits.tcp-clients: 'many' is not a whole number from 1 to 1000000\n"
            "6: x: unknown key");
}

TEST(Configuration, RefusesDuplicatesOfNamedThings) {
  EXPECT_EQ(errors_of("zones:\n- {name: a, file: f}\n- {name: A., file: g}\n"),
            "3: zones[1]: zone A. is configured twice");
  EXPECT_THAT(errors_of("remotes:\n- {name: a, address: [192.0.2.1]}\n"
                        "- {name: a, address: [192.0.2.1]}\n"),
              HasSubstr("3: remotes[1]: a remote 'a' is there already"));
  EXPECT_THAT(errors_of("keys:\n- {name: a, secret: MDEyMzQ1Njc4OUFCQ0RFRg==}\n"
                        "- {name: A, secret: MDEyMzQ1Njc4OUFCQ0RFRg==}\n"),
              HasSubstr("3: keys[1]: a key 'A.' is there already"));
  EXPECT_THAT(errors_of("templates: [{name: a}, {name: a}]"),
              HasSubstr("1: templates[1]: a template 'a' is there already"));
  EXPECT_THAT(errors_of("server: {listen: [127.0.0.1, 127.0.0.1@53]}"),
              HasSubstr("server.listen[1]: stands in the list twice"));
}

TEST(Configuration, RefusesReferencesToNothing) {
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, template: t}]"),
            "1: zones[0].template: no template is named 't'");
  EXPECT_EQ(errors_of("zones: [{name: a, primaries: [up]}]"),
            "1: zones[0].primaries[0]: no remote is named 'up'");
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-transfer: [{key: k}]}]"),
            "1: zones[0].allow-transfer[0].key: no key is named 'k.'");
  EXPECT_EQ(errors_of("remotes: [{name: a, address: [192.0.2.1], key: k}]"),
            "1: remotes[0].key: no key is named 'k.'");
}

TEST(Configuration, TakesABareAddressForARule) {
  const Settings settings =
      good("zones: [{name: a, file: f, allow-query: [192.0.2.0/24, '::1', "
           "{address: 198.51.100.1, deny: true}]}]");
  const zone::Acl& rules = settings.zones[0].options->allow_query;
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(to_text(*rules[0].address), "192.0.2.0/24");
  EXPECT_EQ(to_text(*rules[1].address), "::1/128");
  EXPECT_TRUE(!rules[0].key && !rules[0].deny && rules[2].deny);
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-query: [everybody]}]"),
            "1: zones[0].allow-query[0]: 'everybody' is not an IP address");
}

TEST(Configuration, TakesARuleForTheListThatHasItAlone) {
  const zone::Acl bare =
      good("zones: [{name: a, file: f, allow-query: 192.0.2.0/24}]").zones[0].options->allow_query;
  ASSERT_EQ(bare.size(), 1U);
  EXPECT_EQ(to_text(*bare[0].address), "192.0.2.0/24");
  const Settings settings =
      good("zones: [{name: a, file: f, allow-query: {address: '::1', deny: true}}]");
  const zone::Acl& rules = settings.zones[0].options->allow_query;
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_TRUE(rules[0].deny && to_text(*rules[0].address) == "::1/128");
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-query: everybody}]"),
            "1: zones[0].allow-query: 'everybody' is not an IP address");
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-query: {deny: true}}]"),
            "1: zones[0].allow-query: a rule needs 'key', 'address' or 'tls'");
}

TEST(Configuration, RefusesRulesThatCannotBeMeant) {
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-query: [{deny: true}]}]"),
            "1: zones[0].allow-query[0]: a rule needs 'key', 'address' or 'tls'");
  EXPECT_EQ(
      errors_of("zones: [{name: a, file: f, allow-query: [{address: 192.0.2.1/24}]}]"),
      "1: zones[0].allow-query[0].address: '192.0.2.1/24' has bits set behind its prefix length");
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-transfer: [{address: ::/0, types: [A]}]}]"),
            "1: zones[0].allow-transfer[0].types: unknown key");
  EXPECT_EQ(errors_of("zones: [{name: a, file: f, allow-update: [{address: ::/0, types: [ANY]}]}]"),
            "1: zones[0].allow-update[0].types[0]: no zone has records of this type");
  EXPECT_EQ(errors_of("zones:\n- name: a\n  file: f\n  allow-query:\n"),
            "4: zones[0].allow-query: needs a list")
      << "neither everybody nor nobody is meant";
}

TEST(Configuration, WarnsOfUpdateNamesOutsideTheZone) {
  const LoadResult result = load_yaml(std::string(kKey) +
                                      "zones: [{name: a.example, file: f, allow-update: "
                                      "[{key: k, names: [b.example]}]}]");
  EXPECT_TRUE(result.ok());
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_THAT(result.warnings[0], HasSubstr("'b.example.' in allow-update is outside the zone"));
}

TEST(Configuration, WarnsOfSecretsThatCanBeGuessed) {
  const LoadResult result = load_yaml("keys: [{name: k, secret: Zm9v}]");
  EXPECT_TRUE(result.ok());
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_THAT(result.warnings[0], HasSubstr("keys[0].secret"));
}

TEST(Configuration, RefusesMd5KeysUnlessAskedFor) {
  const std::string key =
      "keys: [{name: k, algorithm: hmac-md5, secret: MDEyMzQ1Njc4OUFCQ0RFRg==}]\n";
  EXPECT_THAT(errors_of(key), HasSubstr("hmac-md5 is refused unless 'server.md5' is true"));
  EXPECT_EQ(errors_of(key + "server: {md5: true}"), "");
}

TEST(Configuration, RefusesMissingKeys) {
  EXPECT_EQ(errors_of("zones: [{file: f}]"), "1: zones[0]: 'name' is missing");
  EXPECT_EQ(errors_of("keys: [{name: k}]"),
            "1: keys[0]: 'secret', 'secret-file' or 'session-file' is missing");
  EXPECT_EQ(errors_of("remotes: [{name: k}]"), "1: remotes[0]: 'address' is missing");
  EXPECT_EQ(errors_of("remotes: [{name: k, address: []}]"),
            "1: remotes[0]: 'address' names no address");
}

TEST(Configuration, RefusesWrongShapes) {
  EXPECT_EQ(errors_of("[]"), "1: needs a mapping of keys to values");
  EXPECT_EQ(errors_of("server: 7"), "1: server: needs a mapping of keys to values");
  EXPECT_EQ(errors_of("server: {listen: 127.0.0.1}"), "1: server.listen: needs a list");
  EXPECT_EQ(errors_of("server: {md5: [true]}"), "1: server.md5: needs a single value");
  EXPECT_EQ(errors_of("server:\n  md5:\n"), "2: server.md5: has no value");
  EXPECT_EQ(errors_of("zones: [7]"), "1: zones[0]: needs a mapping of keys to values");
  EXPECT_EQ(errors_of("? [a]\n: 1\n"), "1: a key is not plain text");
  EXPECT_EQ(errors_of("zones: !include zones.yaml"), "1: zones: tag '!include' means nothing here");
  const std::string_view behind = "text behind the end of the first document: only one is read";
  EXPECT_EQ(errors_of("server: {}\n---\nzones: []\n"), fmt::format("2: {}", behind));
  EXPECT_EQ(errors_of(",#"), fmt::format("1: {}", behind));
  EXPECT_EQ(errors_of("server: {}\n]\n"), "2: illegal flow end");
}

TEST(Configuration, WhatIsNotClosedIsToldInPlaceOfTheParsersWords) {
  EXPECT_EQ(errors_of("zones:\n  - {name: a.test, file: x\nserver: {}\n"),
            "2: the { that begins here is not closed");
  EXPECT_EQ(errors_of("zones:\n  - name: 'a.test\n    file: x\n"),
            "2: the ' that begins here is not closed");
  EXPECT_EQ(errors_of("server: {listen: [127.0.0.1}\n"),
            "1: the [ that begins here is closed by the } of line 1");
}

TEST(Configuration, RefusesWrongValues) {
  const std::pair<const char*, const char*> cases[] = {
      {"server: {workers: none}", "neither auto, external nor a number"},
      {"server: {workers: 0}", "neither auto, external nor a number"},
      {"server: {listen: []}", "'listen' names no address"},
      {"server: {listen: [localhost]}", "server.listen[0]: 'localhost' is not an IP address"},
      {"server: {listen: ['192.0.2.1:53']}",
       "server.listen[0]: '192.0.2.1:53' is not an IP address; a port is written '192.0.2.1@53'"},
      {"server: {listen: [127.0.0.1@70000]}", "bad port"},
      {"server: {identity: \"\"}", "server.identity: is empty"},
      {"server: {identity: \"a\\nb\"}", "server.identity: is not printable text"},
      {"server: {log: {level: loud}}", "'loud' is none of trace, debug, info, warning, error, off"},
      {"server: {run-directory: "
       "/12345678901234567890123456789012345678901234567890123456789012345678"
       "901234567890123456789}",
       "too long for its sockets"},
      {"store: {size-limit: 64GiB}", "store.size-limit: 64GiB is not between"},
      {"store: {journal-limit: 1}", "store.journal-limit: 1 is not between"},
      {"store: {path: /a, journal: /a}", "'journal' is a folder"},
      {"limits: {refresh: [1s]}", "needs two durations"},
      {"limits: {refresh: [2s, 1s]}", "needs two durations"},
      {"limits: {tcp-idle: 1ms}", "limits.tcp-idle: 1ms is not between"},
      {"limits: {tcp-idle: soon}", "'soon' is not a duration"},
      {"keys: [{name: k, secret: '!'}]", "keys[0].secret: not base64"},
      {"keys: [{name: k, secret: ''}]", "keys[0].secret: is empty"},
      {"zones: [{name: bücher.example, file: f}]", "write the xn-- form"},
      {"zones: [{name: a, file: ''}]", "zones[0].file: is empty"},
      {"zones: [{name: a, file: f, serial-policy: up}]",
       "'up' is none of increment, unixtime, date"},
      {"zones: [{name: a, file: f, verify: strict}]", "'strict' is none of off, warn, refuse"},
      {"zones: [{name: a, file: f, verify-command: [check, -v]}]",
       "zones[0].verify-command: begins with no absolute path"},
      {"zones: [{name: a, file: f, verify-command: /usr/bin/check}]", "zones[0].verify-command: "},
      {"zones: [{name: a, file: f, verify-time: 0}]", "zones[0].verify-time: 0 is not between"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_THAT(errors_of(text), HasSubstr(expected)) << text;
}

TEST(Configuration, SyntaxErrorsHaveALine) {
  EXPECT_EQ(errors_of("server:\n  listen: [\n"), "2: the [ that begins here is not closed");
  EXPECT_THAT(errors_of("a: b: c\n"), HasSubstr("1: "));
}

TEST(Configuration, TheNumberOfErrorsIsBounded) {
  std::string text = "server:\n";
  for (int i = 0; i < 250; ++i) text += fmt::format("  k{}: 1\n", i);
  EXPECT_EQ(load_yaml(text).errors.size(), kMaxProblems);
  text.clear();
  for (int i = 0; i < 1000; ++i) text += fmt::format("k{}: 1\n", i);
  EXPECT_EQ(errors_of(text), "1: has too many keys");
}

TEST(Configuration, CyclesOfAliasesEnd) {
  EXPECT_NE(errors_of("zones: &a [*a, *a]"), "");
  EXPECT_NE(errors_of("&a {zones: [*a, *a], server: *a}"), "");
}

/// Rules of rules by aliases: a reader meets each list once for each alias, no more.
TEST(Configuration, AliasesAreBounded) {
  std::string text = "x:\n- &a0 [k, k]\n";
  for (int i = 1; i < 64; ++i) text += fmt::format("- &a{} [*a{}, *a{}]\n", i, i - 1, i - 1);
  EXPECT_EQ(errors_of(text + "zones: *a63\n"),
            "1: x: unknown key\n"
            "64: zones[0]: needs a mapping of keys to values\n"
            "64: zones[1]: needs a mapping of keys to values")
      << "the line is that of the anchor";
}

TEST(Configuration, AliasesWork) {
  const Settings settings = good(
      "zones:\n- {name: a, file: f, allow-transfer: &rules [{address: ::1}]}\n"
      "- {name: b, file: f, allow-transfer: *rules}\n");
  EXPECT_EQ(settings.zones[1].options->allow_transfer.size(), 1U);
}

TEST(Configuration, AMissingFileOrAFolderIsAnError) {
  EXPECT_FALSE(load("/nonexistent/pando.yaml").ok());
  EXPECT_THAT(load("/tmp").error_text(), HasSubstr("/tmp is not a regular file"));
}

TEST(Configuration, TheExampleIsValid) {
  const LoadResult result = load(pando::tests::source_path("/config/pando.yaml"));
  EXPECT_EQ(result.error_text(), "");
  for (const std::string& warning : result.warnings)  // its secret is published with the source
    EXPECT_THAT(warning, HasSubstr("pando.yaml: other users can read"));
  EXPECT_EQ(result.settings.zones.size(), 5U);
}

}  // namespace load_test
}  // namespace pando::config
