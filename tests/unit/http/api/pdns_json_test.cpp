#include "http/api/pdns_json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "ipc/counters.h"

namespace pando::http {
namespace pdns_json_test {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ZoneContent content() {
  ZoneContent zone;
  zone.apex = "example.";
  zone.serial = 7;
  zone.rrsets = {{"example.", dns::RRType::kNS, 3600, {"ns1.example.", "ns2.example."}},
                 {"www.example.", dns::RRType::kA, 300, {"192.0.2.1"}},
                 {"www.example.", dns::RRType::kTXT, 60, {"\"text\""}}};
  return zone;
}

/// "NAME TYPE" of the RRsets that a filter leaves.
std::vector<std::string> shown(const RRsetFilter& filter) {
  std::vector<std::string> names;
  const json zone = zone_json(content(), filter);
  for (const json& set : zone["rrsets"])
    names.push_back(set["name"].get<std::string>() + " " + set["type"].get<std::string>());
  return names;
}

json statistic(const json& items, std::string_view name) {
  for (const json& item : items)
    if (item["name"] == name) return item["value"];
  return nullptr;
}

TEST(PdnsJson, AZoneHasItsRRsetsAsClientsOfPowerDnsReadThem) {
  const json zone = zone_json(content(), {});
  EXPECT_EQ(zone["id"], "example.");
  EXPECT_EQ(zone["url"], "/api/v1/servers/localhost/zones/example.");
  EXPECT_EQ(zone["kind"], "Master");
  EXPECT_EQ(zone["serial"], 7);
  EXPECT_EQ(zone["dnssec"], false);
  ASSERT_EQ(zone["rrsets"].size(), 3U);
  EXPECT_EQ(zone["rrsets"][0], json::parse(R"({"name": "example.", "type": "NS", "ttl": 3600,
      "comments": [], "records": [{"content": "ns1.example.", "disabled": false},
                                  {"content": "ns2.example.", "disabled": false}]})"));
}

TEST(PdnsJson, ASecondaryAndASignedZoneSaySo) {
  ZoneContent zone = content();
  zone.secondary = true;
  zone.has_denial = true;
  zone.last_check = 1'700'000'000;
  const json shown = zone_json(zone, {});
  EXPECT_EQ(shown["kind"], "Slave");
  EXPECT_EQ(shown["dnssec"], true);
  EXPECT_EQ(shown["presigned"], true);
  EXPECT_EQ(shown["last_check"], 1'700'000'000);
}

TEST(PdnsJson, AFilterNamesOwnerAndTypeInAnyCase) {
  EXPECT_THAT(shown({false, "WWW.example."}), ElementsAre("www.example. A", "www.example. TXT"));
  EXPECT_THAT(shown({false, "www.example.", "txt"}), ElementsAre("www.example. TXT"));
  EXPECT_THAT(shown({false, "", "NS"}), ElementsAre("example. NS"));
  EXPECT_THAT(shown({false, "www.example"}), IsEmpty()) << "names have a final dot";
  EXPECT_FALSE(zone_json(content(), {true, "", ""}).contains("rrsets"));
}

TEST(PdnsJson, MastersLoseThePortOfDnsAndPutOthersInTheirForm) {
  EXPECT_EQ(masters_json({"192.0.2.1@53", "192.0.2.2@5353", "2001:db8::1@53", "2001:db8::2@5353"}),
            json({"192.0.2.1", "192.0.2.2:5353", "2001:db8::1", "[2001:db8::2]:5353"}));
  EXPECT_EQ(masters_json({}), json::array());
}

TEST(PdnsJson, TheTextOfAZoneHasALineForEachRecord) {
  EXPECT_EQ(zone_text(content()),
            "example.\t3600\tIN\tNS\tns1.example.\n"
            "example.\t3600\tIN\tNS\tns2.example.\n"
            "www.example.\t300\tIN\tA\t192.0.2.1\n"
            "www.example.\t60\tIN\tTXT\t\"text\"\n");
}

TEST(PdnsJson, StatisticsAddUpTheWorkers) {
  using ipc::Counter;
  Observed observed;
  observed.slots.resize(2);
  for (shm::SlotCopy& slot : observed.slots) {
    slot.counters[ipc::counter_index(Counter::kQueriesUdp)] = 5;
    slot.counters[ipc::counter_index(Counter::kQueriesTcp)] = 2;
    slot.counters[ipc::counter_index(Counter::kQueriesTls)] = 1;
    slot.counters[ipc::rcode_index(2)] = 3;
  }
  const json items = statistics_json(observed);
  EXPECT_EQ(statistic(items, "udp-queries"), "10");
  EXPECT_EQ(statistic(items, "tcp-queries"), "6") << "TLS is TCP, too";
  EXPECT_EQ(statistic(items, "servfail-packets"), "6");
  EXPECT_EQ(statistic(items, "response-by-rcode"),
            json::parse(R"([{"name": "SERVFAIL", "value": "6"}])"));
  EXPECT_EQ(statistic(items, "response-by-qtype"), json::array());
}

/// A clock that was put back must not give an uptime of four billion seconds.
TEST(PdnsJson, AStartInTheFutureIsNoUptime) {
  Observed observed;
  observed.slots.resize(1);
  observed.slots[0].alive = true;
  observed.slots[0].started = UINT64_MAX;
  EXPECT_EQ(statistic(statistics_json(observed), "uptime"), "0");
}

}  // namespace pdns_json_test
}  // namespace pando::http
