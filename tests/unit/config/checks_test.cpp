#include "config/checks.h"

#include "load_fixture.h"

// The rules that load() cannot reach while some of the keys involved are refused.
namespace pando::config {
namespace {

template <class Check>
std::vector<std::string> errors_of(Check check) {
  Context context{"f", "/", {}, {}, Problems("f"), {}};
  check(Value(context, YAML::Node(), "x", 7));
  LoadResult result;
  context.problems.report(result);
  return result.errors;
}

std::vector<std::string> errors_of_server(const Server& server) {
  return errors_of([&](const Value& value) { check_server(value, server); });
}

TEST(ServerCheck, TlsListenersNeedACertificate) {
  Server server;
  server.listen_tls = {*Endpoint::from_text("::1@853")};
  EXPECT_EQ(errors_of_server(server),
            std::vector<std::string>{"f:7: x: 'listen-tls' needs a certificate: 'tls' is missing"});
  server.tls.emplace();
  EXPECT_TRUE(errors_of_server(server).empty());
  server.listen.clear();
  EXPECT_TRUE(errors_of_server(server).empty()) << "TLS alone is enough";
}

TEST(StoreCheck, ImageAndStoreAreDifferentFiles) {
  StoreSettings store;
  store.image = store.path;
  EXPECT_EQ(errors_of([&](const Value& value) { check_store(value, store); }).size(), 1U);
  store.image = "/other";
  EXPECT_TRUE(errors_of([&](const Value& value) { check_store(value, store); }).empty());
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

}  // namespace
}  // namespace pando::config
