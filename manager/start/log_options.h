#pragma once

#include "config/settings/settings.h"
#include "ipc/log.h"

namespace pando::manager {

/// The log section of the configuration in the logger's words.
log::Options log_options(const config::Log& log);

}  // namespace pando::manager
