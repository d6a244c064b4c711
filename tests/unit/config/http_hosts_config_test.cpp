#include "load_fixture.h"

namespace pando::config {
namespace http_hosts_config_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HttpHosts, AreNoneUntilTheyAreWrittenDown) {
  EXPECT_TRUE(good("http: {}").http->hosts.empty());
}

TEST(HttpHosts, BecomeLowerCase) {
  EXPECT_THAT(good("http: {hosts: [Pando.Example, ns-1_a]}").http->hosts,
              ElementsAre("pando.example", "ns-1_a"));
}

TEST(HttpHosts, BadOnesAreRefusedWithTheirPlace) {
  for (const char* bad : {"'a:80'", "''", "'[::1]'", "'a b'", "'*'", "'http://a'", "\"a\\0\""})
    EXPECT_THAT(errors_of(std::string("http: {hosts: [") + bad + "]}"),
                HasSubstr("http.hosts[0]")) << bad;
  EXPECT_THAT(errors_of("http: {hosts: [a, A]}"), HasSubstr("http.hosts[1]: stands in the list"));
}

}  // namespace http_hosts_config_test
}  // namespace pando::config
