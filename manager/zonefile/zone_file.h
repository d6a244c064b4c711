#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dns/zonefile/zone_scanner_source.h"
#include "manager/journal/journal_history.h"
#include "manager/zonefile/load_progress.h"
#include "manager/zonefile/merge_base.h"
#include "shm/store.h"
#include "zone/build/comparison.h"
#include "zone/build/draft.h"

namespace pando::manager {

/// A zone built from its file and its journal, not yet in any version.
struct BuiltZone {
  std::shared_ptr<zone::ZoneBuilder::Built> built;
  zone::ZoneFileInfo source;
  std::uint64_t records = 0;
  std::size_t replayed = 0;           ///< differences of the journal that were applied one by one
  std::size_t skipped = 0;            ///< those that did not fit
  std::size_t updated = 0;            ///< records that are not as in the file, by updates
  std::vector<JournalEntry> journal;  ///< to append when the zone is put
  std::vector<std::string> warnings;
};

/// All `file:line: reason` lines (bounded by the scanner) of a file that cannot be used.
struct ZoneProblems {
  std::vector<std::string> lines;
};

/// What a zone that is not in the store has beside its file.
struct ZoneHistory {
  const JournalHistory& journal;
  std::uint64_t up_to = UINT64_MAX;  ///< position of the journal's last record that counts
  bool is_copy = false;              ///< the file is a secondary's: its serial says what is in it
};

/// Reads a zone file (`path` may be empty: the journal alone) and builds the zone, with the updates
/// that `history` (may be null) has of it: beside the file as it is now when the journal tells what
/// came by update (zone_recovery.h), else those whose serials fit. For a pool thread.
///
/// It is written to `transaction`, a private one. After an error that has what was written so far,
/// so it should be dropped. `progress` (may be null) is told how far the file has been read, and
/// may say that the zone is not wanted any more, which is an error.
Result<BuiltZone, ZoneProblems> build_zone(shm::Transaction& transaction, const dns::Name& apex,
                                           const std::string& path, const ZoneHistory* history,
                                           LoadProgress* progress = nullptr);

/// The same for a zone of which the journal knows nothing, from a file that was opened, and looked
/// at, before: nothing is asked of its name again.
Result<BuiltZone, ZoneProblems> build_zone(shm::Transaction& transaction, const dns::Name& apex,
                                           const std::string& path, dns::FileSource& file);

/// A zone file that was compared with the zone that is served, record by record.
struct ComparedFile {
  std::unique_ptr<zone::Comparison> comparison;  ///< finished
  zone::Comparison::Soa soa;
  zone::ZoneFileInfo source;
  std::vector<std::string> warnings;
};

/// Reads a zone file beside the zone that is served, which stays pinned for as long as what is
/// returned is there; no second zone is made. Nullopt: so much is new that the file's zone should
/// be built, or the served one is damaged. For a pool thread.
Result<std::optional<ComparedFile>, ZoneProblems> compare_file(const zone::ZoneView& live,
                                                               const dns::Name& apex,
                                                               const std::string& path,
                                                               LoadProgress* progress);

/// The lines to tell of a file whose zone is refused for `error`.
ZoneProblems problems_of(const std::string& path, const dns::Name& apex, const Error& error);

}  // namespace pando::manager
