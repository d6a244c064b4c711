#pragma once

#include "base/address.h"
#include "shm/slots.h"

namespace pando::manager {

/// A counter that moves when the address queries a SOA record or a transfer; 0: no worker remembers
/// such a query (ipc/seen_clients.h).
[[nodiscard]] std::uint64_t seen_by_workers(shm::SlotTable& slots, const IpAddress& address);

}  // namespace pando::manager
