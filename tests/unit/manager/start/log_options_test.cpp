#include "manager/start/log_options.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace log_options_test {

TEST(DnstapOptions, AreNoneWhileDnstapIsOff) { EXPECT_FALSE(dnstap_options({})); }

TEST(DnstapOptions, NameTheServerByItsIdentityOrItsHost) {
  config::Server server;
  server.dnstap.emplace().socket = "/run/d.sock";
  auto options = dnstap_options(server);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->socket, "/run/d.sock");
  EXPECT_FALSE(options->what.identity.empty());
  EXPECT_EQ(options->what.version, "pando " PANDO_VERSION);
  server.identity = "ns1";
  server.version = "secret";
  options = dnstap_options(server);
  EXPECT_EQ(options->what.identity, "ns1");
  EXPECT_EQ(options->what.version, "secret");
}

TEST(DnstapOptions, HaveTheWantedMessages) {
  config::Server server;
  server.dnstap.emplace().messages = {config::Dnstap::Messages::kResponses};
  server.dnstap->sample = 7;
  const auto options = dnstap_options(server);
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->what.on);
  EXPECT_EQ(options->what.sample, 7U);
  EXPECT_FALSE(options->what.queries);
  EXPECT_TRUE(options->what.responses);
  EXPECT_FALSE(options->what.updates);
}

TEST(QueryLogOptions, AreNoneWhileTheLogIsOff) { EXPECT_FALSE(query_log_options({})); }

TEST(QueryLogOptions, NameTheFileOrTheSocket) {
  config::Server server;
  server.query_log.emplace().file = "/var/log/q.log";
  server.query_log->sample = 7;
  EXPECT_EQ(query_log_options(server),
            (QueryLogOptions{{"/var/log/q.log", false}, {true, 7}}));
  server.query_log = config::QueryLog{"", "/run/q.sock", 1};
  EXPECT_EQ(query_log_options(server), (QueryLogOptions{{"/run/q.sock", true}, {true, 1}}));
}

}  // namespace log_options_test
}  // namespace pando::manager
