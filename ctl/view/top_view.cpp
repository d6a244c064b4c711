#include "ctl/view/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/view/json_text.h"
#include "ctl/view/output.h"
#include "ctl/view/status_view.h"

namespace pando::ctl {

namespace {

using nlohmann::json;

/// Zones that are shown; a screen has room for workers as well.
constexpr std::size_t kMaxZones = 10;

/// The counts after kRateNames, then the number of responses and the sum of their microseconds.
struct WorkerCounts {
  std::array<std::uint64_t, kRateNames.size()> values;
  std::uint64_t responses = 0;
  std::uint64_t response_us = 0;
};

WorkerCounts counts_of(const ipc::WorkerRow& worker) {
  const std::uint64_t tcp =
      count_of(worker.counters, "queries_tcp") + count_of(worker.counters, "queries_tls");
  WorkerCounts counts{{count_of(worker.counters, "queries_udp") + tcp, tcp,
                 count_of(worker.rcodes, "NXDOMAIN"), count_of(worker.rcodes, "SERVFAIL"),
                 count_of(worker.rcodes, "REFUSED"), count_of(worker.counters, "dropped"),
                 count_of(worker.counters, "rate_limited")}};
  for (const auto& [name, value] : worker.counters)
    if (name.starts_with("responses_below_us_")) counts.responses += value;
  counts.response_us = count_of(worker.counters, "response_us");
  return counts;
}

/// The growth of a counter. A counter that fell is one of another process.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now < before ? now : now - before;
}

double mean(std::uint64_t sum, std::uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

/// The row of the same process in `workers`; a row without counts if it was not there.
ipc::WorkerRow same_process(const ipc::WorkerListResult& workers, const ipc::WorkerRow& worker) {
  const auto same = [&](const ipc::WorkerRow& row) {
    return row.slot == worker.slot && row.pid == worker.pid;
  };
  const auto found = std::ranges::find_if(workers.workers, same);
  return found == workers.workers.end() ? ipc::WorkerRow{} : *found;
}

std::string rate_text(double rate) {
  return rate > 0 && rate < 10 ? fmt::format("{:.1f}", rate) : fmt::format("{:.0f}", rate);
}

/// A worker's zone that only the second look has began with another zone's number.
std::vector<ZoneRate> zone_rates(const ipc::ZoneQueriesResult& before,
                                 const ipc::ZoneQueriesResult& now, double seconds) {
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> first;
  for (const ipc::ZoneQueriesRow& row : before.rows) first[{row.slot, row.zone}] = row.queries;
  std::map<std::string, double> sums;
  for (const ipc::ZoneQueriesRow& row : now.rows)
    if (const auto found = first.find({row.slot, row.zone}); found != first.end())
      sums[row.zone] += static_cast<double>(growth(found->second, row.queries)) / seconds;
  std::vector<ZoneRate> rates;
  for (const auto& [zone, queries] : sums)
    if (queries > 0) rates.push_back({zone, queries});
  std::ranges::stable_sort(rates, std::ranges::greater(), &ZoneRate::queries);
  if (rates.size() > kMaxZones) rates.resize(kMaxZones);
  return rates;
}

json to_json(const WorkerRates& rates) {
  json object{{"response_us", rates.response_us}};
  for (std::size_t i = 0; i < kRateNames.size(); ++i)
    object[std::string(kRateNames[i])] = rates.values[i];
  return object;
}

}  // namespace

ServerRates make_rates(const ServerCounts& before, const ServerCounts& now, double seconds) {
  ServerRates rates;
  WorkerCounts all{};
  for (const ipc::WorkerRow& worker : now.workers.workers) {
    const WorkerCounts first = counts_of(same_process(before.workers, worker));
    const WorkerCounts last = counts_of(worker);
    WorkerRates row{worker.slot, worker.pid};
    for (std::size_t i = 0; i < kRateNames.size(); ++i) {
      row.values[i] = static_cast<double>(growth(first.values[i], last.values[i])) / seconds;
      rates.total.values[i] += row.values[i];
    }
    const std::uint64_t responses = growth(first.responses, last.responses);
    const std::uint64_t microseconds = growth(first.response_us, last.response_us);
    row.response_us = mean(microseconds, responses);
    all.responses += responses;
    all.response_us += microseconds;
    rates.workers.push_back(row);
  }
  rates.zones = zone_rates(before.zones, now.zones, seconds);
  rates.total.response_us = mean(all.response_us, all.responses);
  const auto rate = [&](const char* name) {
    return static_cast<double>(growth(count_of(before.status.counters, name),
                                      count_of(now.status.counters, name))) /
           seconds;
  };
  rates.updates = rate("updates");
  rates.versions = rate("versions");
  rates.store_live = count_of(now.status.store, "live");
  rates.store_limit = count_of(now.status.store, "effective_limit");
  return rates;
}

std::string rates_text(const ServerRates& rates) {
  std::vector<Table::Column> columns{{"WORKER"}, {"PID", true}};
  for (const char* title :
       {"QUERIES/S", "TCP/S", "NXDOMAIN/S", "SERVFAIL/S", "REFUSED/S", "DROPPED/S", "LIMITED/S"})
    columns.push_back({title, true});
  columns.push_back({"MEAN US", true});
  Table table(columns);
  const auto add = [&](std::string name, std::string pid, const WorkerRates& row) {
    std::vector<std::string> words{std::move(name), std::move(pid)};
    for (const double value : row.values) words.push_back(rate_text(value));
    words.push_back(rate_text(row.response_us));
    table.add(std::move(words));
  };
  for (const WorkerRates& row : rates.workers)
    add(number(row.slot), row.pid == 0 ? "-" : number(row.pid), row);
  add("all", "", rates.total);
  std::ostringstream out;
  table.flush(out);
  out << fmt::format("updates {}/s, versions {}/s, store {} of {}\n", rate_text(rates.updates),
                     rate_text(rates.versions), bytes_text(rates.store_live),
                     bytes_text(rates.store_limit));
  if (rates.zones.empty()) return out.str();
  Table zones({{"QUERIES/S", true, 9}, {"ZONE"}});
  for (const ZoneRate& zone : rates.zones) zones.add({rate_text(zone.queries), zone.zone});
  zones.flush(out);
  return out.str();
}

std::string rates_json(const ServerRates& rates) {
  json object{{"workers", json::array()},
              {"zones", json::array()},
              {"total", to_json(rates.total)},
              {"updates", rates.updates},
              {"versions", rates.versions},
              {"store_live", rates.store_live},
              {"store_limit", rates.store_limit}};
  for (const WorkerRates& row : rates.workers) {
    json worker = to_json(row);
    worker["slot"] = row.slot;
    worker["pid"] = row.pid;
    object["workers"].push_back(std::move(worker));
  }
  for (const ZoneRate& zone : rates.zones)
    object["zones"].push_back({{"zone", zone.zone}, {"queries", zone.queries}});
  return json_text(object);
}

}  // namespace pando::ctl
