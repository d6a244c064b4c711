#include "http/page/zone_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/worker/zone_store.h"

namespace pando::http {
namespace zone_rows_test {

using nlohmann::json;
using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kText = "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\n";
constexpr const char* kHostile = "<img\\032src=x\\032onerror=\"alert(1)\">.test.";

/// Without a manager: all is from the store.
class ZoneRows : public ::testing::Test {
 protected:
  json read(std::string_view query, const AccessKey& client = {}) {
    const auto wanted = read_zone_query(query);
    EXPECT_TRUE(wanted) << (wanted ? "" : wanted.error().text);
    if (!wanted) return {};
    auto rows = zone_rows_json(collector_, *wanted, client);
    EXPECT_TRUE(rows) << (rows ? "" : rows.error().text);
    return rows ? *rows : json();
  }
  std::vector<std::string> names(std::string_view query, const AccessKey& client = {}) {
    std::vector<std::string> names;
    const json page = read(query, client);
    for (const json& row : page["zones"]) names.push_back(row["name"]);
    return names;
  }
  CollectorOptions options() {
    CollectorOptions options;
    options.store_path = store_.path();
    options.run_directory = "/nowhere";
    options.layout = zone::layout_fingerprint();
    return options;
  }
  ZoneStore store_{{TestZone{"a.test.", kText}, TestZone{"b.a.test.", kText},
                    TestZone{kHostile, kText}, TestZone{"none.test.", ""}}};
  Collector collector_{options()};
};

TEST_F(ZoneRows, AreThoseOfTheStore) {
  const json page = read("");
  ASSERT_EQ(page["zones"].size(), 4U);
  EXPECT_EQ(page["next"], "");
  EXPECT_EQ(page["looked"], 4);
  EXPECT_EQ(page["manager"], false);
  json a;
  for (const json& row : page["zones"])
    if (row["name"] == "a.test.") a = row;
  EXPECT_EQ(a, (json{{"name", "a.test."},
                     {"kind", "primary"},
                     {"state", "ok"},
                     {"serial", 7},
                     {"records", 2},
                     {"frozen", false},
                     {"problem", ""}}));
}

TEST_F(ZoneRows, AreSearchedByPartsOfNames) {
  EXPECT_THAT(names("search=A.te"), ElementsAre("a.test.", "b.a.test."));
  EXPECT_THAT(names("search=b*test."), ElementsAre("b.a.test."));
  EXPECT_THAT(names("search=nothing"), IsEmpty());
  EXPECT_THAT(names("search=onerror"), ElementsAre(to_text(name(kHostile))));
  EXPECT_THAT(names("after=a.test.&search=a.test"), ElementsAre("b.a.test."));
  EXPECT_FALSE(read_zone_query("search=" + std::string(1025, 'a')));
  EXPECT_FALSE(read_zone_query("after=a..b"));
}

TEST_F(ZoneRows, WithProblemsAreKnownWithoutAManager) {
  EXPECT_THAT(names("problems=1"), ElementsAre("none.test."));
  EXPECT_EQ(read("problems=1")["zones"][0]["state"], "not-loaded");
}

TEST_F(ZoneRows, AreThoseThatTheKeySees) {
  const auto key = [](std::initializer_list<const char*> zones) {
    AccessKey made;
    for (const char* zone : zones) made.zones.push_back(name(zone));
    return made;
  };
  EXPECT_THAT(names("", key({"a.test."})), ElementsAre("a.test."));
  EXPECT_THAT(names("", key({"*.a.test.", "none.test."})), ElementsAre("b.a.test.", "none.test."));
  EXPECT_THAT(names("problems=1", key({"a.test."})), IsEmpty());
  EXPECT_THAT(names("problems=1", key({"a.test.", "none.test."})), ElementsAre("none.test."));
  EXPECT_EQ(read("", key({"a.test."}))["looked"], 1) << "no other zone was looked at";
}

TEST_F(ZoneRows, HaveDetails) {
  const auto zone = zone_details_json(collector_, name("a.test."), {});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ((*zone)["manager"], false);
  EXPECT_EQ((*zone)["zone"]["serial"], 7);
  EXPECT_EQ((*zone)["changesets"], json::array());
  EXPECT_EQ((*zone)["changesets_known"], true);
  EXPECT_EQ((*zone)["snapshots"], json::array());
  EXPECT_EQ(zone_details_json(collector_, name("absent.test."), {}).error().code, Errc::kNotFound);
}

TEST(Rows, OfExpiredZonesTellIt) {
  ZoneFacts facts;
  facts.name = "a.";
  facts.loaded = facts.secondary = true;
  facts.expires_at = 100;
  EXPECT_EQ(row_of(facts, 99).state, "ok");
  EXPECT_EQ(row_of(facts, 100).state, "expired");
  EXPECT_EQ(row_of(facts, 100).kind, "secondary");
}

}  // namespace zone_rows_test
}  // namespace pando::http
