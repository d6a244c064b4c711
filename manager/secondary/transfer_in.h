#pragma once

#include <asio/awaitable.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "dns/tsig/tsig.h"
#include "manager/net/connection_pool.h"
#include "manager/secondary/primary_shares.h"
#include "manager/secondary/transfer/transfer_parser.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// The zone as it is served, pinned.
struct ServedZone {
  zone::ZoneView zone;
  shm::SlotTable::OwnPin pin;
};

/// Parameters of one refresh attempt at one primary.
struct TransferJob {
  dns::Name zone;
  std::optional<dns::Serial> current;  ///< our serial; absent: no data yet, hence AXFR
  bool whole_zone = false;             ///< request AXFR although there is data
  bool notified = false;               ///< the primary notified a serial ahead of `current`
  Endpoint primary;
  std::optional<IpAddress> source;                     ///< see open_towards()
  const dns::TsigKeyring::PreparedKey* key = nullptr;  ///< kept alive by the caller
  TransferLimits limits;
  /// Supplies the served zone for comparison with a zone sent whole; called on any executor when
  /// such a zone begins. Empty or nullopt: the zone is built.
  std::function<asio::awaitable<std::optional<ServedZone>>()> served;
  std::chrono::milliseconds longest_pin{60'000};  ///< limit for pinning the result of `served`
  /// limit to connect, and to receive each whole message
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds longest{7'200'000};  ///< limit for the whole attempt
  /// A transfer that receives fewer octets in such a time fails. BIND's defaults
  /// (min-transfer-rate-in); no honest primary is as slow.
  std::uint64_t least_octets = 10'240;
  std::chrono::milliseconds least_octets_in{300'000};
  /// Written while the attempt runs; null: not wanted.
  std::shared_ptr<TransferProgress> progress;
};

/// Result of a refresh attempt.
struct TransferResult {
  TransferParser::Content content = TransferParser::Content::kUpToDate;
  dns::Serial serial;                              ///< the primary's
  std::vector<zone::Changeset> changesets;         ///< kChangesets
  std::shared_ptr<zone::BuiltZone> zone;  ///< kZone, built in `transaction`
  std::optional<shm::Transaction> transaction;
  /// Set for kZone nearly equal to ours: `changesets` has one, from this serial, and no
  /// zone was built.
  std::optional<dns::Serial> compared;
  std::uint64_t records = 0;
  std::uint64_t octets = 0;
  std::uint64_t foreign_records = 0;
  /// RFC 7314: seconds until the zone expires at this primary; absent: not stated.
  std::optional<std::uint32_t> expire;
};

/// Error of a refresh attempt.
struct TransferFailure {
  Error error;
  bool ixfr_asked = false;  ///< the IXFR was sent, so an AXFR may succeed
  bool silent = false;      ///< no octet of an answer has come
};

/// Asks one primary over TCP: its SOA first (unless there is no data), then IXFR or AXFR if the
/// primary is ahead. See RFC 1995 §2 and RFC 5936 §4.1.1. A primary that notified a newer serial
/// gets the IXFR immediately, since the answer shows the current serial. If that IXFR gives no
/// usable answer, the SOA query follows as usual. With a key, all queries are signed.
///
/// A whole zone is compared with the served one while it arrives. The zone is built instead when
/// building takes less memory, or when the served zone would be pinned for too long. Long work is
/// done in `pool`, not on the loop. Peers' errors never throw. The queries ask for EXPIRE (RFC
/// 7314); a primary that rejects them as malformed is asked again without EDNS.
///
/// A connection from `connections` is used if available, and returned after success. The primary
/// may close such a connection, or leave it silent, before the first octet of an answer. Such a
/// failure says nothing about the primary, so the query is sent again over a new connection.
asio::awaitable<Result<TransferResult, TransferFailure>> transfer_in(TransferJob job,
                                                                     ConnectionPool& connections,
                                                                     shm::Store& store,
                                                                     asio::thread_pool& pool);

}  // namespace pando::manager
