#include "config/support.h"

#include "load_fixture.h"

namespace pando::config {
namespace support_test {

using ::testing::HasSubstr;

TEST(SchemaPath, HasNoIndexesAndTemplatesSpeakForZones) {
  EXPECT_EQ(schema_path("server.listen"), "server.listen");
  EXPECT_EQ(schema_path("zones[12].allow-query[0].key"), "zones[].allow-query[].key");
  EXPECT_EQ(schema_path("templates[2].notify"), "zones[].notify");
}

TEST(Support, DefaultsThatMeanOffMayBeWritten) {
  for (const char* text :
       {"server: {rate-limit: {responses: 0, slip: 2}}", "server: {listen-tls: []}",
        "zones: [{name: z, file: f, export-interval: off}]", "catalogs: []"})
    EXPECT_EQ(errors_of(text), "") << text;
}

TEST(Support, ValuesAreChecked) {
  const std::pair<std::string, const char*> cases[] = {
      {"server: {listen-tls: [here]}", "server.listen-tls[0]: 'here' is not an IP address"},
      {"server: {tls: {certificate: c}}", "server.tls: 'key' is missing"},
      {"server: {cookies: {secrets: [00]}}", "needs 32 hexadecimal digits"},
      {"server: {rate-limit: {ipv4-prefix: 33}}", "server.rate-limit.ipv4-prefix"},
      {"store: {path: /a, image: /a}", "'image' is the same file as 'path'"},
      {"store: {checkpoint: {interval: 1ms}}", "store.checkpoint.interval"},
      {"limits: {history-total: 0%}", "limits.history-total: '0%' is not a share"},
      {"zones: [{name: z, file: f, export-interval: never}]", "'never' is not a duration"},
      {"zones: [{name: z, file: f, notify: [a]}]", "no remote is named 'a'"},
      {"zones: [{name: z, file: f, catalog: c}]", "no catalog 'c.' is produced here"},
      {"templates: [{name: t}]\ncatalogs: [{zone: c, role: producer, groups: [{name: g, template: t}]}]",
       "a produced catalog has no 'groups'"},
      {"catalogs: [{zone: c, role: producer, removal-grace: 1h}]", "has no 'removal-grace'"},
      {"catalogs: [{zone: c, role: producer, members-below: [a]}]", "has no 'members-below'"},
      {"catalogs: [{zone: c, role: consumer, members-below: [a, A.]}]",
       "catalogs[0].members-below[1]"},
      {"catalogs: [{zone: 0/25.c, role: producer}]", "is the name of a file"},
      {"catalogs: [{zone: c, role: producer}]\nzones: [{name: c, file: f}]", "zones[0]"},
      {"catalogs: [{zone: c, role: producer}]\n"
       "zones: [{name: z, file: f, catalog: c, catalog-group: \"" + std::string(256, 'x') + "\"}]",
       "catalog-group"},
      {"catalogs: [{zone: c}]", "'role' is missing"},
      {"templates: [{name: t}]\ncatalogs: [{zone: c, role: consumer, groups: [{name: g, template: t}, "
       "{name: g, template: t}]}]",
       "a group 'g' is there already"},
      {"remotes: [{name: r, address: [::1]}]\ncatalogs: [{zone: c, role: consumer, primaries: [r]}]\n"
       "zones: [{name: c, file: f}]",
       "zones[0]"},
      {"catalogs: [{zone: c, role: consumer}]", "a consumed catalog needs 'primaries'"},
      {"catalogs: [{zone: c, role: consumer, template: t}]", "no template is named 't'"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_THAT(errors_of(text), HasSubstr(expected)) << text;
}

TEST(Support, KeysThatMayLackItAreTheLastOfSuchPaths) {
  for (const auto& [path, support] : kNotYet)
    EXPECT_TRUE(may_lack_support(path.substr(path.rfind('.') + 1))) << path;
  for (const char* key : {"name", "listen", "ls", "server.tlsx"})
    EXPECT_FALSE(may_lack_support(key)) << key;
}

}  // namespace support_test
}  // namespace pando::config
