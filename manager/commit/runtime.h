#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "dns/tsig/tsig.h"
#include "manager/workers/worker_pool.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// A summary of the options of all zones and templates. The commit thread reads the summary, since
/// one pass over the options of 100,000 zones takes ten milliseconds.
struct ZoneUses {
  std::vector<std::string> notified;   ///< remotes that get a NOTIFY of changes, each once
  std::vector<std::string> primaries;  ///< remotes that are primaries, each once
  bool has_exports = false;            ///< some zone has an export interval
};

/// One loaded configuration with its derived keys and limits. Each request keeps the Runtime that
/// it began with, so a reload takes no key or rule away during the request.
struct Runtime {
  config::Settings settings;
  dns::TsigKeyring keys;
  WorkerKeys worker_keys;
  zone::DataLimits limits;
  std::vector<std::uint32_t> secondaries;  ///< indexes in the table of zones, ascending
  ZoneUses uses;
};
using RuntimePtr = std::shared_ptr<const Runtime>;

/// Prepares keys and limits. Errors name the key.
Result<RuntimePtr> make_runtime(config::Settings settings);

}  // namespace pando::manager
