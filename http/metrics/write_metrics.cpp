#include "http/metrics/write_metrics.h"

namespace pando::http {

using enum MetricType;
using ipc::ZoneCounter;
using ipc::ZoneTransfer;

namespace {

constexpr Family kBuild{"pando_build_info", kGauge, "1, with the version of pando-http."};
constexpr Family kManagerUp{"pando_manager_up", kGauge, "1: the manager answers."};
constexpr Family kStoreReadable{"pando_store_readable", kGauge,
                                "1: the store could be read for this scrape."};
constexpr Family kVersion{"pando_store_version", kGauge, "Number of the published version."};
constexpr Family kMemory{"pando_store_memory_bytes", kGauge, "Memory that the store has."};
constexpr Family kHistory{"pando_store_history_bytes", kGauge, "Bytes of change history."};
constexpr Family kZones{"pando_zones", kGauge, "Zones in the store."};
constexpr Family kNotShown{"pando_zones_not_shown", kGauge,
                           "Zones above http.metrics-zones, which have no metrics of their own."};

constexpr Family kDrops{"pando_udp_kernel_drops", kCounter,
                        "Datagrams that the kernel dropped as a socket's queue was full."};
constexpr Family kQueued{"pando_udp_receive_queue_bytes", kGauge,
                         "Memory of datagrams that wait in sockets."};

constexpr Family kResident{"pando_process_resident_memory_bytes", kGauge,
                           "Resident memory, the shared store included."};
constexpr Family kPrivate{"pando_process_private_memory_bytes", kGauge,
                          "Memory that the process shares with no other."};
constexpr Family kCpu{"pando_process_cpu_seconds", kCounter, "Time on processors."};

/// A family with one sample for each zone.
struct ZoneRow {
  Family family;
  std::uint64_t (*value)(const ZoneFacts& zone);
  bool leave_out_zero = false;
};
constexpr ZoneRow kZoneRows[] = {
    {{"pando_zone_loaded", kGauge, "1: the zone has data."},
     [](const ZoneFacts& zone) -> std::uint64_t { return zone.loaded ? 1 : 0; }},
    {{"pando_zone_serial", kGauge, "Serial of the zone."},
     [](const ZoneFacts& zone) -> std::uint64_t { return zone.serial; }},
    {{"pando_zone_records", kGauge, "Records of the zone."},
     [](const ZoneFacts& zone) { return zone.records; }},
    {{"pando_zone_names", kGauge, "Names that own records."},
     [](const ZoneFacts& zone) { return zone.names; }},
    {{"pando_zone_history_bytes", kGauge, "Bytes of the zone's change history."},
     [](const ZoneFacts& zone) { return zone.history_bytes; }},
    {{"pando_zone_data_version", kGauge,
      "Version of the store that last changed the zone's data: every change changes it."},
     [](const ZoneFacts& zone) { return zone.data_version; }},
    {{"pando_zone_bytes", kGauge,
      "Bytes of the store that the zone's data take, without history and snapshots."},
     [](const ZoneFacts& zone) { return zone.data_bytes; }},
    {{"pando_zone_changed_timestamp_seconds", kGauge, "Last change of the zone's data."},
     [](const ZoneFacts& zone) { return zone.changed_at; },
     true},
    {{"pando_zone_refresh_timestamp_seconds", kGauge, "Next refresh of a secondary zone."},
     [](const ZoneFacts& zone) { return zone.refresh_at; },
     true},
    {{"pando_zone_last_check_timestamp_seconds", kGauge,
      "Last successful check with a primary of a secondary zone."},
     [](const ZoneFacts& zone) { return zone.last_ok; },
     true},
    {{"pando_zone_expiry_timestamp_seconds", kGauge, "Expiry of a secondary zone."},
     [](const ZoneFacts& zone) { return zone.expires_at; },
     true},
    {{"pando_zone_signature_expiry_timestamp_seconds", kGauge,
      "End of the first signature of a signed zone."},
     [](const ZoneFacts& zone) { return zone.signatures_end; },
     true},
};

/// Families with a sample for each zone and result. Counters of 0 are left out: most zones have few
/// of them.
constexpr Family kUpdates{"pando_zone_updates", kCounter,
                          "UPDATE requests of the zone, by result."};
constexpr Family kTransfersIn{"pando_zone_transfers_in", kCounter,
                              "Transfers in of the zone, by result."};
constexpr Family kZoneTransfersOut{"pando_zone_transfers_out", kCounter,
                                   "Transfers out of the zone by all workers, by result."};
constexpr Family kUncounted{"pando_zone_counts_lost", kCounter,
                            "Updates and transfers in that found no room to be counted by zone."};

struct ResultOfZone {
  std::string_view result;
  std::size_t counter;
};
constexpr ResultOfZone kUpdateResults[] = {
    {"accepted", static_cast<std::size_t>(ZoneCounter::kUpdatesAccepted)},
    {"prerequisite", static_cast<std::size_t>(ZoneCounter::kUpdatesPrerequisite)},
    {"refused", static_cast<std::size_t>(ZoneCounter::kUpdatesRefused)},
    {"failed", static_cast<std::size_t>(ZoneCounter::kUpdatesFailed)},
    {"forwarded", static_cast<std::size_t>(ZoneCounter::kUpdatesForwarded)}};
constexpr ResultOfZone kTransferInResults[] = {
    {"axfr", static_cast<std::size_t>(ZoneCounter::kTransfersInAxfr)},
    {"ixfr", static_cast<std::size_t>(ZoneCounter::kTransfersInIxfr)},
    {"failed", static_cast<std::size_t>(ZoneCounter::kRefreshesFailed)}};
constexpr ResultOfZone kTransferOutResults[] = {
    {"axfr", static_cast<std::size_t>(ZoneTransfer::kAxfr)},
    {"ixfr", static_cast<std::size_t>(ZoneTransfer::kIxfr)},
    {"current", static_cast<std::size_t>(ZoneTransfer::kCurrent)},
    {"failed", static_cast<std::size_t>(ZoneTransfer::kFailed)}};

template <std::size_t kResults, class Counters>
void write_results(Exposition& out, const std::vector<ZoneFacts>& zones, const Family& family,
                   const ResultOfZone (&results)[kResults], Counters ZoneFacts::*counters) {
  out.begin(family);
  for (const ZoneFacts& zone : zones)
    for (const ResultOfZone& one : results)
      if (const std::uint64_t value = (zone.*counters)[one.counter]; value != 0)
        out.sample({{"zone", zone.name}, {"result", one.result}}, value);
}

void write_one(Exposition& out, const Family& family, std::uint64_t value) {
  out.begin(family);
  out.sample({}, value);
}

void write_store(Exposition& out, const Observed& observed) {
  write_one(out, kStoreReadable, observed.store ? 1 : 0);
  if (!observed.store) return;
  const StoreFacts& store = *observed.store;
  write_one(out, kVersion, store.version);
  write_one(out, kMemory, store.memory_bytes);
  write_one(out, kHistory, store.history_bytes);
  write_one(out, kZones, store.zones);
  const std::uint64_t shown = observed.zones.size();
  write_one(out, kNotShown, store.zones > shown ? store.zones - shown : 0);
  if (observed.uncounted) write_one(out, kUncounted, *observed.uncounted);
}

void write_zones(Exposition& out, const std::vector<ZoneFacts>& zones) {
  for (const ZoneRow& row : kZoneRows) {
    out.begin(row.family);
    for (const ZoneFacts& zone : zones) {
      const std::uint64_t value = row.value(zone);
      if (value != 0 || !row.leave_out_zero) out.sample({{"zone", zone.name}}, value);
    }
  }
  write_results(out, zones, kUpdates, kUpdateResults, &ZoneFacts::counted);
  write_results(out, zones, kTransfersIn, kTransferInResults, &ZoneFacts::counted);
  write_results(out, zones, kZoneTransfersOut, kTransferOutResults, &ZoneFacts::transfers_out);
}

void write_udp(Exposition& out, const std::vector<UdpFacts>& udp) {
  out.begin(kDrops);
  for (const UdpFacts& at : udp) out.sample({{"address", at.address}}, at.drops);
  out.begin(kQueued);
  for (const UdpFacts& at : udp) out.sample({{"address", at.address}}, at.queued_bytes);
}

void write_processes(Exposition& out, const std::vector<ProcessFacts>& processes) {
  out.begin(kResident);
  for (const auto& process : processes)
    out.sample({{"process", process.name}}, process.resident_bytes);
  out.begin(kPrivate);
  for (const auto& process : processes)
    out.sample({{"process", process.name}}, process.private_bytes);
  out.begin(kCpu);
  for (const auto& process : processes)
    out.sample({{"process", process.name}}, process.cpu_seconds);
}

}  // namespace

void write_metrics(Exposition& out, const Observed& observed) {
  out.begin(kBuild);
  out.sample({{"version", PANDO_VERSION}}, std::uint64_t{1});
  write_worker_metrics(out, observed.slots, observed.store ? observed.store->version : 0,
                       observed.monotonic);
  write_udp(out, observed.udp);
  write_store(out, observed);
  write_zones(out, observed.zones);
  write_one(out, kManagerUp, observed.manager ? 1 : 0);
  if (observed.manager) write_manager_metrics(out, *observed.manager);
  write_processes(out, observed.processes);
}

}  // namespace pando::http
