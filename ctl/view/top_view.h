#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control_results.h"

/// Rates of the server for people, computed from two samples of its counters.
namespace pando::ctl {

/// One sample: the counters that the manager reported at one time.
struct ServerCounts {
  ipc::WorkerListResult workers;
  ipc::StatusResult status;
  ipc::ZoneQueriesResult zones;
};

/// The counters of a worker, in the order of WorkerRates::values.
inline constexpr std::array<std::string_view, 7> kRateNames{
    "queries", "tcp", "nxdomain", "servfail", "refused", "dropped", "rate_limited"};

struct WorkerRates {
  std::uint32_t slot = 0;
  std::uint32_t pid = 0;
  std::array<double, kRateNames.size()> values{};  ///< per second
  double response_us = 0;  ///< mean time from receive to send; 0 without responses
};

/// Estimated, as a worker notes a part of its questions.
struct ZoneRate {
  std::string zone;
  double queries = 0;  ///< per second, at all workers
};

struct ServerRates {
  std::vector<WorkerRates> workers;
  std::vector<ZoneRate> zones;  ///< with the most queries, descending
  WorkerRates total;
  double updates = 0;   ///< UPDATE requests per second
  double versions = 0;  ///< versions published per second
  std::uint64_t store_live = 0;   ///< bytes
  std::uint64_t store_limit = 0;  ///< bytes
};

/// Rates between two looks that are `seconds` apart. A process that began in between counts from 0.
[[nodiscard]] ServerRates make_rates(const ServerCounts& before, const ServerCounts& now,
                                     double seconds);

[[nodiscard]] std::string rates_text(const ServerRates& rates);
/// One line of JSON.
[[nodiscard]] std::string rates_json(const ServerRates& rates);

}  // namespace pando::ctl
