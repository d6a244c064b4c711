#pragma once

#include <vector>

#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/draft/draft.h"
#include "zone/dump/dump_reader.h"

namespace pando::manager {

/// The contents of a dump beyond the data now in the store.
struct LoadedDump {
  zone::DumpCounts counts;
  /// Records of the zones' merge bases, as known to the journal that the dump was made beside.
  std::vector<JournalEntry> notes;
};

/// Builds the dump's zones, with their histories, timers and merge bases, in an empty store that
/// nobody else sees yet. Of the zones' settings only the kind is known: the configuration has the
/// others.
///
/// Errors name the file and the place in it. kCorrupt, kInvalid: the dump is not sound, or no
/// server could have served it. kFull: the store is too small. Histories are as long as `limits`
/// allow.
Result<LoadedDump> load_dump(shm::Store& store, zone::DumpReader& dump,
                             const zone::DataLimits& limits);

}  // namespace pando::manager
