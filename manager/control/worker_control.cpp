#include "manager/control/worker_control.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "ipc/control_json.h"
#include "ipc/counter_labels.h"
#include "ipc/counters.h"
#include "manager/start/startup.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// Memory of a process's page tables; 0: not known, as the process may just have ended.
std::uint64_t page_table_bytes(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; pid > 0 && status >> word;)
    if (std::uint64_t kib = 0; word == "VmPTE:" && status >> kib) return kib << 10;
  return 0;
}

/// The counters of a block that have counted something, by name.
ipc::Counters nonzero(const shm::SlotPage& page, std::size_t base, std::size_t count,
                      std::string (*label)(std::size_t)) {
  ipc::Counters counters;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto value = page.counters[base + i].load(std::memory_order_relaxed); value != 0)
      counters[label(i)] = value;
  return counters;
}

}  // namespace

WorkerControl::WorkerControl(asio::io_context& io, ServerParts parts)
    : configuration_(parts.configuration),
      slots_(*parts.data.slots),
      workers_(parts.workers),
      restart_(io, {[this] { return workers_.status(); }, [this] { return workers_.add(); },
                    [this](std::uint32_t slot) { return workers_.remove(slot); }}) {}

void WorkerControl::add_to(CommandTable& table) {
  using Request = CommandTable::Request;
  table.add_query(ipc::verb::kWorkerList, [this](const Request&) { return list(); });
  for (const std::string_view verb : {ipc::verb::kWorkerAdd, ipc::verb::kWorkerRemove})
    table.add_query(verb, std::bind_front(&WorkerControl::change, this));
  table.add(ipc::verb::kWorkerRestart,
            [this](const Request&, const CommandTable::Reply& reply) { restart(reply); });
}

bool WorkerControl::is_external() const {
  return configuration_.runtime->settings.server.workers.mode == config::Workers::Mode::kExternal;
}

ipc::WorkerRow WorkerControl::make_row(const WorkerStatus& worker) const {
  ipc::WorkerRow row;
  row.slot = worker.slot;
  row.pid = static_cast<std::uint32_t>(std::max(worker.pid, 0));
  row.state = worker.left ? "stopped" : to_text(worker.state);
  row.restarts = worker.restarts;
  row.build = worker.build;
  row.page_tables = page_table_bytes(worker.pid);
  if (const shm::SlotPage* page = slots_.page(worker.slot)) {
    if (worker.pid > 0) row.started = page->started;
    for (const shm::Lease& lease : page->leases) row.leases += lease.epoch.load() != 0 ? 1 : 0;
    for (std::size_t i = 0; i < ipc::kCounterNames.size(); ++i)
      row.counters[std::string(ipc::kCounterNames[i])] =
          page->counters[i].load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < ipc::kLatencies; ++i)
      row.counters["responses_below_us_" + std::to_string(std::uint64_t{1} << i)] =
          page->counters[ipc::kLatencyBase + i].load(std::memory_order_relaxed);
    row.opcodes = nonzero(*page, ipc::kOpcodeBase, ipc::kOpcodes, ipc::opcode_label);
    row.rcodes = nonzero(*page, ipc::kRcodeBase, ipc::kRcodes, ipc::rcode_label);
    row.types = nonzero(*page, ipc::kTypeBase, ipc::kTypes, ipc::type_label);
  }
  return row;
}

Result<json> WorkerControl::list() const {
  ipc::WorkerListResult result;
  result.mode = is_external() ? "external" : "managed";
  for (const WorkerStatus& worker : workers_.status()) result.workers.push_back(make_row(worker));
  return json(result);
}

Result<json> WorkerControl::change(const ipc::ControlRequest& request) {
  if (is_external()) return fail(Errc::kUnsupported, "workers are external");
  const auto workers = workers_.status();
  const auto present = static_cast<std::uint32_t>(std::ranges::count_if(
      workers, [](const auto& one) { return one.state != WorkerStatus::State::kDraining; }));
  // All or nothing: half of a mistyped number is a mistake as well.
  if (request.verb == ipc::verb::kWorkerRemove && request.count > present)
    return fail(Errc::kNotFound, "there {} {} worker{}, not {}", present == 1 ? "is" : "are", present,
                present == 1 ? "" : "s", request.count);
  if (request.verb == ipc::verb::kWorkerAdd && request.count > shm::kMaxSlots - workers.size())
    return fail(Errc::kFull, "a server has at most {} workers", shm::kMaxSlots);
  for (std::uint32_t i = 0; i < request.count; ++i) {
    if (request.verb == ipc::verb::kWorkerRemove) {
      if (auto removed = remove_last(); !removed) return pass(removed);
    } else if (auto added = workers_.add(); !added) {
      return pass(added);
    }
  }
  return list();
}

void WorkerControl::restart(const CommandTable::Reply& reply) {
  Status begun =
      is_external()
          ? fail(Errc::kUnsupported,
                 "workers are external: restart their units, as in systemctl restart pando-worker@0")
          : restart_.begin([this, reply](Status restarted) {
              reply(restarted ? list() : Result<json>(pass(restarted)));
            });
  if (!begun) reply(pass(begun));
}

/// Drains the worker of the highest slot that is not draining yet.
Status WorkerControl::remove_last() {
  std::optional<std::uint32_t> highest;
  for (const WorkerStatus& worker : workers_.status())
    if (worker.state != WorkerStatus::State::kDraining) highest = worker.slot;
  if (!highest) return fail(Errc::kNotFound, "no worker left");
  return workers_.remove(*highest);
}

}  // namespace pando::manager
