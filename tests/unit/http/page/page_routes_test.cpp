#include "http/page/page_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "http/page/page_files.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::http {
namespace page_routes_test {

using nlohmann::json;
using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;
using ::testing::HasSubstr;
using ::testing::Not;

std::string field(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.fields)
    if (key == name) return value;
  return "";
}

TEST(PageFiles, AreServedWithAStrictPolicy) {
  for (const auto& [path, type, text] :
       {std::tuple("/", "text/html; charset=utf-8", kPageHtml),
        std::tuple("/page.css", "text/css; charset=utf-8", kPageCss),
        std::tuple("/page.js", "text/javascript; charset=utf-8", kPageJs)}) {
    const auto response = PageRoutes::file({.method = "GET", .path = path});
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 200U);
    EXPECT_EQ(response->content_type, type);
    EXPECT_EQ(response->body, text);
    EXPECT_GT(text.size(), 1000U);
    const std::string policy = field(*response, "Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'self'; style-src 'self';"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(field(*response, "X-Content-Type-Options"), "nosniff");
  }
  EXPECT_FALSE(PageRoutes::file({.method = "GET", .path = "/page.html"}));
  EXPECT_EQ(PageRoutes::file({.method = "POST", .path = "/"})->status, 405U);
}

TEST(PageFiles, NameNoOtherHost) {
  for (const std::string_view text : {kPageHtml, kPageCss, kPageJs})
    for (std::size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 3))
      EXPECT_EQ(text.substr(at, 13), "://www.w3.org") << "a namespace, not a host";
  for (const char* way :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("})
    EXPECT_THAT(std::string(kPageJs), Not(HasSubstr(way)));
}

class PageData : public ::testing::Test {
 protected:
  Response get(std::string path, std::string query = "", const AccessKey& client = {}) {
    return routes_.answer({.method = "GET", .path = std::move(path), .query = std::move(query)},
                          client);
  }
  CollectorOptions options() {
    CollectorOptions options;
    options.store_path = store_.path();
    options.run_directory = "/nowhere";
    options.layout = zone::layout_fingerprint();
    return options;
  }
  ZoneStore store_{{TestZone{"a.test.", "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\n"},
                    TestZone{"b.test.", ""}}};
  Collector collector_{options()};
  PageRoutes routes_{collector_};
};

TEST_F(PageData, IsJson) {
  for (const char* path : {"/page/overview", "/page/zones"}) {
    const Response response = get(path);
    EXPECT_EQ(response.status, 200U);
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_FALSE(field(response, "Content-Security-Policy").empty());
    EXPECT_TRUE(json::accept(response.body));
  }
  EXPECT_EQ(get("/page/zone", "name=a.test").status, 200U);
  EXPECT_EQ(get("/page/zone", "name=c.test").status, 404U);
  EXPECT_EQ(get("/page/zone", "name=a..test").status, 422U);
  EXPECT_EQ(get("/page/zone").status, 422U);
  EXPECT_EQ(get("/page/other").status, 404U);
  EXPECT_EQ(routes_.answer({.method = "POST", .path = "/page/zones"}, {}).status, 405U);
}

TEST_F(PageData, OfAKeyForSomeZonesIsAboutTheseAlone) {
  AccessKey client;
  client.zones.push_back(name("a.test."));
  EXPECT_EQ(json::parse(get("/page/overview", "", client).body), (json{{"whole", false}}));
  EXPECT_EQ(json::parse(get("/page/zones", "", client).body)["zones"].size(), 1U);
  EXPECT_EQ(get("/page/zone", "name=a.test", client).status, 200U);
  EXPECT_EQ(get("/page/zone", "name=b.test", client).status, 404U);
  const json zone = json::parse(get("/page/zone", "name=a.test", client).body);
  EXPECT_FALSE(zone["zone"].contains("file"));
}

}  // namespace page_routes_test
}  // namespace pando::http
