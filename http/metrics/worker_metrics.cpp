#include "http/metrics/write_metrics.h"

#include <fmt/format.h>

#include <limits>

#include "ipc/counter_labels.h"
#include "ipc/counters.h"

namespace pando::http {

using ipc::Counter;
using enum MetricType;

namespace {

/// A family with one sample for each worker: one of its counters.
struct Single {
  Family family;
  Counter counter;
};
constexpr Single kSingles[] = {
    {{"pando_requests_ipv6", kCounter, "Requests over IPv6."}, Counter::kQueriesV6},
    {{"pando_requests_edns", kCounter, "Requests with EDNS."}, Counter::kQueriesEdns},
    {{"pando_requests_dnssec_ok", kCounter, "Requests with the DO bit."}, Counter::kQueriesDo},
    {{"pando_requests_tsig", kCounter, "Requests signed with TSIG."}, Counter::kQueriesTsig},
    {{"pando_requests_dropped", kCounter, "Requests that got no response."}, Counter::kDropped},
    {{"pando_errors_limited", kCounter, "Error responses above the bound per second, dropped."},
     Counter::kErrorsLimited},
    {{"pando_responses_truncated", kCounter, "Responses with the TC bit."}, Counter::kTruncated},
    {{"pando_responses_rate_limited", kCounter, "Responses over server.rate-limit."},
     Counter::kRateLimited},
    {{"pando_responses_rate_slipped", kCounter, "Rate-limited responses sent truncated."},
     Counter::kRateSlipped},
    {{"pando_udp_response_bytes", kCounter, "Octets of responses over UDP."},
     Counter::kAnswerOctetsUdp},
    {{"pando_udp_send_errors", kCounter, "Responses that the kernel did not take."},
     Counter::kSendErrors},
    {{"pando_requests_inherited", kCounter, "Requests of a killed worker, answered by the next."},
     Counter::kInherited},
    {{"pando_forwards_failed", kCounter, "Requests for the manager while there was none."},
     Counter::kForwardsFailed},
    {{"pando_tcp_connections", kGauge, "TCP connections that are open."}, Counter::kTcpOpen},
    {{"pando_tcp_accepted", kCounter, "TCP connections accepted."}, Counter::kTcpAccepted},
    {{"pando_tcp_refused", kCounter, "TCP connections above a limit, closed at once."},
     Counter::kTcpRefused},
    {{"pando_tcp_timeouts", kCounter, "TCP connections whose client stalled in a request."},
     Counter::kTcpTimeouts},
    {{"pando_tls_connections", kGauge, "Connections over TLS that are open."}, Counter::kTlsOpen},
    {{"pando_tls_accepted", kCounter, "Clients that came by pando-tls."}, Counter::kTlsAccepted},
    {{"pando_tls_refused", kCounter, "Clients over TLS above a limit, closed at once."},
     Counter::kTlsRefused},
    {{"pando_tls_timeouts", kCounter, "Connections over TLS whose client was idle or stalled."},
     Counter::kTlsTimeouts},
    {{"pando_transfers_out_current", kCounter, "IXFR of clients that were up to date."},
     Counter::kTransfersCurrent},
    {{"pando_transfers_out_fallback", kCounter, "IXFR answered by the whole zone."},
     Counter::kTransfersFallback},
    {{"pando_transfers_out_refused", kCounter, "Transfers refused."}, Counter::kTransfersRefused},
    {{"pando_transfers_out_failed", kCounter, "Transfers begun and not finished."},
     Counter::kTransfersFailed},
    {{"pando_transfer_out_bytes", kCounter, "Octets of transfers."}, Counter::kTransferOctets},
    {{"pando_dnstap_frames", kCounter, "dnstap messages that the collector's socket took."},
     Counter::kDnstapFrames},
    {{"pando_dnstap_dropped", kCounter, "dnstap messages that found no collector or no room."},
     Counter::kDnstapDropped},
    {{"pando_query_log_lines", kCounter, "Lines of the query log that the manager took."},
     Counter::kQueryLogLines},
    {{"pando_query_log_dropped", kCounter, "Lines of the query log that found no room."},
     Counter::kQueryLogDropped},
    {{"pando_xdp_received", kCounter, "Frames that came by AF_XDP sockets."},
     Counter::kXdpReceived},
    {{"pando_xdp_sent", kCounter, "Answers that left by AF_XDP sockets."}, Counter::kXdpSent},
    {{"pando_xdp_dropped", kCounter, "Frames that were no request or found no room."},
     Counter::kXdpDropped},
    {{"pando_xdp_missed", kCounter, "Frames that the kernel dropped as a ring was full."},
     Counter::kXdpMissed},
    {{"pando_transfers_out_without_zone", kCounter,
      "Transfers of zones beyond the 1,024 that a worker counts apart."},
     Counter::kTransfersWithoutRow},
    {{"pando_worker_batches", kCounter, "Batches of requests: pins of a version."},
     Counter::kBatches},
};

/// A family whose samples are told apart by one more label.
struct Labelled {
  Counter counter;
  std::string_view value;
};
constexpr Family kRequests{"pando_requests", kCounter, "Requests received."};
constexpr Labelled kTransports[] = {{Counter::kQueriesUdp, "udp"},
                                    {Counter::kQueriesTcp, "tcp"},
                                    {Counter::kQueriesTls, "tls"}};
constexpr Family kForwarded{"pando_requests_forwarded", kCounter,
                            "Requests passed to the manager."};
constexpr Labelled kForwardKinds[] = {{Counter::kForwardedUpdates, "update"},
                                      {Counter::kForwardedNotifies, "notify"},
                                      {Counter::kForwardedQueries, "query"}};
constexpr Family kTransfersOut{"pando_transfers_out", kCounter, "Transfers sent, by their form."};
constexpr Labelled kTransferKinds[] = {{Counter::kTransfersFull, "axfr"},
                                       {Counter::kTransfersIncremental, "ixfr"}};

/// A family over a block of counters that a protocol number indexes.
struct Block {
  Family family;
  std::string_view label;
  std::size_t base;
  std::size_t count;
  std::string (*value)(std::size_t);
};
constexpr Block kBlocks[] = {
    {{"pando_requests_by_opcode", kCounter, "Requests received, by opcode."},
     "opcode",
     ipc::kOpcodeBase,
     ipc::kOpcodes,
     ipc::opcode_label},
    {{"pando_responses", kCounter, "Responses, by RCODE."},
     "rcode",
     ipc::kRcodeBase,
     ipc::kRcodes,
     ipc::rcode_label},
    {{"pando_queries", kCounter, "Queries received, by QTYPE."},
     "qtype",
     ipc::kTypeBase,
     ipc::kTypes,
     ipc::type_label},
};

constexpr Family kDuration{"pando_response_duration_seconds", kHistogram,
                           "Time from the receive of a batch to the send of its responses."};
constexpr Family kUp{"pando_worker_up", kGauge, "1: a worker process holds the slot."};
constexpr Family kWorkerStarted{"pando_worker_start_time_seconds", kGauge,
                          "Start of the slot's last process, in Unix time."};
constexpr Family kLeases{"pando_worker_leases", kGauge, "Transfers that hold a version."};
constexpr Family kLeaseAge{"pando_worker_oldest_lease_seconds", kGauge,
                           "Age of the longest transfer that holds a version."};
constexpr Family kLag{"pando_worker_version_lag", kGauge,
                      "Versions published since the oldest one that the worker holds."};

std::uint64_t value_of(const shm::SlotCopy& slot, Counter counter) {
  return slot.counters[ipc::counter_index(counter)];
}

/// Calls `write(slot, its number as text)` for each slot.
template <class Write>
void for_each_slot(const std::vector<shm::SlotCopy>& slots, Write write) {
  for (const shm::SlotCopy& slot : slots) write(slot, fmt::format("{}", slot.number));
}

template <std::size_t N>
void write_labelled(Exposition& out, const std::vector<shm::SlotCopy>& slots, const Family& family,
                    std::string_view label, const Labelled (&rows)[N]) {
  out.begin(family);
  for_each_slot(slots, [&](const shm::SlotCopy& slot, const std::string& worker) {
    for (const Labelled& row : rows)
      out.sample({{"worker", worker}, {label, row.value}}, value_of(slot, row.counter));
  });
}

/// Counters of 0 are left out: a worker has 300.
void write_block(Exposition& out, const std::vector<shm::SlotCopy>& slots, const Block& block) {
  out.begin(block.family);
  for_each_slot(slots, [&](const shm::SlotCopy& slot, const std::string& worker) {
    for (std::size_t i = 0; i < block.count; ++i)
      if (const std::uint64_t value = slot.counters[block.base + i]; value != 0)
        out.sample({{"worker", worker}, {block.label, block.value(i)}}, value);
  });
}

void write_durations(Exposition& out, const std::vector<shm::SlotCopy>& slots) {
  constexpr double kMicrosecond = 1e-6;
  out.begin(kDuration);
  for_each_slot(slots, [&](const shm::SlotCopy& slot, const std::string& worker) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < ipc::kLatencies; ++i) {
      count += slot.counters[ipc::kLatencyBase + i];
      const bool last = i + 1 == ipc::kLatencies;
      const double bound = last ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(std::uint64_t{1} << i) * kMicrosecond;
      out.bucket({{"worker", worker}}, bound, count);
    }
    const auto sum = static_cast<double>(value_of(slot, Counter::kLatencyMicroseconds));
    out.sum({{"worker", worker}}, sum * kMicrosecond, count);
  });
}

void write_states(Exposition& out, const std::vector<shm::SlotCopy>& slots, std::uint64_t version,
                  std::uint64_t monotonic_now) {
  const auto write = [&](const Family& family, auto value) {
    out.begin(family);
    for_each_slot(slots, [&](const shm::SlotCopy& slot, const std::string& worker) {
      out.sample({{"worker", worker}}, std::uint64_t{value(slot)});
    });
  };
  using shm::SlotCopy;
  write(kUp, [](const SlotCopy& slot) { return slot.alive ? 1U : 0U; });
  write(kWorkerStarted, [](const SlotCopy& slot) { return slot.started; });
  write(kLeases, [](const SlotCopy& slot) { return slot.leases; });
  write(kLeaseAge, [&](const SlotCopy& slot) {
    const bool known = slot.lease_since != 0 && slot.lease_since < monotonic_now;
    return known ? monotonic_now - slot.lease_since : 0;
  });
  if (version != 0) write(kLag, [&](const SlotCopy& slot) { return version_lag(slot, version); });
}

}  // namespace

void write_worker_metrics(Exposition& out, const std::vector<shm::SlotCopy>& slots,
                          std::uint64_t store_version, std::uint64_t monotonic_now) {
  write_labelled(out, slots, kRequests, "transport", kTransports);
  for (const Block& block : kBlocks) write_block(out, slots, block);
  write_labelled(out, slots, kForwarded, "kind", kForwardKinds);
  write_labelled(out, slots, kTransfersOut, "form", kTransferKinds);
  for (const Single& single : kSingles) {
    out.begin(single.family);
    for_each_slot(slots, [&](const shm::SlotCopy& slot, const std::string& worker) {
      out.sample({{"worker", worker}}, value_of(slot, single.counter));
    });
  }
  write_durations(out, slots);
  write_states(out, slots, store_version, monotonic_now);
}

}  // namespace pando::http
