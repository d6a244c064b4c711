#pragma once

#include <vector>

#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/build/draft.h"
#include "zone/dump/dump_reader.h"

namespace pando::manager {

/// What a dump had beside what is in the store now.
struct LoadedDump {
  zone::DumpCounts counts;
  /// What the journal that the dump was made beside knew of the zones' files.
  std::vector<JournalEntry> notes;
};

/// Builds the dump's zones, with their histories, timers and noted files, in an empty store that
/// nobody else sees yet. Of their settings only the kind is known: the configuration has the
/// others. Errors name the file and the place in it: kCorrupt and kInvalid, when it is not sound or
/// no server could have served that; kFull: the store is too small. Histories are as long as
/// `limits` allow.
Result<LoadedDump> load_dump(shm::Store& store, zone::DumpReader& dump,
                             const zone::DataLimits& limits);

}  // namespace pando::manager
