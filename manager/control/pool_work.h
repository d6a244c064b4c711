#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Makes a result from a version; in a pool thread.
using VersionWork = std::function<Result<nlohmann::json>(const zone::StoreView&)>;

/// Runs `work` on the present version in a thread of `pool`, and replies with its result on `io`.
/// The version stays pinned.
void work_in_pool(asio::io_context& io, asio::thread_pool& pool, OpenedData& data, VersionWork work,
                  const CommandTable::Reply& reply);

}  // namespace pando::manager
