#include "config/effective.h"

#include "load_fixture.h"

namespace pando::config {
namespace effective_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kSections = R"(
server:
  listen: [127.0.0.1@5300, "::1@5300"]
  workers: 3
  identity: "ns1: #1"
  minimal-responses: false
  rate-limit: {responses: 20, exempt: [192.0.2.0/24]}
  transfer-source: 192.0.2.7
  log: {level: "off", format: json}
store: {size-limit: 1500KiB, journal: /var/j, checkpoint: {interval: 90s}}
limits: {zone-records: 77, transfer-size: 5MiB, history-total: 20%, refresh: [500ms, 2weeks]}
remotes:
  - {name: upstream, address: [192.0.2.1, "2001:db8::1@5353"]}
  - {name: "two words", address: [192.0.2.2]}
http: {listen: [127.0.0.1@8053], metrics-zones: 12}
templates:
  - {name: default, allow-transfer: [192.0.2.0/24, {address: 192.0.2.9, deny: true}]}
  - {name: customers, notify: [upstream], export-interval: 5min, verify: refuse}
catalogs:
  - {zone: catalog.test, role: consumer, primaries: [upstream], removal-grace: 12h,
     members-below: [customers.test, .], groups: [{name: g, template: customers}]}
)";

/// The settings of two texts are equal but for zones.
void expect_equal(const Settings& a, const Settings& b) {
  EXPECT_EQ(a.server, b.server);
  EXPECT_EQ(a.store, b.store);
  EXPECT_EQ(a.limits, b.limits);
  EXPECT_EQ(a.remotes, b.remotes);
  EXPECT_EQ(a.catalogs, b.catalogs);
  EXPECT_EQ(a.http, b.http);
}

TEST(EffectiveSettings, AreAConfigurationOfTheSameSettings) {
  const Settings settings = good(kSections);
  const std::string yaml = effective_server(settings);
  const Settings again = good(yaml);
  expect_equal(settings, again);
  EXPECT_EQ(effective_server(again), yaml);
  EXPECT_THAT(compare(settings, again, 100).settings, IsEmpty()) << yaml;
}

TEST(EffectiveSettings, OfAnEmptyConfigurationAreTheDefaults) {
  const std::string yaml = effective_server(good(""));
  EXPECT_THAT(yaml, HasSubstr("\n  udp-payload: 1232\n"));
  EXPECT_THAT(yaml, HasSubstr("\n  checkpoint:\n    interval: 5min\n    journal: 64MiB\n"));
  EXPECT_THAT(yaml, HasSubstr("\nremotes: []\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("identity"))) << "a key without value cannot be written";
  expect_equal(good(""), good(yaml));
}

TEST(EffectiveSettings, NeverShowSecrets) {
  const Settings settings = good(R"(
server: {cookies: {secrets: [00112233445566778899aabbccddeeff]}}
keys: [{name: k.test, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}]
http: {keys: [{name: panel, secret: open-sesame-open-sesame, role: write, zones: [a.test]}]}
)");
  const std::string yaml = effective_server(settings);
  EXPECT_THAT(yaml, HasSubstr("keys:\n  - name: k.test\n    algorithm: hmac-sha256\n"
                              "    # secret: (not shown)\n"));
  EXPECT_THAT(yaml, HasSubstr("    - name: panel\n      # secret: (not shown)\n"
                              "      role: write\n      zones: [a.test]\n"));
  for (const char* secret : {"0011", "c2Vj", "sesame", "c2VjcmV0"})
    EXPECT_THAT(yaml, Not(HasSubstr(secret)));
}

TEST(EffectiveSettings, OfAZoneFollowTemplateAndDefaults) {
  const Settings settings = good(R"(
keys: [{name: k, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}]
templates: [{name: t, notify-delay: 5s, allow-update: [{key: k, names: ["*.a.test"], types: [A]}]}]
zones: [{name: a.test, file: a.zone, template: t, serial-policy: date}]
)");
  const std::string yaml = effective_zone(settings, 0);
  EXPECT_EQ(yaml, R"(zones:
  - name: a.test
    file: /etc/pando/a.zone
    primaries: []
    # allow-query: everybody
    allow-transfer: []
    allow-update: [{key: k, names: ["*.a.test"], types: [A]}]
    allow-notify: []
    notify: []
    notify-delay: 5s
    serial-policy: date
    export-interval: off
    forward-updates: false
    verify: warn
    verify-command: []
    verify-time: 1min
    dnssec: off
)");
  const Settings again =
      good("keys: [{name: k, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}]\n" + yaml);
  EXPECT_EQ(again.zones[0].options->allow_update, settings.zones[0].options->allow_update);
  EXPECT_EQ(again.zones[0].options->serial_policy, SerialPolicy::kDate);
}

std::vector<std::string> lines_of(const SettingChanges& changes) {
  std::vector<std::string> lines;
  for (const SettingChange& change : changes)
    lines.push_back(fmt::format("{}: {} -> {}{}", change.key, change.before, change.after,
                                change.at_restart ? " (restart)" : ""));
  return lines;
}

TEST(ConfigurationDifference, TellsTheKeysAndThoseThatWaitForARestart) {
  const Settings running = good(R"(
server: {udp-payload: 1400, user: dns}
keys: [{name: k, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}]
remotes: [{name: old, address: [192.0.2.1]}, {name: both, address: [192.0.2.2]}]
)");
  const Settings wanted = good(R"(
server: {user: other, log: {level: debug}}
keys: [{name: k, secret: b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=}]
remotes: [{name: both, address: [192.0.2.2, 192.0.2.3], key: k}]
http: {user: web}
)");
  EXPECT_THAT(lines_of(compare(running, wanted, 100).settings),
              ElementsAre("server.user: dns -> other (restart)", "server.udp-payload: 1400 -> 1232",
                          "server.log.level: info -> debug",
                          "keys[k].secret: (not shown) -> (not shown)",
                          "remotes[old].name: old -> ", "remotes[old].address: [192.0.2.1@53] -> []",
                          "remotes[both].address: [192.0.2.2@53] -> [192.0.2.2@53, 192.0.2.3@53]",
                          "remotes[both].key:  -> k", "http.user: pando-http -> web (restart)"));
}

TEST(ConfigurationDifference, TellsTheZonesByTheirEffectiveSettings) {
  const Settings running = good(R"(
templates: [{name: default, notify-delay: 1s}]
zones: [{name: gone.test, file: g}, {name: same.test, file: s, notify-delay: 7s},
        {name: changed.test, file: c}]
)");
  const Settings wanted = good(R"(
templates: [{name: default, notify-delay: 2s}]
zones: [{name: SAME.test, file: s, notify-delay: 7s}, {name: changed.test, file: d},
        {name: new.test, file: n}]
)");
  const ConfigDifference difference = compare(running, wanted, 100);
  EXPECT_THAT(lines_of(difference.settings), ElementsAre("templates[\"default\"].notify-delay: 1s -> 2s"));
  EXPECT_THAT(difference.added, ElementsAre(name("new.test")));
  EXPECT_THAT(difference.removed, ElementsAre(name("gone.test")));
  ASSERT_EQ(difference.changed.size(), 1U);
  EXPECT_EQ(difference.changed[0].zone, name("changed.test"));
  EXPECT_THAT(lines_of(difference.changed[0].settings),
              ElementsAre("file: /etc/pando/c -> /etc/pando/d", "notify-delay: 1s -> 2s"));
}

TEST(ConfigurationDifference, EndsListsAtTheLimitAndCountsAll) {
  std::string zones = "zones:\n";
  for (int i = 0; i < 9; ++i) zones += fmt::format("  - {{name: z{}.test, file: f}}\n", i);
  const ConfigDifference added = compare(good(""), good(zones), 4);
  EXPECT_EQ(added.zones_added, 9U);
  EXPECT_EQ(added.added.size(), 4U);
  const ConfigDifference removed = compare(good(zones), good(""), 4);
  EXPECT_EQ(removed.zones_removed, 9U);
  EXPECT_EQ(removed.removed.size(), 4U);
  const ConfigDifference changed =
      compare(good(zones), good("templates: [{name: default, notify-delay: 1s}]\n" + zones), 4);
  EXPECT_EQ(changed.zones_changed, 9U);
  EXPECT_EQ(changed.changed.size(), 4U);
}

TEST(ConfigurationDifference, CutsLongValues) {
  std::string rules;
  for (int i = 0; i < 200; ++i) rules += fmt::format("{}192.0.2.{}", i == 0 ? "" : ", ", i);
  const auto difference =
      compare(good(""), good("templates: [{name: t, allow-query: [" + rules + "]}]"), 10);
  for (const SettingChange& change : difference.settings)
    EXPECT_LE(change.after.size(), kMaxValueBytes + 3) << change.key;
}

}  // namespace effective_test
}  // namespace pando::config
