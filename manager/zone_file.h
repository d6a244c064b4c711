#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/journal_history.h"
#include "shm/store.h"
#include "zone/draft.h"

namespace pando::manager {

/// Modification time and size of a zone file; nullopt when there is no such file.
std::optional<zone::ZoneSource> stat_source(const std::string& path);

/// A zone built from its file and its journal in a private transaction, not yet in any version.
struct BuiltZone {
  shm::Transaction transaction;
  std::shared_ptr<zone::ZoneBuilder::Built> built;
  zone::ZoneSource source;
  std::uint64_t records = 0;
  std::size_t replayed = 0;  ///< differences of the journal that are in it
  std::size_t skipped = 0;   ///< those that did not fit
  bool from_snapshot = false;
  std::vector<std::string> warnings;
};

/// All `file:line: reason` lines (bounded by the scanner) of a file that cannot be used.
struct ZoneProblems {
  std::vector<std::string> lines;
};

/// Reads a zone file (`path` may be empty: the journal alone) and builds the zone with the updates
/// that `history` (may be null) has of it. For a pool thread.
Result<BuiltZone, ZoneProblems> build_zone(shm::Store& store, const dns::Name& apex,
                                           const std::string& path, const JournalHistory* history);

}  // namespace pando::manager
