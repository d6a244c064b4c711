#include "config/effective.h"

#include "load_fixture.h"

namespace pando::config {
namespace query_log_config_test {

using ::testing::HasSubstr;

TEST(QueryLogConfig, IsOffUntilItIsWrittenDown) {
  EXPECT_FALSE(good("server: {}").server.query_log);
}

TEST(QueryLogConfig, GoesToAFileOrToASocket) {
  const auto file = good("server: {query-log: {file: q.log, sample: 100}}").server.query_log;
  ASSERT_TRUE(file);
  EXPECT_EQ(file->file, "/etc/pando/q.log") << "relative to the configuration's folder";
  EXPECT_EQ(file->socket, "");
  EXPECT_EQ(file->sample, 100U);
  const auto socket = good("server: {query-log: {socket: /run/q.sock}}").server.query_log;
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->socket, "/run/q.sock");
  EXPECT_EQ(socket->sample, 1U);
}

TEST(QueryLogConfig, IsShownAsItCouldBeWritten) {
  for (const char* text : {"server: {query-log: {file: /var/log/q.log, sample: 9}}",
                           "server: {query-log: {socket: /run/q.sock}}"}) {
    const Settings settings = good(text);
    const std::string shown = effective_server(settings);
    EXPECT_EQ(good(shown).server.query_log, settings.server.query_log) << shown;
  }
}

TEST(QueryLogConfig, AChangeNeedsNoRestart) {
  const Settings off = good("server: {}");
  const Settings on = good("server: {query-log: {file: /q}}");
  EXPECT_TRUE(restart_needed(off, on).empty());
  EXPECT_TRUE(restart_needed(on, off).empty());
  EXPECT_GT(compare(off, on, 10).settings_changed, 0U);
}

TEST(QueryLogConfig, BadValuesAreRefusedWithTheirPlace) {
  const std::pair<std::string, const char*> cases[] = {
      {"server: {query-log: {}}", "server.query-log: needs either 'file' or 'socket'"},
      {"server: {query-log: {file: a, socket: b}}",
       "server.query-log: needs either 'file' or 'socket'"},
      {"server: {query-log: {file: a, sample: 0}}", "server.query-log.sample"},
      {"server: {query-log: {file: a, extra: 1}}", "server.query-log.extra: unknown key"},
      {"server: {query-log: {socket: /" + std::string(107, 's') + "}}",
       "server.query-log: 'socket' is longer than 107 bytes"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_THAT(errors_of(text), HasSubstr(expected)) << text;
}

}  // namespace query_log_config_test
}  // namespace pando::config
