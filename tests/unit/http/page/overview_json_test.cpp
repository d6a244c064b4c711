#include "http/page/overview_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ipc/counters.h"

namespace pando::http {
namespace overview_json_test {

using ipc::Counter;
using nlohmann::json;

Observed two_workers() {
  Observed observed;
  observed.milliseconds = 5000;
  for (std::uint32_t number = 0; number < 2; ++number) {
    shm::SlotCopy slot;
    slot.number = number;
    slot.alive = number == 0;
    slot.oldest_lease = 5;
    slot.counters[ipc::counter_index(Counter::kQueriesUdp)] = 7;
    slot.counters[ipc::rcode_index(3)] = 2 + number;
    slot.counters[ipc::type_index(28)] = 1;
    slot.counters[ipc::latency_index(3)] = 4;
    observed.slots.push_back(slot);
  }
  observed.store = StoreFacts{9, 1 << 20, 100, 3};
  observed.processes.push_back({"worker-0", 10, 5, 0.5});
  ipc::StatusResult status;
  status.configuration = "/etc/pando/pando.yaml";
  status.workers_wanted = 2;
  observed.manager = status;
  return observed;
}

TEST(Overview, HasTheNumbersOfEachWorkerAndTheirSums) {
  const json overview = overview_json(two_workers());
  ASSERT_EQ(overview["workers"].size(), 2U);
  const json& first = overview["workers"][0];
  EXPECT_EQ(first["counters"]["queries_udp"], 7);
  EXPECT_EQ(first["lag"], 4);
  EXPECT_EQ(first["memory"], 5);
  EXPECT_EQ(first["cpu"], 0.5);
  EXPECT_TRUE(overview["workers"][1]["cpu"].is_null());
  EXPECT_EQ(overview["rcodes"], (json{{"NXDOMAIN", 5}}));
  EXPECT_EQ(overview["types"], (json{{"AAAA", 2}}));
  EXPECT_EQ(overview["latency"].size(), ipc::kLatencies);
  EXPECT_EQ(overview["latency"][2], 8);
  EXPECT_EQ(overview["at_ms"], 5000);
  EXPECT_EQ(overview["store"]["version"], 9);
  EXPECT_EQ(overview["manager"]["workers_wanted"], 2);
  EXPECT_FALSE(overview["manager"].contains("configuration"));
}

TEST(Overview, TellsWhatIsMissing) {
  Observed observed;
  observed.problems.emplace_back("no store");
  const json overview = overview_json(observed);
  EXPECT_TRUE(overview["store"].is_null());
  EXPECT_TRUE(overview["manager"].is_null());
  EXPECT_EQ(overview["problems"], (json{"no store"}));
  EXPECT_EQ(overview["workers"], json::array());
}

}  // namespace overview_json_test
}  // namespace pando::http
