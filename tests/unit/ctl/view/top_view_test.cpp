#include "ctl/view/top_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pando::ctl {
namespace top_view_test {

using nlohmann::json;

ipc::WorkerRow worker(std::uint32_t slot, std::uint32_t pid, ipc::Counters counters,
                      ipc::Counters rcodes) {
  ipc::WorkerRow row;
  row.slot = slot;
  row.pid = pid;
  row.counters = std::move(counters);
  row.rcodes = std::move(rcodes);
  return row;
}

ServerCounts first() {
  ServerCounts counts;
  counts.workers.workers = {
      worker(0, 10, {{"queries_udp", 100}, {"responses_below_us_64", 100}, {"response_us", 4000}},
             {{"NXDOMAIN", 10}}),
      worker(1, 11, {{"queries_udp", 9000}}, {})};
  counts.status.counters = {{"updates", 5}, {"versions", 7}};
  counts.zones.rows = {{0, "a.test.", 160}, {1, "a.test.", 32}, {0, "b.test.", 16}, {1, "c.test.", 8}};
  return counts;
}

ServerCounts second() {
  ServerCounts counts;
  counts.workers.workers = {
      worker(0, 10,
             {{"queries_udp", 300}, {"queries_tcp", 4}, {"responses_below_us_64", 300},
              {"responses_below_us_128", 4}, {"response_us", 10'080}, {"dropped", 1}},
             {{"NXDOMAIN", 110}, {"SERVFAIL", 2}, {"REFUSED", 6}}),
      worker(1, 12, {{"queries_udp", 40}}, {})};  // another process
  counts.status.counters = {{"updates", 25}, {"versions", 8}};
  counts.zones.rows = {{0, "b.test.", 216}, {0, "a.test.", 180}, {1, "a.test.", 64},
                       {1, "b.test.", 9000}, {1, "c.test.", 8}};
  counts.status.store = {{"live", 1 << 20}, {"effective_limit", 8 << 20}};
  return counts;
}

TEST(TopView, MakesRatesOfTwoLooks) {
  const ServerRates rates = make_rates(first(), second(), 2);
  ASSERT_EQ(rates.workers.size(), 2U);
  EXPECT_EQ(rates.workers[0].values, (std::array<double, 7>{102, 2, 50, 1, 3, 0.5, 0}));
  EXPECT_DOUBLE_EQ(rates.workers[0].response_us, 6080.0 / 204);
  EXPECT_EQ(rates.workers[1].values[0], 20) << "a new process counts from 0";
  EXPECT_EQ(rates.total.values[0], 122);
  EXPECT_EQ(rates.updates, 10);
  EXPECT_EQ(rates.versions, 0.5);
}

TEST(TopView, AddsUpAZonesRatesWhereBothLooksHaveIt) {
  const ServerRates rates = make_rates(first(), second(), 2);
  ASSERT_EQ(rates.zones.size(), 2U) << "nobody asked for c.test.";
  EXPECT_EQ(rates.zones[0].zone, "b.test.");
  EXPECT_EQ(rates.zones[0].queries, 100) << "worker 1 did not have it before";
  EXPECT_EQ(rates.zones[1].queries, 26);
}

TEST(TopView, ShowsTheBusiestZones) {
  ServerCounts before;
  ServerCounts now;
  for (std::uint32_t i = 0; i < 24; ++i) {
    before.zones.rows.push_back({0, std::to_string(i), 0});
    now.zones.rows.push_back({0, std::to_string(i), i});
  }
  const ServerRates rates = make_rates(before, now, 1);
  ASSERT_EQ(rates.zones.size(), 10U);
  EXPECT_EQ(rates.zones.front().zone, "23");
  EXPECT_EQ(rates.zones.back().zone, "14");
}

TEST(TopView, ShowsOneLineAWorker) {
  EXPECT_EQ(
      rates_text(make_rates(first(), second(), 2)),
      "WORKER  PID  QUERIES/S  TCP/S  NXDOMAIN/S  SERVFAIL/S  REFUSED/S  DROPPED/S  LIMITED/S  MEAN US\n"
      "0        10        102    2.0          50         1.0        3.0        0.5          0       30\n"
      "1        12         20      0           0           0          0          0          0        0\n"
      "all                122    2.0          50         1.0        3.0        0.5          0       30\n"
      "updates 10/s, versions 0.5/s, store 1.00 MiB of 8.00 MiB\n"
      "QUERIES/S  ZONE\n"
      "      100  b.test.\n"
      "       26  a.test.\n");
}

TEST(TopView, GivesProgramsOneLineOfJson) {
  const std::string line = rates_json(make_rates(first(), second(), 2));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const json rates = json::parse(line);
  EXPECT_EQ(rates["workers"][0]["nxdomain"], 50);
  EXPECT_EQ(rates["workers"][1]["slot"], 1);
  EXPECT_EQ(rates["total"]["queries"], 122);
  EXPECT_EQ(rates["store_limit"], 8 << 20);
  EXPECT_EQ(rates["zones"][1], (json{{"zone", "a.test."}, {"queries", 26.0}}));
}

TEST(TopView, HasATotalWithoutWorkers) {
  const ServerRates rates = make_rates({}, {}, 1);
  EXPECT_TRUE(rates.workers.empty());
  EXPECT_EQ(rates.total.response_us, 0);
}

}  // namespace top_view_test
}  // namespace pando::ctl
