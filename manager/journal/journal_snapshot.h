#pragma once

#include <set>
#include <string>

#include "manager/journal/journal.h"
#include "manager/journal/journal_history.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Writes the zones that `sealed` has records of, as they are in `version` and with their overlays,
/// to `<directory>/<position>.partial` and syncs it; gives that path. A zone that has no data in
/// `version` (its file is broken, say) keeps its records as they are; one that `version` does not
/// know any more is left out. `position`: everything up to it is in `version`. For a pool thread;
/// `version` must be pinned.
Result<std::string> write_snapshot(Files& files, const std::string& directory,
                                   const JournalFiles& sealed, const zone::StoreView& version,
                                   std::uint64_t position);

/// What the journal knows of the file of a zone that is served at a version with `position`. When
/// it does not lead to what is served, it does not know what came by update.
MergeBase served_file_state(const JournalHistory& history, const zone::ZoneView& zone,
                            std::uint64_t position);

}  // namespace pando::manager
