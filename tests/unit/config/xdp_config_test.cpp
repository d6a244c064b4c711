#include "config/effective.h"

#include "load_fixture.h"

namespace pando::config {
namespace xdp_config_test {

using ::testing::HasSubstr;

TEST(XdpConfig, IsOffUntilItIsWrittenDown) { EXPECT_TRUE(good("server: {}").server.xdp.empty()); }

TEST(XdpConfig, NamesInterfacesWithQueuesAndMode) {
  const auto xdp =
      good("server: {xdp: [{interface: eth0}, {interface: lo, queues: 4, mode: native}]}")
          .server.xdp;
  ASSERT_EQ(xdp.size(), 2U);
  EXPECT_EQ(xdp[0], (XdpInterface{"eth0", 0, XdpInterface::Mode::kAuto}));
  EXPECT_EQ(xdp[1], (XdpInterface{"lo", 4, XdpInterface::Mode::kNative}));
}

TEST(XdpConfig, IsShownAsItCouldBeWritten) {
  const Settings settings =
      good("server: {xdp: [{interface: eth0, queues: 2}, {interface: eth1, mode: generic}]}");
  const std::string shown = effective_server(settings);
  EXPECT_EQ(good(shown).server.xdp, settings.server.xdp) << shown;
}

TEST(XdpConfig, AChangeNeedsNoRestart) {
  const Settings off = good("server: {}");
  const Settings on = good("server: {xdp: [{interface: eth0}]}");
  EXPECT_TRUE(restart_needed(off, on).empty());
  EXPECT_TRUE(restart_needed(on, off).empty());
  EXPECT_GT(compare(off, on, 10).settings_changed, 0U);
}

TEST(XdpConfig, AnInterfaceThatIsNotThereIsAWarning) {
  const auto loaded = load_yaml("server: {xdp: [{interface: lo}, {interface: nosuch0}]}");
  EXPECT_EQ(loaded.error_text(), "");
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_THAT(loaded.warnings[0], HasSubstr("this host has no interface 'nosuch0'"));
}

TEST(XdpConfig, BadValuesAreRefusedWithTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"server: {xdp: [{queues: 1}]}", "server.xdp[0]: 'interface' is missing"},
      {"server: {xdp: [{interface: a/b}]}", "'a/b' is no name of a network interface"},
      {"server: {xdp: [{interface: abcdefghijklmnop}]}", "is no name of a network interface"},
      {"server: {xdp: [{interface: lo, queues: 65}]}", "server.xdp[0].queues"},
      {"server: {xdp: [{interface: lo, mode: fast}]}", "'fast' is none of auto, native, generic"},
      {"server: {xdp: [{interface: lo}, {interface: lo}]}", "an interface 'lo' is there already"},
      {"server: {xdp: [{interface: lo, extra: 1}]}", "extra: unknown key"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_THAT(errors_of(text), HasSubstr(message)) << text;
}

}  // namespace xdp_config_test
}  // namespace pando::config
