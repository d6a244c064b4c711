#pragma once

#include <cstdint>
#include <ctime>

#include "base/bytes.h"
#include "worker/request/request.h"

namespace pando::worker {

/// A request that dnstap messages or a line of the query log report, with its response.
struct Exchange {
  Client client;
  timespec received{};
  Bytes zone;  ///< apex of the zone that answers, in wire form; empty = none
  bool to_dnstap = false;
  bool to_log = false;
};

/// An exchange whose response comes later, with a copy of its request.
struct HeldExchange {
  Exchange exchange;
  Bytes request;
};

/// The end of an exchange.
enum class ExchangeEnd : std::uint8_t {
  kAnswered,  ///< by one response
  kDropped,   ///< without a response
  kTransfer,  ///< by the messages of a zone transfer
};

}  // namespace pando::worker
