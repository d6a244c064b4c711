#include "http/page/overview_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/unix_time.h"
#include "ipc/control_json.h"
#include "ipc/counter_labels.h"
#include "ipc/counters.h"

namespace pando::http {

using ipc::Counter;
using nlohmann::json;

namespace {

/// Counters that the page shows for each worker, by their names in the status.
constexpr Counter kShown[] = {Counter::kQueriesUdp,   Counter::kQueriesTcp,
                              Counter::kQueriesTls,   Counter::kDropped,
                              Counter::kErrorsLimited, Counter::kRateLimited,
                              Counter::kSendErrors,   Counter::kTcpOpen,
                              Counter::kTransfersFull, Counter::kTransfersIncremental};

const ProcessFacts* find_process(const Observed& observed, const std::string& name) {
  for (const ProcessFacts& process : observed.processes)
    if (process.name == name) return &process;
  return nullptr;
}

json worker_json(const Observed& observed, const shm::SlotCopy& slot) {
  json counters = json::object();
  for (const Counter counter : kShown) {
    const std::size_t index = ipc::counter_index(counter);
    counters[std::string(ipc::kCounterNames[index])] = slot.counters[index];
  }
  const ProcessFacts* process = find_process(observed, fmt::format("worker-{}", slot.number));
  return {{"slot", slot.number},
          {"alive", slot.alive},
          {"pid", slot.pid},
          {"started", slot.started},
          {"leases", slot.leases},
          {"lag", observed.store ? version_lag(slot, observed.store->version) : 0},
          {"cpu", process == nullptr ? json() : json(process->cpu_seconds)},
          {"memory", process == nullptr ? json() : json(process->private_bytes)},
          {"counters", std::move(counters)}};
}

/// A block of counters of all workers together.
json sums_json(const Observed& observed, std::size_t base, std::size_t count,
               std::string (*label)(std::size_t)) {
  json sums = json::object();
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t sum = 0;
    for (const shm::SlotCopy& slot : observed.slots) sum += slot.counters[base + i];
    if (sum != 0) sums[label(i)] = sum;
  }
  return sums;
}

/// Responses by time, not cumulative: element i took less than 2^i µs, and the last one the rest.
json latency_json(const Observed& observed) {
  json counts = json::array();
  for (std::size_t i = 0; i < ipc::kLatencies; ++i) {
    std::uint64_t sum = 0;
    for (const shm::SlotCopy& slot : observed.slots) sum += slot.counters[ipc::kLatencyBase + i];
    counts.push_back(sum);
  }
  return counts;
}

json store_json(const Observed& observed) {
  if (!observed.store) return {};
  return {{"version", observed.store->version},
          {"memory", observed.store->memory_bytes},
          {"history", observed.store->history_bytes},
          {"zones", observed.store->zones}};
}

/// Without the path of the configuration, which is no concern of a reader elsewhere.
json manager_json(const Observed& observed) {
  if (!observed.manager) return {};
  json status = *observed.manager;
  status.erase("configuration");
  return status;
}

}  // namespace

json overview_json(const Observed& observed) {
  json workers = json::array();
  for (const shm::SlotCopy& slot : observed.slots) workers.push_back(worker_json(observed, slot));
  json udp = json::array();
  for (const UdpFacts& at : observed.udp)
    udp.push_back({{"address", at.address}, {"drops", at.drops}, {"queued", at.queued_bytes}});
  json processes = json::array();
  for (const ProcessFacts& process : observed.processes)
    processes.push_back({{"name", process.name}, {"memory", process.private_bytes}});
  return {{"whole", true},
          {"program", PANDO_VERSION},
          {"now", unix_seconds()},
          {"at_ms", observed.milliseconds},
          {"workers", std::move(workers)},
          {"rcodes", sums_json(observed, ipc::kRcodeBase, ipc::kRcodes, ipc::rcode_label)},
          {"types", sums_json(observed, ipc::kTypeBase, ipc::kTypes, ipc::type_label)},
          {"latency", latency_json(observed)},
          {"store", store_json(observed)},
          {"udp", std::move(udp)},
          {"processes", std::move(processes)},
          {"manager", manager_json(observed)},
          {"problems", observed.problems}};
}

}  // namespace pando::http
