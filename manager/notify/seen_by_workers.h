#pragma once

#include "base/address.h"
#include "shm/slots.h"

namespace pando::manager {

/// A value that changes when some worker gets a query for a SOA record or a transfer from the
/// address; 0: no worker remembers one (ipc/seen_clients.h).
[[nodiscard]] std::uint64_t seen_by_workers(shm::SlotTable& slots, const IpAddress& address);

}  // namespace pando::manager
