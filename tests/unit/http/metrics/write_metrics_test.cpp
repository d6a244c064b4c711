#include "http/metrics/write_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "ipc/counters.h"
#include "tests/support/trees.h"

namespace pando::http {
namespace write_metrics_test {

using ::testing::HasSubstr;
using ::testing::Not;

Observed everything() {
  Observed observed;
  observed.monotonic = 100;
  shm::SlotCopy slot;
  slot.number = 3;
  slot.alive = true;
  slot.pinned = 8;
  slot.oldest_lease = 5;
  slot.leases = 1;
  slot.lease_since = 60;
  slot.counters[ipc::counter_index(ipc::Counter::kQueriesUdp)] = 7;
  slot.counters[ipc::kOpcodeBase] = 7;
  slot.counters[ipc::type_index(28)] = 4;
  slot.counters[ipc::rcode_index(3)] = 2;
  slot.counters[ipc::latency_index(3)] = 5;
  slot.counters[ipc::latency_index(1 << 30)] = 1;
  slot.counters[ipc::counter_index(ipc::Counter::kLatencyMicroseconds)] = 2'000'000;
  observed.slots.push_back(slot);
  observed.store = StoreFacts{9, 1 << 20, 100, 3};
  observed.zones.push_back({"a\"} 1\nevil 2.", true, 17, 4, 3, 10, 6, 0, 0, 0});
  observed.zones.push_back({"secondary.", true, 18, 4, 3, 10, 6, 50, 40, 90});
  ZoneFacts& zone = observed.zones.back();
  zone.signatures_end = 70;
  zone.data_bytes = 640;
  zone.changed_at = 80;
  for (std::size_t i = 0; i < zone.counted.size(); ++i) zone.counted[i] = 20 + i;
  for (std::size_t i = 0; i < zone.transfers_out.size(); ++i) zone.transfers_out[i] = 30 + i;
  observed.uncounted = 2;
  observed.udp.push_back({"127.0.0.1@53", 12, 768});
  observed.processes.push_back({"http", 10, 5, 0.5});
  ipc::StatusResult status;
  status.version = "1.2";
  const auto fill = [](ipc::Counters& numbers, std::initializer_list<const char*> names) {
    for (const char* name : names) numbers[name] = 1500;
  };
  fill(status.store, {"live", "limit", "effective_limit", "chunks_in_use", "chunks_waiting",
                      "chunks_free", "huge_pages"});
  fill(status.journal, {"position", "bytes", "snapshots"});
  fill(status.image, {"version", "written_at", "checkpoints", "checkpoints_failed",
                      "bytes_written", "last_ms", "longest_capture_us", "bytes_to_copy"});
  fill(status.counters,
       {"zones_not_valid", "zones_signed_here", "zones_keys_unusable", "zones_ds_wanted",
        "zones_no_ds_wanted", "zones_signatures_late", "names_renewed", "versions", "store_bytes", "updates", "updates_accepted", "updates_failed",
        "updates_forwarded", "updates_not_forwarded", "updates_repeated", "notifies",
        "transfers_in", "transfers_in_ixfr", "transfers_in_failed", "transfers_in_fallbacks",
        "notifies_sent", "notifies_answered", "notifies_failed", "exports", "exports_failed",
        "signed_queries", "bad_signatures", "upkeep_walks", "large_changes",
        "large_changes_again", "query_log_written", "query_log_unwritten", "log_lines_dropped"});
  observed.manager = status;
  return observed;
}

std::string text_of(const Observed& observed) {
  Exposition out(Format::kOpenMetrics);
  write_metrics(out, observed);
  return out.finish();
}

/// Names of families, without "_total", and their types.
std::map<std::string, std::string> families_in(const std::string& text) {
  std::map<std::string, std::string> families;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    const auto blank = line.find(' ', 7);
    const std::string name = line.substr(7, blank - 7);
    EXPECT_TRUE(families.emplace(name, line.substr(blank + 1)).second) << name << " begins twice";
  }
  return families;
}

/// A family that everything() leaves without a sample would not be compared with the page.
TEST(Metrics, AreTheFamiliesThatTheSourcesName) {
  std::set<std::string> named;
  for (const char* file : {"manager_metrics", "worker_metrics", "write_metrics"}) {
    std::ifstream source(pando::tests::source_path(std::string("/http/metrics/") + file + ".cpp"));
    const std::string text{std::istreambuf_iterator<char>(source), {}};
    const std::regex pattern("\"(pando_[a-z0-9_]+)\"");
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
      EXPECT_TRUE(named.insert((*at)[1]).second) << (*at)[1] << " has two families";
  }
  std::set<std::string> written;
  for (const auto& [name, type] : families_in(text_of(everything()))) written.insert(name);
  EXPECT_EQ(named, written);
}

/// Rows of the form | `name` | type | labels | meaning |, where name is that of the samples.
TEST(Metrics, AreDocumentedWithTheirTypes) {
  std::map<std::string, std::string> documented;
  std::ifstream page(pando::tests::source_path("/docs/reference/metrics.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `pando_")) continue;
    const auto end = line.find('`', 3);
    std::string type = line.substr(end + 4);
    type.resize(type.find(' '));
    EXPECT_TRUE(documented.emplace(line.substr(3, end - 3), type).second) << line;
  }
  std::map<std::string, std::string> written;
  for (const auto& [name, type] : families_in(text_of(everything())))
    written[name + (type == "counter" ? "_total" : "")] = type;
  EXPECT_EQ(documented, written);
}

TEST(Metrics, HaveTheNumbersOfTheirWorker) {
  const std::string text = text_of(everything());
  for (const char* line :
       {"\npando_requests_total{worker=\"3\",transport=\"udp\"} 7\n",
        "\npando_queries_total{worker=\"3\",qtype=\"AAAA\"} 4\n",
        "\npando_responses_total{worker=\"3\",rcode=\"NXDOMAIN\"} 2\n",
        "\npando_response_duration_seconds_bucket{worker=\"3\",le=\"2e-06\"} 0\n",
        "\npando_response_duration_seconds_bucket{worker=\"3\",le=\"4e-06\"} 5\n",
        "\npando_response_duration_seconds_bucket{worker=\"3\",le=\"4.194304\"} 5\n",
        "\npando_response_duration_seconds_bucket{worker=\"3\",le=\"+Inf\"} 6\n",
        "\npando_response_duration_seconds_sum{worker=\"3\"} 2\n",
        "\npando_response_duration_seconds_count{worker=\"3\"} 6\n",
        "\npando_worker_version_lag{worker=\"3\"} 4\n",
        "\npando_worker_oldest_lease_seconds{worker=\"3\"} 40\n",
        "\npando_udp_kernel_drops_total{address=\"127.0.0.1@53\"} 12\n",
        "\npando_checkpoint_last_duration_seconds 1.5\n", "\npando_zones_not_shown 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(Metrics, OfAZoneWithAHostileNameStayOnTheirLines) {
  const std::string text = text_of(everything());
  EXPECT_THAT(text, HasSubstr("\npando_zone_serial{zone=\"a\\\"} 1\\nevil 2.\"} 17\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nevil")));
  EXPECT_THAT(text, HasSubstr("\npando_zone_expiry_timestamp_seconds{zone=\"secondary.\"} 90\n"));
  EXPECT_THAT(text, Not(HasSubstr("\npando_zone_expiry_timestamp_seconds{zone=\"a")));
  constexpr const char* kSignatures = "\npando_zone_signature_expiry_timestamp_seconds{zone=\"";
  EXPECT_THAT(text, HasSubstr(std::string(kSignatures) + "secondary.\"} 70\n"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kSignatures) + "a")));
}

TEST(Metrics, OfAZoneTellResultsThatCame) {
  const std::string text = text_of(everything());
  for (const char* line : {"\npando_zone_bytes{zone=\"secondary.\"} 640\n",
                           "\npando_zone_changed_timestamp_seconds{zone=\"secondary.\"} 80\n",
                           "\npando_zone_updates_total{zone=\"secondary.\",result=\"accepted\"} 20\n",
                           "result=\"prerequisite\"} 21\n", "result=\"refused\"} 22\n",
                           "result=\"failed\"} 23\n", "result=\"forwarded\"} 24\n",
                           "\npando_zone_transfers_in_total{zone=\"secondary.\",result=\"axfr\"} 25\n",
                           "result=\"ixfr\"} 26\n", "result=\"failed\"} 27\n",
                           "\npando_zone_transfers_out_total{zone=\"secondary.\",result=\"axfr\"} 30\n",
                           "result=\"ixfr\"} 31\n", "result=\"current\"} 32\n",
                           "result=\"failed\"} 33\n", "\npando_zone_counts_lost_total 2\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("pando_zone_updates_total{zone=\"a"))) << "nothing came";
  EXPECT_THAT(text, Not(HasSubstr("pando_zone_changed_timestamp_seconds{zone=\"a")));
}

TEST(Metrics, SayWhatIsMissing) {
  const std::string text = text_of({});
  EXPECT_THAT(text, HasSubstr("\npando_manager_up 0\n"));
  EXPECT_THAT(text, HasSubstr("\npando_store_readable 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("pando_updates")));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

}  // namespace write_metrics_test
}  // namespace pando::http
