#pragma once

#include <set>
#include <string>

#include "manager/journal.h"
#include "zone/snapshot.h"

namespace pando::manager {

/// Writes the zones that `sealed` has records of, as they are in `version` and with their overlays,
/// to `<directory>/<position>.partial` and syncs it; gives that path. A zone that has no data in
/// `version` (its file is broken, say) keeps its records as they are; one that `version` does not
/// know any more is left out. `position`: everything up to it is in `version`. For a pool thread;
/// `version` must be pinned.
Result<std::string> write_snapshot(Files& files, const std::string& directory,
                                   const JournalFiles& sealed, const zone::Snapshot& version,
                                   std::uint64_t position);

}  // namespace pando::manager
