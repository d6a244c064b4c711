#pragma once

#include "config/settings/settings.h"
#include "ipc/log.h"
#include "ipc/worker_messages.h"

namespace pando::manager {

/// The log section of the configuration in the logger's words.
log::Options log_options(const config::Log& log);
/// The same for workers.
ipc::Logging worker_logging(const config::Log& log);

}  // namespace pando::manager
