#include "http/observe/zone_content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/api/pdns_json.h"
#include "http/observe/zone_facts.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::http {
namespace zone_content_test {

using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kText =
    "@ 300 SOA ns1 admin 7 3600 600 86400 300\n@ 300 NS ns1\nns1 60 A 192.0.2.1\n"
    "ns1 60 A 192.0.2.2\nTxt 5 TXT \"a\\\"b\" \"c d\"\n";

class Zones : public ::testing::Test {
 protected:
  [[nodiscard]] shm::Observer observer() const {
    return std::move(*shm::Observer::open(store_.path(), zone::layout_fingerprint()));
  }
  static std::string large() {
    std::string text = kText;
    for (int i = 0; i < 500; ++i) text += fmt::format("n{:03} 60 A 192.0.2.{}\n", i, i % 250);
    return text;
  }
  ZoneStore store_{{TestZone{"example.com.", kText}, TestZone{"large.test.", large()},
                    TestZone{"none.test.", ""}}};
};

TEST_F(Zones, AreReadWithAllTheirRecords) {
  const auto zone = read_zone(observer(), name("EXAMPLE.com."), 1 << 20);
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->serial, 7U);
  EXPECT_FALSE(zone->secondary);
  EXPECT_EQ(zone_text(*zone),
            "example.com.\t300\tIN\tNS\tns1.example.com.\n"
            "example.com.\t300\tIN\tSOA\tns1.example.com. admin.example.com. 7 3600 600 86400 300\n"
            "ns1.example.com.\t60\tIN\tA\t192.0.2.1\nns1.example.com.\t60\tIN\tA\t192.0.2.2\n"
            "Txt.example.com.\t5\tIN\tTXT\t\"a\\\"b\" \"c d\"\n");
}

TEST_F(Zones, AreReadInSteps) {
  const auto zone = read_zone(observer(), name("large.test."), 1 << 20);
  ASSERT_TRUE(zone);
  EXPECT_EQ(zone->rrsets.size(), 504U);
  EXPECT_EQ(zone->rrsets.back().owner, "Txt.large.test.");
  EXPECT_TRUE(std::is_sorted(zone->rrsets.begin() + 2, zone->rrsets.begin() + 502,
                             [](const auto& a, const auto& b) { return a.owner < b.owner; }));
  EXPECT_EQ(read_zone(observer(), name("large.test."), 1000).error().code, Errc::kFull);
}

TEST_F(Zones, ThatAreNotThereAreErrors) {
  EXPECT_EQ(read_zone(observer(), name("a.example.com."), 1 << 20).error().code, Errc::kNotFound);
  EXPECT_EQ(read_zone(observer(), name("none.test."), 1 << 20).error().code, Errc::kUnsupported);
}

TEST_F(Zones, AreListedUpToALimit) {
  std::vector<ZoneFacts> zones;
  const auto facts = read_store(observer(), 2, zones);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->zones, 3U);
  ASSERT_EQ(zones.size(), 2U);
  EXPECT_EQ(zones[0].name, "example.com.");
  EXPECT_EQ(zones[0].records, 5U);
  EXPECT_EQ(zones[1].serial, 7U);
}

TEST_F(Zones, HaveTheMembersOfThePowerDnsApi) {
  const auto zone = read_zone(observer(), name("example.com."), 1 << 20);
  ASSERT_TRUE(zone);
  const nlohmann::json whole = zone_json(*zone, {});
  EXPECT_EQ(whole["id"], "example.com.");
  EXPECT_EQ(whole["kind"], "Master");
  EXPECT_EQ(whole["url"], "/api/v1/servers/localhost/zones/example.com.");
  ASSERT_EQ(whole["rrsets"].size(), 4U);
  const nlohmann::json one = zone_json(*zone, {.name = "NS1.example.com.", .type = "a"});
  EXPECT_EQ(one["rrsets"],
            nlohmann::json::parse(R"([{"name": "ns1.example.com.", "type": "A", "ttl": 60,
                "records": [{"content": "192.0.2.1", "disabled": false},
                            {"content": "192.0.2.2", "disabled": false}], "comments": []}])"));
  EXPECT_FALSE(zone_json(*zone, {.without = true}).contains("rrsets"));
}

TEST(ZoneIds, AreNamesThatAPathCanHold) {
  EXPECT_EQ(zone_id("example.com."), "example.com.");
  EXPECT_EQ(zone_id("0/26.2.0.192.in-addr.arpa."), "0=2F26.2.0.192.in-addr.arpa.");
  for (const char* id : {"0=2F26.2.0.192.in-addr.arpa.", "0%2F26.2.0.192.in-addr.arpa",
                         "0%3D2f26.2.0.192.in-addr.arpa."}) {
    const auto parsed = name_of_id(id);
    ASSERT_TRUE(parsed) << id;
    EXPECT_EQ(to_text(*parsed), "0/26.2.0.192.in-addr.arpa.");
  }
  for (const char* id : {"", "=", "=2", "=ZZ", "%", "%2", "a..b", "a=00b\\", "=2E="})
    EXPECT_FALSE(name_of_id(id)) << id;
}

TEST(Queries, GiveTheirValues) {
  EXPECT_EQ(query_value("rrsets=false&zone=a%2eb.&x", "zone"), "a.b.");
  EXPECT_EQ(query_value("rrsets=false", "zone"), "");
  EXPECT_EQ(query_value("zone=%zz", "zone"), "");
  EXPECT_EQ(query_value("zone", "zone"), "");
}

}  // namespace zone_content_test
}  // namespace pando::http
