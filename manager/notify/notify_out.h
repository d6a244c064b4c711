#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "dns/tsig/tsig.h"

namespace pando::manager {

/// One try to tell one secondary that a zone has changed.
struct NotifyJob {
  dns::Name zone;
  Bytes soa;  ///< RDATA
  dns::Ttl ttl;
  Endpoint remote;
  std::optional<IpAddress> source;                     ///< see open_towards()
  const dns::TsigKeyring::PreparedKey* key = nullptr;  ///< kept alive by the caller
  std::chrono::milliseconds patience{3000};
};

/// Sends it over UDP and waits for the answer. Its RCODE, or kIo with what there was instead:
/// silence, ICMP, or only datagrams that do not answer.
asio::awaitable<Result<dns::Rcode>> notify_out(NotifyJob job);

}  // namespace pando::manager
