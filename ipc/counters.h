#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The counters in a worker's slot page (shm::SlotPage::counters), and their indices. The worker is
/// the single writer; manager and pandoctl read. Both sides include this file, so a new counter
/// only needs a line at the end of a block.
namespace pando::ipc {

/// Single counters. kBatches is also the worker's sign of progress: a pin during which the worker
/// finishes many batches is not stuck.
enum class Counter : std::uint16_t {
  kBatches,  ///< times the worker pinned a version
  kQueriesUdp,
  kQueriesTcp,
  kQueriesTls,
  kQueriesV6,
  kQueriesEdns,
  kQueriesDo,
  kQueriesTsig,
  kDropped,        ///< no response: short, a response itself, over an error limit
  kErrorsLimited,  ///< of kDropped: error responses above the bound per second
  kTruncated,      ///< TC set
  kForwardedUpdates,
  kForwardedNotifies,
  kForwardedQueries,  ///< signed with a key that the manager holds
  kForwardsFailed,    ///< no manager: SERVFAIL, no answer to a NOTIFY over UDP
  kTcpAccepted,
  kTcpRefused,  ///< above tcp-clients
  kTcpTimeouts,
  kTcpOpen,  ///< a level: connections open now
  kTransfersFull,
  kTransfersIncremental,
  kTransfersCurrent,   ///< IXFR of a client that is up to date
  kTransfersFallback,  ///< IXFR answered by the whole zone
  kTransfersRefused,
  kTransfersFailed,  ///< begun and not finished
  kTransferOctets,
  kSendErrors,  ///< datagrams the kernel did not take
  kAnswerOctetsUdp,
  kInherited,    ///< requests that a dead worker had read and not answered
  kRateLimited,  ///< responses over the rate limit of their client
  kRateSlipped,  ///< of kRateLimited: sent truncated; the others were dropped
  kLatencyMicroseconds,  ///< sum of the times that the latency histogram counts
  kDnstapFrames,         ///< dnstap messages that the collector's socket took
  kDnstapDropped,        ///< dnstap messages that it did not take in time, or without a collector
  kQueryLogLines,        ///< lines of the query log that the manager's stream took
  kQueryLogDropped,      ///< lines that it did not take in time, or without a manager
  kXdpReceived,          ///< frames that came by AF_XDP sockets
  kXdpSent,              ///< answers that left by them
  kXdpDropped,           ///< frames that were no request, or found no room for an answer
  kXdpMissed,            ///< frames that the kernel dropped because a ring was full
  kTransfersWithoutRow,  ///< transfers of zones beyond those that the page has rows for
  kTlsAccepted,
  kTlsRefused,   ///< above tls-clients
  kTlsTimeouts,
  kTlsOpen,      ///< a level: connections open now
  kEnd
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(Counter::kEnd)>
    kCounterNames{"batches",
                  "queries_udp",
                  "queries_tcp",
                  "queries_tls",
                  "queries_ipv6",
                  "queries_edns",
                  "queries_do",
                  "queries_tsig",
                  "dropped",
                  "errors_limited",
                  "truncated",
                  "forwarded_updates",
                  "forwarded_notifies",
                  "forwarded_queries",
                  "forwards_failed",
                  "tcp_accepted",
                  "tcp_refused",
                  "tcp_timeouts",
                  "tcp_open",
                  "transfers_full",
                  "transfers_incremental",
                  "transfers_current",
                  "transfers_fallback",
                  "transfers_refused",
                  "transfers_failed",
                  "transfer_bytes",
                  "send_errors",
                  "answer_octets_udp",
                  "queries_inherited",
                  "rate_limited",
                  "rate_slipped",
                  "response_us",
                  "dnstap_frames",
                  "dnstap_dropped",
                  "query_log_lines",
                  "query_log_dropped",
                  "xdp_received",
                  "xdp_sent",
                  "xdp_dropped",
                  "xdp_missed",
                  "transfers_without_row",
                  "tls_accepted",
                  "tls_refused",
                  "tls_timeouts",
                  "tls_open"};

// Blocks indexed by a protocol number, after the single counters. Room is left for growth.
inline constexpr std::size_t kOpcodeBase = 64;  ///< 16 counters
inline constexpr std::size_t kOpcodes = 16;
inline constexpr std::size_t kRcodeBase = 80;  ///< RCODE 0..23 by number, then "all others"
inline constexpr std::size_t kRcodes = 25;
inline constexpr std::size_t kTypeBase = 105;  ///< QTYPE 0..257 by number, then "all others"
inline constexpr std::size_t kTypes = 259;
/// Time from the receive of a batch to the send of its responses: counter i counts responses that
/// took less than 2^i µs (and at least half of it), the last counts the rest.
inline constexpr std::size_t kLatencyBase = 368;
inline constexpr std::size_t kLatencies = 24;
/// Addresses with the latest queries for a SOA record or a transfer (ipc/seen_clients.h).
inline constexpr std::size_t kSeenBase = kLatencyBase + kLatencies;
inline constexpr std::size_t kSeenClients = 32;
/// Zones with the most queries (ipc/busy_zones.h).
inline constexpr std::size_t kBusyBase = kSeenBase + kSeenClients;
inline constexpr std::size_t kBusyZones = 24;
inline constexpr std::size_t kCountersUsed = kBusyBase + kBusyZones;

static_assert(static_cast<std::size_t>(Counter::kEnd) <= kOpcodeBase);
static_assert(kOpcodeBase + kOpcodes <= kRcodeBase && kRcodeBase + kRcodes <= kTypeBase &&
              kTypeBase + kTypes <= kLatencyBase);

[[nodiscard]] constexpr std::size_t counter_index(Counter counter) noexcept {
  return static_cast<std::size_t>(counter);
}
[[nodiscard]] constexpr std::size_t rcode_index(std::uint16_t rcode) noexcept {
  return kRcodeBase + (rcode < kRcodes - 1 ? rcode : kRcodes - 1);
}
[[nodiscard]] constexpr std::size_t type_index(std::uint16_t type) noexcept {
  return kTypeBase + (type < kTypes - 1 ? type : kTypes - 1);
}

[[nodiscard]] constexpr std::size_t latency_index(std::uint64_t microseconds) noexcept {
  const auto bucket = static_cast<std::size_t>(std::bit_width(microseconds));
  return kLatencyBase + (bucket < kLatencies ? bucket : kLatencies - 1);
}

}  // namespace pando::ipc
