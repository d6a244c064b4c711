#pragma once

#include <vector>

#include "base/result.h"
#include "http/observe/observed.h"
#include "shm/inspect/observer.h"

namespace pando::http {

/// Reads the store, and the facts of the first `most_zones` zones in canonical order. The numbers
/// of one zone are of one version; a later zone's may be of a later version. kFull: versions
/// followed one another too quickly; `zones` then has the zones that were read.
Result<StoreFacts> read_store(const shm::Observer& observer, std::size_t most_zones,
                              std::vector<ZoneFacts>& zones);

}  // namespace pando::http
