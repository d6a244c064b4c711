#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <optional>

#include "base/result.h"
#include "dns/name.h"
#include "ipc/control_results.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Walks the present version in a pool thread, pinned, while the store goes on
/// (zone/audit/audit.h): all of it, with a comparison of each chunk's count, or one zone. Call on
/// the commit thread, where `done` is called, too; all references outlive the pool's threads.
/// kNotFound: no such zone.
void audit_store(shm::Store& store, shm::SlotTable& slots, asio::io_context& io,
                 asio::thread_pool& pool, std::optional<dns::Name> zone,
                 std::function<void(Result<ipc::StoreAudit>)> done);

}  // namespace pando::manager
