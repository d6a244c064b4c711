#include "config/effective.h"

#include "load_fixture.h"

namespace pando::config {
namespace dnstap_config_test {

using ::testing::HasSubstr;
using Messages = Dnstap::Messages;

TEST(DnstapConfig, IsOffUntilItIsWrittenDown) { EXPECT_FALSE(good("server: {}").server.dnstap); }

TEST(DnstapConfig, DefaultsAreEveryMessageOfEveryRequest) {
  const auto dnstap = good("server: {dnstap: {socket: /run/d.sock}}").server.dnstap;
  ASSERT_TRUE(dnstap);
  EXPECT_EQ(dnstap->socket, "/run/d.sock");
  EXPECT_EQ(dnstap->sample, 1U);
  for (const Messages kind : {Messages::kQueries, Messages::kResponses, Messages::kUpdates})
    EXPECT_TRUE(dnstap->has(kind));
}

TEST(DnstapConfig, EveryKeyCounts) {
  const auto dnstap =
      good("server: {dnstap: {socket: d, sample: 100, messages: [updates, queries]}}")
          .server.dnstap;
  ASSERT_TRUE(dnstap);
  EXPECT_EQ(dnstap->socket, "/etc/pando/d") << "relative to the configuration's folder";
  EXPECT_EQ(dnstap->sample, 100U);
  EXPECT_TRUE(dnstap->has(Messages::kUpdates));
  EXPECT_TRUE(dnstap->has(Messages::kQueries));
  EXPECT_FALSE(dnstap->has(Messages::kResponses));
}

TEST(DnstapConfig, IsShownAsItCouldBeWritten) {
  const Settings settings =
      good("server: {dnstap: {socket: /run/d, sample: 9, messages: [updates, queries]}}");
  const std::string shown = effective_server(settings);
  EXPECT_THAT(shown, HasSubstr("socket: /run/d"));
  EXPECT_THAT(shown, HasSubstr("sample: 9"));
  EXPECT_THAT(shown, HasSubstr("messages: [updates, queries]"));
  EXPECT_EQ(good(shown).server.dnstap, settings.server.dnstap);
}

TEST(DnstapConfig, AChangeNeedsNoRestart) {
  const Settings off = good("server: {}");
  const Settings on = good("server: {dnstap: {socket: /run/d}}");
  EXPECT_TRUE(restart_needed(off, on).empty());
  EXPECT_TRUE(restart_needed(on, off).empty());
  EXPECT_GT(compare(off, on, 10).settings_changed, 0U);
}

TEST(DnstapConfig, BadValuesAreRefusedWithTheirPlace) {
  const std::pair<std::string, const char*> cases[] = {
      {"server: {dnstap: {}}", "server.dnstap: 'socket' is missing"},
      {"server: {dnstap: {socket: s, sample: 0}}", "server.dnstap.sample: '0' is not a whole"},
      {"server: {dnstap: {socket: s, sample: 0.5}}", "server.dnstap.sample"},
      {"server: {dnstap: {socket: s, sample: 1000001}}", "server.dnstap.sample"},
      {"server: {dnstap: {socket: s, messages: []}}", "server.dnstap.messages: is empty"},
      {"server: {dnstap: {socket: s, messages: [answers]}}",
       "server.dnstap.messages[0]: 'answers' is none of queries, responses, updates"},
      {"server: {dnstap: {socket: s, messages: [queries, queries]}}",
       "server.dnstap.messages[1]: stands in the list twice"},
      {"server: {dnstap: {socket: s, messages: queries}}", "server.dnstap.messages"},
      {"server: {dnstap: {socket: s, extra: 1}}", "server.dnstap.extra: unknown key"},
      {"server: {dnstap: {socket: /" + std::string(107, 's') + "}}",
       "server.dnstap: 'socket' is longer than 107 bytes"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_THAT(errors_of(text), HasSubstr(expected)) << text;
  EXPECT_EQ(errors_of("server: {dnstap: {socket: /" + std::string(106, 's') + "}}"), "");
}

}  // namespace dnstap_config_test
}  // namespace pando::config
