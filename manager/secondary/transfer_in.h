#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "dns/tsig/tsig.h"
#include "manager/net/connection_pool.h"
#include "manager/secondary/transfer_parser.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// The zone as it is served, pinned.
struct ServedZone {
  zone::ZoneView zone;
  shm::SlotTable::OwnPin pin;
};

/// What one visit to one primary is to do.
struct TransferJob {
  dns::Name zone;
  std::optional<dns::Serial> current;  ///< absent: there is no data yet, hence AXFR
  bool whole_zone = false;             ///< AXFR although there is data
  bool told = false;                   ///< by this primary, that it is ahead of `current`
  Endpoint primary;
  std::optional<IpAddress> source;                     ///< see open_towards()
  const dns::TsigKeyring::PreparedKey* key = nullptr;  ///< kept alive by the caller
  TransferLimits limits;
  /// What a zone that comes whole is compared with; asked for when one comes, on any executor.
  /// Empty, or nullopt: it is built.
  std::function<asio::awaitable<std::optional<ServedZone>>()> served;
  std::chrono::milliseconds longest_pin{60'000};  ///< of what it gave, until all has come
  std::chrono::milliseconds patience{10'000};     ///< without a whole message, and to connect
  std::chrono::milliseconds longest{7'200'000};   ///< for the whole visit
};

/// What it brought.
struct TransferResult {
  TransferParser::Content content = TransferParser::Content::kUpToDate;
  dns::Serial serial;                              ///< the primary's
  std::vector<zone::Changeset> differences;        ///< kDifferences
  std::shared_ptr<zone::ZoneBuilder::Built> zone;  ///< kZone, built in `transaction`
  std::optional<shm::Transaction> transaction;
  /// kZone that is nearly ours: `differences` has one, from this serial, and nothing was built.
  std::optional<dns::Serial> compared;
  std::uint64_t records = 0;
  std::uint64_t octets = 0;
  std::uint64_t foreign_records = 0;
  /// RFC 7314: seconds until the zone expires at this primary; absent: it does not say.
  std::optional<std::uint32_t> expire;
};

/// Why a visit brought nothing.
struct TransferFailure {
  Error error;
  bool ixfr_asked = false;  ///< the IXFR had been sent: an AXFR may do better
};

/// Asks one primary over TCP: its SOA first (unless there is no data), then IXFR or AXFR when it is
/// ahead (RFC 1995 §2, RFC 5936 §4.1.1). A primary that has told that it is ahead is asked for the
/// IXFR at once, which says by itself what is current; if it does not answer that, all goes as
/// without being told. Everything is signed when there is a key. A whole zone is compared with the
/// served one while it comes, or built, as soon as that takes less memory or the served one would
/// be pinned for too long; what takes long is done in `pool`, not on the loop. Never throws for
/// what peers do. The queries ask for EXPIRE (RFC 7314); a primary that calls them malformed is
/// asked again without EDNS.
///
/// A connection from `kept` is used if there is one, and goes back when all went well. One that the
/// primary closes, or leaves silent, before the first octet of an answer tells nothing about the
/// primary: the query is sent again over a new one.
asio::awaitable<Result<TransferResult, TransferFailure>> transfer_in(TransferJob job,
                                                                     ConnectionPool& kept,
                                                                     shm::Store& store,
                                                                     asio::thread_pool& pool);

}  // namespace pando::manager
