#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "dns/tsig/tsig.h"
#include "manager/workers/worker_pool.h"
#include "zone/build/draft.h"

namespace pando::manager {

/// One loaded configuration with what is made from it. Requests hold the one they began with, so a
/// reload takes neither a key nor a rule away from under them.
struct Runtime {
  config::Settings settings;
  dns::TsigKeyring keys;
  WorkerKeys worker_keys;
  zone::DataLimits limits;
  std::vector<std::uint32_t> secondaries;  ///< their places in the table of zones, ascending
};
using RuntimePtr = std::shared_ptr<const Runtime>;

/// Prepares keys and limits. Errors name the key.
Result<RuntimePtr> make_runtime(config::Settings settings);

}  // namespace pando::manager
