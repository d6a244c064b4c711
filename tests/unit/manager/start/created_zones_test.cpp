#include "manager/start/created_zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/files.h"

namespace pando::manager {
namespace created_zones_test {

using nlohmann::json;
using ::testing::HasSubstr;

dns::Name name(const std::string& text) { return *dns::Name::from_text(text); }

class CreatedZones : public ::testing::Test {
 protected:
  CreatedZones() {
    char pattern[] = "/tmp/pando-created-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    settings_.store.journal = folder_;
  }
  ~CreatedZones() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string why_not(json zone) const {
    std::string text = zone.dump();
    const auto taken = take_content(text, folder_);
    return taken ? "" : taken.error().text;
  }
  [[nodiscard]] std::string file(const std::string& zone) const {
    return config::read_regular_file(folder_ + "/zones/" + zone + "zone").value_or("none");
  }

  std::string folder_;
  config::Settings settings_;
};

TEST_F(CreatedZones, AFileTakesThePlaceOfTheContent) {
  std::string zone = json{{"name", "New.test"}, {"content", "text"}, {"template", "t"}}.dump();
  const auto taken = take_content(zone, folder_);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((*taken)->zone, name("new.test."));
  EXPECT_EQ((*taken)->content, "text");
  EXPECT_EQ(json::parse(zone), (json{{"name", "New.test"},
                                     {"file", folder_ + "/zones/new.test.zone"},
                                     {"template", "t"}}));
}

TEST_F(CreatedZones, AZoneWithoutContentStaysAsItIs) {
  for (const std::string text : {"{\"name\": \"a.test\", \"file\": \"f\"}", "no JSON", "[]"}) {
    std::string zone = text;
    const auto taken = take_content(zone, folder_);
    ASSERT_TRUE(taken) << text;
    EXPECT_FALSE(*taken) << text;
    EXPECT_EQ(zone, text);
  }
}

TEST_F(CreatedZones, WhatNoZoneCanHaveIsRefused) {
  EXPECT_THAT(why_not({{"name", "a.test"}, {"content", 7}}), HasSubstr("no text"));
  EXPECT_THAT(why_not({{"name", "a.test"}, {"content", ""}, {"file", "f"}}),
              HasSubstr("'content' and 'file'"));
  EXPECT_THAT(why_not({{"name", "a.test"}, {"content", ""}, {"primaries", {"p"}}}),
              HasSubstr("'content' and 'primaries'"));
  const std::string label(60, 'x');
  EXPECT_THAT(why_not({{"name", label + "." + label + "." + label + "." + label},
                       {"content", ""}}),
              HasSubstr("no file can be named"));
  EXPECT_NE(why_not({{"name", "a..b"}, {"content", ""}}), "");
  EXPECT_NE(why_not({{"name", 7}, {"content", ""}}), "");
  EXPECT_NE(why_not({{"content", ""}}), "");
}

TEST_F(CreatedZones, NothingIsIncluded) {
  for (const char* content : {"$INCLUDE /etc/shadow\n", "a\n  $include x", "\"$IncludE\""})
    EXPECT_THAT(why_not({{"name", "a.test"}, {"content", content}}), HasSubstr("$INCLUDE"));
  EXPECT_EQ(why_not({{"name", "a.test"}, {"content", "$ORIGIN a.\n$TTL 1\ninclude A 192.0.2.1"}}),
            "");
}

TEST_F(CreatedZones, FilesAreWrittenAndRemoved) {
  const std::vector<CreatedZone> zones{{name("a.test."), "one"}, {name("b.test."), "two"}};
  const auto written = write_created_zones(zones, settings_);
  ASSERT_TRUE(written) << written.error().text;
  EXPECT_THAT(*written, ::testing::ElementsAre(name("a.test."), name("b.test.")));
  EXPECT_EQ(file("a.test."), "one");
  EXPECT_EQ(file("b.test."), "two");
  EXPECT_TRUE(remove_created_zone(folder_, name("A.test.")));
  EXPECT_FALSE(remove_created_zone(folder_, name("a.test.")));
  EXPECT_EQ(file("a.test."), "none");
  EXPECT_EQ(file("b.test."), "two");
}

TEST_F(CreatedZones, TheFileOfAZoneThatIsThereIsNotTouched) {
  const std::vector<CreatedZone> zones{{name("a.test."), "one"}};
  ASSERT_TRUE(write_created_zones(zones, settings_));
  ASSERT_TRUE(settings_.zones.add(name("a.test."), "f", settings_.zones.share_options({})));
  const std::vector<CreatedZone> again{{name("A.TEST."), "two"}, {name("b.test."), "three"}};
  const auto written = write_created_zones(again, settings_);
  ASSERT_TRUE(written);
  EXPECT_THAT(*written, ::testing::ElementsAre(name("b.test.")));
  EXPECT_EQ(file("a.test."), "one");
}

TEST_F(CreatedZones, AnErrorLeavesNoFile) {
  // The second zone's file cannot take its name.
  std::filesystem::create_directories(folder_ + "/zones/b.test.zone/in-the-way");
  const std::vector<CreatedZone> zones{{name("a.test."), "one"}, {name("b.test."), "two"}};
  EXPECT_FALSE(write_created_zones(zones, settings_));
  EXPECT_EQ(file("a.test."), "none");
}

}  // namespace created_zones_test
}  // namespace pando::manager
