#pragma once

#include <optional>

#include "config/settings/settings.h"
#include "ipc/log.h"
#include "ipc/worker_messages.h"
#include "manager/net/dnstap_lender.h"
#include "manager/net/query_log_lender.h"
#include "manager/xdp/xdp_lender.h"

namespace pando::manager {

/// The log section of the configuration in the logger's words.
log::Options log_options(const config::Log& log);
/// The same for workers.
ipc::Logging worker_logging(const config::Log& log);

/// server.dnstap for the pool of workers; none when it is off. Messages name this server by
/// server.identity, or by the host's name.
std::optional<DnstapOptions> dnstap_options(const config::Server& server);
/// server.query-log for the pool of workers; none when it is off.
std::optional<QueryLogOptions> query_log_options(const config::Server& server);
/// server.xdp for the pool of workers.
XdpOptions xdp_options(const config::Server& server);

}  // namespace pando::manager
