#pragma once

#include <chrono>
#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "ctl/compare/record_set.h"
#include "dns/tsig/tsig.h"

namespace pando::ctl {

/// The server that a zone is transferred from.
struct TransferServer {
  Endpoint at;
  const dns::TsigKeyring::PreparedKey* key = nullptr;  ///< signs the query; null = unsigned
  std::chrono::milliseconds timeout{};                 ///< of each step: connect, send, receive
};

/// Memory for the records of one transfer. A server that sends more, or without an end, is given
/// up.
inline constexpr std::uint64_t kMaxTransferBytes = std::uint64_t{8} << 30;

/// Transfers the zone of `records` by AXFR (RFC 5936) into it, finished. Blocks. kDenied: the
/// server refuses, or its signature is wrong; kIo: it cannot be reached; kInvalid: its messages are
/// no zone; kFull: more than `most_bytes`.
Status transfer_zone(const TransferServer& server, RecordSet& records,
                     std::uint64_t most_bytes = kMaxTransferBytes);

/// Reads the messages of one AXFR, one after the other.
class TransferReader {
 public:
  TransferReader(RecordSet& records, std::uint16_t id) : records_(records), id_(id) {}
  /// True after the last message. The caller has checked its signature.
  Result<bool> feed(ByteView message);

 private:
  RecordSet& records_;
  std::uint16_t id_;
  bool begun_ = false;
};

}  // namespace pando::ctl
