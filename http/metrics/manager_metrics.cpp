#include "http/metrics/write_metrics.h"

#include <string>

namespace pando::http {

using enum MetricType;

namespace {

/// A family with one sample: a number of the status, by its name there (docs/reference/status.md).
struct Row {
  std::string_view key;
  Family family;
  double scale = 1;  ///< from the status's unit to the family's
};

constexpr double kMs = 1e-3;
constexpr double kUs = 1e-6;

constexpr Row kStoreRows[] = {
    {"live", {"pando_store_live_bytes", kGauge, "Bytes of blocks in use."}},
    {"limit", {"pando_store_limit_bytes", kGauge, "store.size-limit."}},
    {"effective_limit",
     {"pando_store_effective_limit_bytes", kGauge, "The limit, or less where memory is short."}},
    {"chunks_in_use", {"pando_store_chunks_in_use", kGauge, "Chunks of 64 KiB in use."}},
    {"chunks_waiting",
     {"pando_store_chunks_waiting", kGauge, "Chunks that only old versions still need."}},
    {"chunks_free", {"pando_store_chunks_free", kGauge, "Chunks that are free."}},
    {"huge_pages", {"pando_store_huge_pages", kGauge, "Pages of 2 MiB."}},
};

constexpr Row kJournalRows[] = {
    {"position", {"pando_journal_records", kCounter, "Records ever written to the journal."}},
    {"bytes", {"pando_journal_bytes", kGauge, "Size of the journal."}},
    {"snapshots", {"pando_journal_snapshots", kCounter, "Snapshots written to the journal."}},
};

constexpr Row kImageRows[] = {
    {"version", {"pando_image_version", kGauge, "Version of the store that the image has."}},
    {"written_at",
     {"pando_image_written_timestamp_seconds", kGauge, "Last checkpoint, in Unix time."}},
    {"checkpoints", {"pando_checkpoints", kCounter, "Checkpoints."}},
    {"checkpoints_failed", {"pando_checkpoints_failed", kCounter, "Checkpoints that failed."}},
    {"bytes_written", {"pando_checkpoint_bytes", kCounter, "Bytes that checkpoints wrote."}},
    {"last_ms",
     {"pando_checkpoint_last_duration_seconds", kGauge, "Duration of the last checkpoint."},
     kMs},
    {"longest_capture_us",
     {"pando_checkpoint_longest_capture_seconds", kGauge,
      "Longest time that a checkpoint kept the commit thread."},
     kUs},
    {"bytes_to_copy",
     {"pando_image_uncopied_bytes", kGauge, "Bytes that a start has yet to copy to memory."}},
};

constexpr Row kCounterRows[] = {
    {"zones_not_valid",
     {"pando_zones_not_valid", kGauge, "Signed zones that are served with faults."}},
    {"zones_signed_here", {"pando_zones_signed_here", kGauge, "Zones with a DNSSEC policy."}},
    {"zones_keys_unusable",
     {"pando_zones_keys_unusable", kGauge, "Zones whose private keys cannot be used."}},
    {"zones_ds_wanted",
     {"pando_zones_ds_wanted", kGauge, "Signed zones that wait for DS records at their parents."}},
    {"zones_no_ds_wanted",
     {"pando_zones_no_ds_wanted", kGauge,
      "Zones to be unsigned that wait for their parents' DS records to go."}},
    {"zones_signatures_late",
     {"pando_zones_signatures_late", kGauge,
      "Zones whose signatures were not renewed in time."}},
    {"names_renewed", {"pando_names_renewed", kCounter, "Names whose signatures were renewed."}},
    {"versions", {"pando_store_versions", kCounter, "Versions published."}},
    {"store_bytes", {"pando_store_written_bytes", kCounter, "Bytes that versions copied."}},
    {"updates", {"pando_updates", kCounter, "UPDATE requests."}},
    {"updates_accepted", {"pando_updates_accepted", kCounter, "UPDATE requests applied."}},
    {"updates_failed", {"pando_updates_failed", kCounter, "UPDATE requests that got SERVFAIL."}},
    {"updates_forwarded",
     {"pando_updates_forwarded", kCounter, "UPDATE requests forwarded to a primary."}},
    {"updates_not_forwarded",
     {"pando_updates_not_forwarded", kCounter, "UPDATE requests that no primary took."}},
    {"updates_repeated", {"pando_updates_repeated", kCounter, "Repeated UPDATE requests."}},
    {"notifies", {"pando_notifies_received", kCounter, "NOTIFY requests received."}},
    {"transfers_in", {"pando_transfers_in", kCounter, "Transfers in."}},
    {"transfers_in_ixfr", {"pando_transfers_in_ixfr", kCounter, "Transfers in by IXFR."}},
    {"transfers_in_failed", {"pando_transfers_in_failed", kCounter, "Transfers in that failed."}},
    {"transfers_in_fallbacks",
     {"pando_transfers_in_fallbacks", kCounter, "AXFR after an IXFR that failed."}},
    {"notifies_sent", {"pando_notifies_sent", kCounter, "NOTIFY requests sent, with retries."}},
    {"notifies_answered", {"pando_notifies_answered", kCounter, "NOTIFY requests answered."}},
    {"notifies_failed", {"pando_notifies_failed", kCounter, "NOTIFY requests given up."}},
    {"exports", {"pando_exports", kCounter, "Zone files written."}},
    {"exports_failed", {"pando_exports_failed", kCounter, "Zone files that could not be written."}},
    {"signed_queries", {"pando_manager_signed_queries", kCounter, "Queries the manager signed."}},
    {"bad_signatures",
     {"pando_bad_signatures", kCounter, "Requests with a wrong or unknown TSIG signature."}},
    {"upkeep_walks", {"pando_store_compactions", kCounter, "Compactions of the store."}},
    {"large_changes", {"pando_large_changes", kCounter, "Large changesets."}},
    {"large_changes_again",
     {"pando_large_changes_again", kCounter, "Large changesets worked out once more."}},
    {"query_log_written",
     {"pando_query_log_written", kCounter, "Lines of the query log that its target took."}},
    {"query_log_unwritten",
     {"pando_query_log_unwritten", kCounter, "Lines of the query log that were lost."}},
    {"log_lines_dropped",
     {"pando_log_lines_dropped", kCounter, "Log lines of the manager that were lost."}},
};

constexpr Family kInfo{"pando_manager_info", kGauge, "1, with the manager's version."};
constexpr Family kStarted{"pando_manager_start_time_seconds", kGauge,
                          "Start of the manager, in Unix time."};
constexpr Family kConfigured{"pando_configuration_load_timestamp_seconds", kGauge,
                             "Last load of the configuration, in Unix time."};
constexpr Family kWanted{"pando_workers_wanted", kGauge,
                         "Workers that are configured, or that units run."};
constexpr Family kRunning{"pando_workers_running", kGauge, "Workers that serve."};
constexpr Family kLoaded{"pando_zones_loaded", kGauge, "Zones that are served."};
constexpr Family kLists{"pando_zone_lists_failed", kGauge,
                        "1: zone lists could not be read; the store's zones are served."};

template <std::size_t N>
void write_rows(Exposition& out, const Row (&rows)[N], const ipc::Counters& numbers) {
  for (const Row& row : rows) {
    const auto found = numbers.find(std::string(row.key));
    if (found == numbers.end()) continue;
    out.begin(row.family);
    if (row.scale == 1)
      out.sample({}, found->second);
    else
      out.sample({}, static_cast<double>(found->second) * row.scale);
  }
}

}  // namespace

void write_manager_metrics(Exposition& out, const ipc::StatusResult& status) {
  const auto write = [&out](const Family& family, std::uint64_t value) {
    out.begin(family);
    out.sample({}, value);
  };
  out.begin(kInfo);
  out.sample({{"version", status.version}}, std::uint64_t{1});
  write(kStarted, status.started);
  write(kConfigured, status.configured);
  write(kWanted, status.workers_wanted);
  write(kRunning, status.workers_running);
  write(kLoaded, status.zones_loaded);
  write(kLists, status.zone_lists == "failed" ? 1 : 0);
  write_rows(out, kStoreRows, status.store);
  write_rows(out, kJournalRows, status.journal);
  write_rows(out, kImageRows, status.image);
  write_rows(out, kCounterRows, status.counters);
}

}  // namespace pando::http
