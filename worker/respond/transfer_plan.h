#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"
#include "worker/request/key_set.h"

namespace pando::worker {

/// An allowed zone transfer.
struct TransferPlan {
  dns::Header header;  ///< of the response
  dns::Question question;
  dns::Name apex;
  bool edns = false;
  std::uint16_t udp_payload = 0;        ///< this server's size, for the OPT record
  std::optional<std::uint32_t> expire;  ///< RFC 7314: seconds, when the client asked
  std::optional<dns::Serial> since;     ///< IXFR: the client's version
  /// Signs the messages here; empty when unsigned or when the manager signs.
  std::optional<dns::TsigSession> session;
  std::shared_ptr<const KeySet> keys;  ///< owns the session's key
  Bytes held_request;                  ///< not empty: signed with a key that only the manager has
};

}  // namespace pando::worker
