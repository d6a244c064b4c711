#include "manager/control/http_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pando::manager {
namespace http_user_test {

using nlohmann::json;
using ::testing::HasSubstr;
namespace verb = ipc::verb;

dns::Name zone(const std::string& text) { return dns::Name::from_text(text).value(); }

class HttpUser : public ::testing::Test {
 protected:
  HttpUser() {
    using Role = config::HttpKey::Role;
    http_.keys = {{.name = "writer", .role = Role::kWrite, .zones = {zone("written.test.")}},
                  {.name = "admin", .role = Role::kAdmin, .zones = {zone("*.own.test.")}}};
    http_.template_name = "customers";
  }
  std::string why_not(ipc::ControlRequest request) const {
    const auto done = restrict_http_user(http_, request);
    return done ? "" : done.error().text;
  }
  static ipc::ControlRequest addition(std::initializer_list<json> zones) {
    ipc::ControlRequest request{.verb = std::string(verb::kZoneAdd)};
    for (const json& one : zones) request.zones.push_back(one.dump());
    return request;
  }
  config::Http http_;
};

TEST_F(HttpUser, AnAdministratorsZonesComeAndGo) {
  EXPECT_EQ(why_not({.verb = std::string(verb::kZoneRemove), .names = {"a.own.test."}}), "");
  EXPECT_EQ(why_not({.verb = std::string(verb::kZonePurge), .name = "A.Own.test"}), "");
  EXPECT_EQ(why_not(addition({{{"name", "a.own.test."}, {"content", ""}}})), "");
  EXPECT_EQ(why_not({.verb = std::string(verb::kZoneSet), .name = "a.own.test."}), "");
}

TEST_F(HttpUser, AWritersZonesStay) {
  EXPECT_EQ(why_not({.verb = std::string(verb::kZoneSet), .name = "written.test."}), "");
  for (const std::string_view verb : {verb::kZoneRemove, verb::kZonePurge})
    EXPECT_THAT(why_not({.verb = std::string(verb), .names = {"written.test."}}),
                HasSubstr("no key of http.keys may add or remove written.test."));
  EXPECT_THAT(why_not(addition({{{"name", "written.test."}}})), HasSubstr("add or remove"));
}

TEST_F(HttpUser, EachNameOfARequestCounts) {
  EXPECT_THAT(why_not({.verb = std::string(verb::kZoneRemove),
                       .names = {"a.own.test.", "other.test."}}),
              HasSubstr("other.test."));
  EXPECT_THAT(why_not({.verb = std::string(verb::kZonePurge), .name = "other.test.",
                       .names = {"a.own.test."}}),
              HasSubstr("other.test."));
  EXPECT_THAT(why_not(addition({{{"name", "a.own.test."}}, {{"name", "other.test."}}})),
              HasSubstr("other.test."));
  auto hidden = addition({{{"name", "other.test."}}});
  hidden.name = "a.own.test.";
  EXPECT_THAT(why_not(hidden), HasSubstr("other.test."));
}

TEST_F(HttpUser, OfANewZoneItChoosesThreeMembers) {
  auto request = addition({{{"name", "a.own.test."},
                            {"content", "@ SOA ..."},
                            {"primaries", {"p"}},
                            {"template", "open-to-all"},
                            {"file", "/etc/shadow"},
                            {"allow-update", json::array({"0.0.0.0/0"})}}});
  ASSERT_TRUE(restrict_http_user(http_, request));
  EXPECT_EQ(json::parse(request.zones.at(0)), (json{{"name", "a.own.test."},
                                                    {"content", "@ SOA ..."},
                                                    {"primaries", {"p"}},
                                                    {"template", "customers"}}));
  http_.template_name = "";
  request = addition({{{"name", "a.own.test."}, {"template", "open-to-all"}}});
  ASSERT_TRUE(restrict_http_user(http_, request));
  EXPECT_EQ(json::parse(request.zones.at(0)), (json{{"name", "a.own.test."}}));
}

TEST_F(HttpUser, OfAZonesSettingsItChangesThePrimariesAlone) {
  ipc::ControlRequest request{.verb = std::string(verb::kZoneConfigure), .name = "a.own.test."};
  request.key = "primaries";
  request.value = "[\"p\"]";
  EXPECT_EQ(why_not(request), "");
  request.name = "written.test.";
  EXPECT_THAT(why_not(request), HasSubstr("written.test."));
  request.name = "a.own.test.";
  request.value = "";
  EXPECT_THAT(why_not(request), HasSubstr("read and edit")) << "a primary zone by removal";
  request.value = "[\"p\"]";
  for (const char* key : {"file", "template", "allow-update", ""}) {
    request.key = key;
    EXPECT_THAT(why_not(request), HasSubstr("read and edit")) << key;
  }
}

TEST_F(HttpUser, AZoneIsSignedByTheUsualPolicyAlone) {
  ipc::ControlRequest request{.verb = std::string(verb::kZoneConfigure), .name = "a.own.test."};
  request.key = "dnssec";
  request.value = "\"default\"";
  EXPECT_EQ(why_not(request), "");
  request.name = "written.test.";
  EXPECT_THAT(why_not(request), HasSubstr("written.test."));
  request.name = "a.own.test.";
  for (const char* value : {"", "default", "\"off\"", "\"other\"", "[\"default\"]"}) {
    request.value = value;
    EXPECT_THAT(why_not(request), HasSubstr("read and edit")) << value;
  }
  auto added = addition({{{"name", "a.own.test."}, {"dnssec", "default"}}});
  ASSERT_TRUE(restrict_http_user(http_, added));
  EXPECT_EQ(json::parse(added.zones.at(0)).value("dnssec", ""), "default");
  added = addition({{{"name", "a.own.test."}, {"dnssec", "other"}}});
  ASSERT_TRUE(restrict_http_user(http_, added));
  EXPECT_FALSE(json::parse(added.zones.at(0)).contains("dnssec"));
}

TEST_F(HttpUser, MalformedZonesAreRefused) {
  for (const char* text : {"", "[]", "{", "{\"name\": 7}", "{}", "\"a.own.test.\""}) {
    ipc::ControlRequest request{.verb = std::string(verb::kZoneAdd)};
    request.zones = {text};
    EXPECT_THAT(why_not(request), HasSubstr("an object with a 'name'")) << text;
  }
  EXPECT_NE(why_not(addition({{{"name", "a..own.test."}}})), "");
}

TEST_F(HttpUser, OtherCommandsAreRefused) {
  for (const std::string_view verb : {verb::kStop, verb::kZoneConfigure, verb::kZoneExport,
                                      verb::kReload, verb::kZoneReload, verb::kConfigShow})
    EXPECT_THAT(why_not({.verb = std::string(verb), .name = "a.own.test."}),
                HasSubstr("may only read and edit"))
        << verb;
}

}  // namespace http_user_test
}  // namespace pando::manager
