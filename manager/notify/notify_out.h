#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "dns/tsig/tsig.h"

namespace pando::manager {

/// One try to notify one secondary of a zone change.
struct NotifyJob {
  dns::Name zone;
  Bytes soa;  ///< RDATA
  dns::Ttl ttl;
  Endpoint remote;
  std::optional<IpAddress> source;                     ///< see open_towards()
  const dns::TsigKeyring::PreparedKey* key = nullptr;  ///< kept alive by the caller
  std::chrono::milliseconds timeout{3000};
  std::chrono::milliseconds again{0};  ///< see UdpExchange
};

/// Sends the NOTIFY over UDP and waits for the answer. Returns the answer's RCODE. kIo: silence, an
/// ICMP error, or only datagrams that are no answer.
asio::awaitable<Result<dns::Rcode>> notify_out(NotifyJob job);

}  // namespace pando::manager
