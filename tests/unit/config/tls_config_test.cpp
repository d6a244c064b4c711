// remotes[].tls, server.tls and rules about TLS.

#include <fmt/format.h>

#include "config/effective.h"
#include "load_fixture.h"
#include "zone/settings/acl.h"

namespace pando::config {
namespace tls_config_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPin = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";  // 0, 1, … 31
const std::string kOtherPin = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

std::string remote(std::string_view tls) {
  return fmt::format("remotes: [{{name: r, address: [192.0.2.7], tls: {}}}]\n", tls);
}
std::string with_rule(std::string_view tls, std::string_view rule) {
  return remote(tls) +
         fmt::format("zones: [{{name: a, file: f, allow-transfer: [{}]}}]\n", rule);
}

TEST(RemoteTls, HasNamePinsAndACertificateOfOurs) {
  const Settings settings =
      good(remote("{hostname: NS2.Example.ORG., ca: ca.pem, pins: [" + kPin + ", " + kOtherPin +
                  "], certificate: own.pem, key: own.key}"));
  const RemoteTls& tls = *settings.remotes[0].tls;
  EXPECT_EQ(tls.hostname, "ns2.example.org");
  EXPECT_TRUE(tls.ca.starts_with('/') && tls.ca.ends_with("/ca.pem"));
  EXPECT_TRUE(tls.certificate.ends_with("/own.pem") && tls.key.ends_with("/own.key"));
  ASSERT_EQ(tls.pins.size(), 2U);
  EXPECT_EQ(tls.pins[0].size(), 32U);
  EXPECT_EQ(tls.pins[0][31], 31);
  EXPECT_TRUE(tls.authenticates());
}

TEST(RemoteTls, EmptyItOnlyEncrypts) {
  const Settings settings = good(remote("{}"));
  ASSERT_TRUE(settings.remotes[0].tls);
  EXPECT_FALSE(settings.remotes[0].tls->authenticates());
}

TEST(RemoteTls, ThePortIsThatOfTheTransport) {
  const Settings settings =
      good("remotes: [{name: p, address: [192.0.2.7, 192.0.2.8@5300]}, "
           "{name: s, address: [192.0.2.7, 192.0.2.8@53], tls: {}}]");
  const auto ports = [](const Remote& one) {
    return std::vector<unsigned>{one.address[0].port, one.address[1].port};
  };
  EXPECT_THAT(ports(settings.remotes[0]), ElementsAre(53U, 5300U));
  EXPECT_THAT(ports(settings.remotes[1]), ElementsAre(853U, 53U));
}

TEST(RemoteTls, MistakesAreRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"{pins: [AAAA]}", "1: remotes[0].tls.pins[0]: is no SHA-256 in base64: 3 bytes"},
      {"{pins: ['?']}", "remotes[0].tls.pins[0]"},
      {"{pins: [" + kPin + ", " + kPin + "]}", "pins[1]: stands in the list twice"},
      {"{pins: [" + kPin + ", " + kOtherPin +
           ", AgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICE=, "
           "AwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISI=, "
           "BAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiM=]}",
       "remotes[0].tls.pins: at most 4 pins"},
      {"{hostname: 'a:53'}", "'a:53' is no name of a host"},
      {"{hostname: .}", "is no name of a host"},
      {"{ca: c}", "remotes[0].tls: 'ca' needs 'hostname'"},
      {"{certificate: c}", "remotes[0].tls: 'certificate' and 'key' belong together"},
      {"{key: c}", "'certificate' and 'key' belong together"},
      {"{client-ca: c}", "unknown key"},
      {"yes", "remotes[0].tls"},
  };
  for (const auto& [tls, expected] : cases)
    EXPECT_THAT(errors_of(remote(tls)), HasSubstr(expected)) << tls;
  EXPECT_THAT(errors_of("remotes: [{name: any, address: [192.0.2.7], tls: {}}]"),
              HasSubstr("in rules 'any' stands for any client over TLS"));
  EXPECT_EQ(errors_of("remotes: [{name: any, address: [192.0.2.7]}]"), "");
}

TEST(RemoteTls, NothingIsSentToItYet) {
  const std::string expected = "remote 'r' has 'tls': nothing is sent over TLS yet";
  for (const char* user : {"zones: [{name: a, primaries: [r]}]",
                           "zones: [{name: a, file: f, notify: [r]}]",
                           "templates: [{name: t, notify: [r]}]",
                           "catalogs: [{zone: c, role: consumer, primaries: [r]}]"})
    EXPECT_THAT(errors_of(remote("{hostname: h}") + user), HasSubstr(expected)) << user;
}

TEST(TlsRule, NamesARemoteOrAnyClient) {
  const Settings settings = good(
      with_rule("{hostname: h}", "{tls: r}, {tls: any, address: 192.0.2.0/24, deny: true}"));
  const zone::Acl& rules = settings.zones[0].options->allow_transfer;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(*rules[0].tls, "r");
  EXPECT_EQ(*rules[1].tls, kAnyTlsPeer);
  EXPECT_TRUE(rules[1].address && rules[1].deny);
  EXPECT_FALSE(rules[0].key || rules[0].address);
}

TEST(TlsRule, MistakesAreRefused) {
  EXPECT_THAT(errors_of(with_rule("{hostname: h}", "{tls: s}")),
              HasSubstr("2: zones[0].allow-transfer[0].tls: no remote is named 's'"));
  EXPECT_THAT(errors_of(with_rule("{}", "{tls: r}")),
              HasSubstr("no certificate can prove to be remote 'r': its 'tls' has neither "
                        "'hostname' nor 'pins'"));
  EXPECT_THAT(errors_of("remotes: [{name: r, address: [192.0.2.7]}]\n"
                        "zones: [{name: a, file: f, allow-query: {tls: r}}]"),
              HasSubstr("remote 'r' has no 'tls'"));
  EXPECT_THAT(errors_of(with_rule("{hostname: h}", "{tls: [r]}")), HasSubstr("tls"));
}

TEST(TlsRule, StandsInEachListOfRules) {
  const Settings settings =
      good(remote("{pins: [" + kPin + "]}") +
           "zones: [{name: a, file: f, allow-query: {tls: any}, allow-update: [{tls: r, types: "
           "[A]}]}, {name: b, file: f, allow-notify: {tls: r}}]");
  const PeerIdentity peer{{"r"}};
  const zone::Requester over_tls{*IpAddress::from_text("::1"), nullptr, &peer};
  const zone::Requester over_tcp{*IpAddress::from_text("::1")};
  const zone::ZoneSettings a = compile(*settings.zones[0].options, settings);
  const zone::ZoneSettings b = compile(*settings.zones[1].options, settings);
  for (const zone::Acl* rules : {&a.allow_query, &a.allow_update, &b.allow_notify}) {
    EXPECT_TRUE(could_allow(*rules, over_tls));
    EXPECT_FALSE(could_allow(*rules, over_tcp));
  }
}

TEST(TlsSettings, AreShownAsTheyWereWritten) {
  const std::string text =
      "remotes:\n"
      "  - {name: e, address: [192.0.2.7], tls: {}}\n"
      "  - {name: r, address: [192.0.2.8], tls: {hostname: h, ca: /ca, pins: [" + kPin +
      "], certificate: /c, key: /k}}\n"
      "zones: [{name: a, file: /f, allow-transfer: [{tls: r, deny: true}]}]\n"
      "limits: {tls-clients: 7, tls-idle: 20s}\n";
  const Settings settings = good(text);
  const std::string shown = effective_server(settings) + effective_zone(settings, 0);
  EXPECT_THAT(shown, HasSubstr(kPin));
  for (const char* expected : {"tls: {}", "hostname: h", "ca: /ca", "certificate: /c", "key: /k",
                               "{tls: r, deny: true}", "tls-clients: 7", "tls-idle: 20s"})
    EXPECT_THAT(shown, HasSubstr(expected));
  EXPECT_EQ(good(effective_server(settings)).remotes, settings.remotes);
}

TEST(TlsSettings, AnEmptySectionThatComesOrLeavesIsAChange) {
  const Settings plain = good("remotes: [{name: r, address: [192.0.2.7@853]}]");
  const Settings encrypted = good(remote("{}"));
  const auto changes = [](const Settings& before, const Settings& after) {
    std::vector<std::string> found;
    for (const SettingChange& change : compare(before, after, 10).settings)
      found.push_back(change.key + ":" + change.before + ">" + change.after);
    return found;
  };
  EXPECT_THAT(changes(plain, encrypted), ElementsAre("remotes[r].tls:>{}"));
  EXPECT_THAT(changes(encrypted, plain), ElementsAre("remotes[r].tls:{}>"));
}

}  // namespace tls_config_test
}  // namespace pando::config
