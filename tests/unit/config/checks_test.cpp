#include "config/checks.h"

#include <sys/stat.h>

#include "load_fixture.h"

// The rules that load() cannot reach while some of the keys involved are refused.
namespace pando::config {
namespace checks_test {

template <class Check>
std::vector<std::string> errors_of(Check check) {
  Context context{"f", "/", {}, {}, Problems("f"), {}};
  check(Value(context, YamlNode(), "x", 7));
  LoadResult result;
  context.problems.report(result);
  return result.errors;
}

std::vector<std::string> errors_of_server(const Server& server) {
  return errors_of([&](const Value& value) { check_server(value, server); });
}

TEST(ServerCheck, SomeAddressIsServed) {
  Server server;
  server.listen.clear();
  EXPECT_EQ(errors_of_server(server).size(), 1U);
  server.listen_tls = {*Endpoint::from_text("::1@853")};
  EXPECT_TRUE(errors_of_server(server).empty()) << "TLS alone is enough";
}

TEST(StoreCheck, ImageAndStoreAreDifferentFiles) {
  StoreSettings store;
  store.image = store.path;
  EXPECT_EQ(errors_of([&](const Value& value) { check_store(value, store); }).size(), 1U);
  store.image = "/other";
  EXPECT_TRUE(errors_of([&](const Value& value) { check_store(value, store); }).empty());
}

TEST(Http, IsOffUntilItIsWrittenDown) {
  EXPECT_FALSE(good("server: {}").http);
  const Settings settings = good("http: {}");
  ASSERT_TRUE(settings.http);
  EXPECT_EQ(settings.http->listen, std::vector<Endpoint>{*Endpoint::from_text("127.0.0.1@8053")});
  EXPECT_EQ(settings.http->metrics_zones, 0U);
  EXPECT_EQ(settings.http->user, "pando-http");
}

TEST(Http, AddressesOfTheNetworkNeedKeys) {
  using ::testing::HasSubstr;
  EXPECT_THAT(config::errors_of("http: {listen: [\"::1@80\", 192.0.2.1]}"),
              HasSubstr("http: 'keys' are missing: 192.0.2.1@8053 is no loopback address"));
  EXPECT_THAT(config::errors_of("http: {listen: [0.0.0.0]}"), HasSubstr("'keys' are missing"));
  EXPECT_EQ(config::errors_of("http: {listen: [127.1.2.3, \"::1\"]}"), "");
  const LoadResult keyed = load_yaml(
      "http: {listen: [192.0.2.1], keys: [{name: a, secret: 0123456789abcdef, role: admin}]}");
  EXPECT_TRUE(keyed.ok());
  EXPECT_TRUE(keyed.has_secrets);
  EXPECT_EQ(keyed.settings.http->keys[0].role, HttpKey::Role::kAdmin);
  EXPECT_THAT(keyed.warnings, ::testing::ElementsAre(HasSubstr("without TLS")));
}

TEST(Http, KeysHaveOneSecretThatAHeaderCanHold) {
  using ::testing::HasSubstr;
  const std::pair<const char*, const char*> cases[] = {
      {"{name: a}", "'secret' or 'secret-file' is missing"},
      {"{name: a, secret: \"a b\"}", "visible ASCII"},
      {"{name: a, secret: \"\"}", "visible ASCII"},
      {"{name: a, secret: x, role: root}", "'root' is none of read, write, admin"},
      {"{name: a, secret: 0123456789abcdef}, {name: a, secret: 1123456789abcdef}", "there already"},
      {"{name: a, secret-file: /nowhere}", "/nowhere"},
      {"{name: a, secret: 0123456789abcdef, zones: []}", "names no zone"},
      {"{name: a, secret: 0123456789abcdef, zones: [a..b]}", "a..b"},
      {"{name: a, secret: 0123456789abcdef, zones: [a, A]}", "twice"},
  };
  for (const auto& [keys, expected] : cases)
    EXPECT_THAT(config::errors_of(fmt::format("http: {{keys: [{}]}}", keys)), HasSubstr(expected));
}

TEST(Http, AKeySeesItsZones) {
  const auto key = [](std::string_view zones) {
    return good(fmt::format("http: {{keys: [{{name: a, secret: 0123456789abcdef{}}}]}}", zones))
        .http->keys[0];
  };
  EXPECT_TRUE(key("").sees(name("example.com")));
  const HttpKey some = key(", zones: [example.com, \"*.Customers.example\"]");
  for (const char* zone : {"example.com", "EXAMPLE.com", "a.customers.example", "b.a.customers.example"})
    EXPECT_TRUE(some.sees(name(zone))) << zone;
  for (const char* zone : {"www.example.com", "com", ".", "customers.example", "acustomers.example"})
    EXPECT_FALSE(some.sees(name(zone))) << zone;
  EXPECT_TRUE(key(", zones: [\"*\"]").sees(name("example.com")));
}

TEST(Http, OnlyAKeyWithARoleWrites) {
  const auto http = [](std::string_view keys) {
    return *good(fmt::format("http: {{keys: [{}]}}", keys)).http;
  };
  EXPECT_FALSE(http("").writes());
  EXPECT_FALSE(http("{name: a, secret: 0123456789abcdef}").writes());
  const Http some = http(
      "{name: a, secret: 0123456789abcdef, role: write, zones: [a.test]}, "
      "{name: b, secret: 1123456789abcdef, zones: [b.test]}, "
      "{name: c, secret: 2123456789abcdef, role: admin, zones: [c.test]}");
  EXPECT_TRUE(some.writes());
  EXPECT_TRUE(some.writes(name("a.test")) && some.writes(name("c.test")));
  EXPECT_FALSE(some.writes(name("b.test"))) << "it is only read";
}

TEST(Http, ASecretMayLieInAFileOfItsOwn) {
  const TemporaryFolder folder;
  const std::string file = folder.write("secret", "correct-horse-battery\n");
  ::chmod(file.c_str(), 0640);
  const std::string text = fmt::format("http: {{keys: [{{name: a, secret-file: {}}}]}}", file);
  EXPECT_EQ(good(text).http->keys[0].secret, "correct-horse-battery");
  EXPECT_FALSE(load_yaml(text).has_secrets);
  ::chmod(file.c_str(), 0644);
  EXPECT_THAT(config::errors_of(text), ::testing::HasSubstr("chmod o="));
}

/// The user of pando-http may not read the secrets of TSIG keys, and needs none.
TEST(Http, KeysOfTheServerMayStayClosed) {
  const std::string text = "keys: [{name: k, secret-file: /nowhere}]\nhttp: {}\n";
  EXPECT_FALSE(load_yaml(text).ok());
  const LoadResult loaded = load_text(text, "/etc/pando/p.yaml", {.read_key_files = false});
  EXPECT_EQ(loaded.error_text(), "");
  EXPECT_TRUE(loaded.settings.http);
}

TEST(Http, TheManagerRestartsForItsUserAndForZonesToCount) {
  const Settings none = good("server: {}");
  const Settings some = good("http: {}");
  EXPECT_EQ(restart_needed(none, some), std::vector<std::string>{"http.user"});
  EXPECT_TRUE(restart_needed(some, good("http: {listen: [127.0.0.1@8099]}")).empty());
  const Settings counted = good("http: {metrics-zones: 5}");
  EXPECT_EQ(restart_needed(some, counted), std::vector<std::string>{"http.metrics-zones"});
  EXPECT_TRUE(restart_needed(counted, counted).empty());
}

TEST(CatalogCheck, OnlyConsumedOnesHavePrimaries) {
  const auto errors = [](Catalog::Role role, std::vector<std::string> primaries) {
    const std::vector<Catalog> catalogs{{name("c"), role, std::move(primaries), ""}};
    return errors_of([&](const Value& value) { check_new_catalog(value, catalogs); }).size();
  };
  EXPECT_EQ(errors(Catalog::Role::kConsumer, {}), 1U);
  EXPECT_EQ(errors(Catalog::Role::kConsumer, {"up"}), 0U);
  EXPECT_EQ(errors(Catalog::Role::kProducer, {"up"}), 1U);
  EXPECT_EQ(errors(Catalog::Role::kProducer, {}), 0U);
}

}  // namespace checks_test
}  // namespace pando::config
