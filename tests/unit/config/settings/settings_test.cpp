#include "config/settings/settings.h"

#include "tests/unit/config/load_fixture.h"

namespace pando::config {
namespace settings_test {

TEST(CompiledServer, TakesWhatAnswersDependOn) {
  const Settings settings = good(
      "server: {identity: me, version: mine, proxy-protocol-from: [10.0.0.0/8], "
      "udp-payload: 1400}\nlimits: {tcp-clients: 5, tcp-idle: 3s}");
  const zone::ServerSettings compiled = compile(settings.server, settings.limits);
  EXPECT_EQ(compiled.identity, "me");
  EXPECT_EQ(compiled.version, "mine");
  EXPECT_EQ(compiled.proxies, std::vector{*IpPrefix::from_text("10.0.0.0/8")});
  EXPECT_EQ(compiled.udp_payload, 1400);
  EXPECT_TRUE(compiled.minimal_responses);
  EXPECT_EQ(compiled.tcp_clients, 5U);
  EXPECT_EQ(compiled.tcp_idle_ms, 3000U);
}

TEST(CompiledZone, AlwaysAllowsNotifyFromItsPrimaries) {
  const Settings settings = good(
      "remotes: [{name: up, address: [192.0.2.1, \"2001:db8::1\"]}]\n"
      "zones: [{name: a, primaries: [up], "
      "allow-notify: [{address: 192.0.2.0/24, deny: true}, {address: 198.51.100.1}]}]");
  const zone::ZoneSettings compiled = compile(*settings.zones[0].options, settings);
  EXPECT_TRUE(compiled.is_secondary);
  const auto may_notify = [&](const char* address) {
    return zone::allowed(compiled.allow_notify, {*IpAddress::from_text(address), nullptr});
  };
  EXPECT_TRUE(may_notify("192.0.2.1")) << "a rule cannot deny the primary";
  EXPECT_TRUE(may_notify("2001:db8::1"));
  EXPECT_TRUE(may_notify("198.51.100.1"));
  EXPECT_FALSE(may_notify("192.0.2.2"));
  EXPECT_FALSE(may_notify("203.0.113.1"));
}

TEST(CompiledZone, PassesUpdatesOnWhenItIsASecondaryToldTo) {
  const Settings settings = good(
      "remotes: [{name: up, address: [192.0.2.1]}]\n"
      "zones: [{name: a, primaries: [up], forward-updates: true}, {name: b, primaries: [up]}, "
      "{name: c, file: c.zone, forward-updates: true}]");
  const auto passes_on = [&](std::string_view zone) {
    const auto index = settings.zones.find(*dns::Name::from_text(zone));
    return compile(*settings.zones[index.value()].options, settings).forward_updates;
  };
  EXPECT_TRUE(passes_on("a."));
  EXPECT_FALSE(passes_on("b."));
  EXPECT_FALSE(passes_on("c."));
}

TEST(Reload, NamesTheKeysThatNeedARestart) {
  const Settings running = good("server: {user: a}");
  EXPECT_TRUE(restart_needed(running, good("server: {user: a, udp-payload: 1400}")).empty());
  EXPECT_EQ(restart_needed(running, good("server: {user: b}\nstore: {path: /x, size-limit: 1GiB}")),
            (std::vector<std::string>{"server.user", "store.path", "store.size-limit"}));
}

}  // namespace settings_test
}  // namespace pando::config
