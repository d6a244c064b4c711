#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dns/zonefile/zone_scanner_source.h"
#include "manager/journal/journal_history.h"
#include "manager/support/load_progress.h"
#include "manager/support/withheld_data.h"
#include "shm/store.h"
#include "zone/builder/comparison.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// A zone built from its file and its journal, not yet in any version.
struct ZoneFromFile {
  std::shared_ptr<zone::BuiltZone> built;
  zone::ZoneFileInfo source;
  std::uint64_t records = 0;
  std::size_t replayed = 0;           ///< changesets of the journal that were applied one by one
  std::size_t skipped = 0;            ///< changesets whose serials did not fit
  /// Of a secondary's copy: see zone::primary_serial().
  std::optional<dns::Serial> primary_serial{};
  std::size_t updated = 0;            ///< records that updates made different from the file
  std::vector<JournalEntry> journal;  ///< to append when the zone is put
  std::vector<std::string> warnings;
};

/// All `file:line: reason` lines of an unusable file (the scanner limits their number).
struct ZoneProblems {
  std::vector<std::string> lines;
  bool is_journal = false;  ///< the journal could not be read, so the file says nothing yet
};

/// Journal data of a zone that has no data in the store yet.
struct ZoneHistory {
  const JournalHistory& journal;
  std::uint64_t up_to = UINT64_MAX;  ///< journal position of the last record to use
  /// the file is the copy of a secondary, so its serial identifies its content
  bool is_copy = false;
  /// the configuration lets the zone change by other means than its file
  bool may_have_updates = false;
  /// Data that take the file's place if the journal lacks records
  std::optional<WithheldData> withheld = std::nullopt;
};

/// Reads a zone file and builds the zone with the updates in `history`. An empty `path` means the
/// journal alone; `history` may be null. If the journal knows the dynamic changes, they are merged
/// with the present file (zone_recovery.h); else changesets with fitting serials are applied. Where
/// the journal lacks records, they are applied to withheld data, if there are any. For loader
/// threads.
///
/// The zone is written to the private `transaction`. After an error the transaction holds a partial
/// zone and should be dropped. `progress` (may be null) receives the number of bytes read. A
/// given-up `progress` ends the build with an error.
Result<ZoneFromFile, ZoneProblems> build_zone(shm::Transaction& transaction, const dns::Name& apex,
                                           const std::string& path, const ZoneHistory* history,
                                           LoadProgress* progress = nullptr);

/// Builds a zone that the journal does not know, from a file that the caller has opened and
/// checked. The path is not looked up again.
Result<ZoneFromFile, ZoneProblems> build_zone(shm::Transaction& transaction, const dns::Name& apex,
                                           const std::string& path, dns::FileSource& file);

/// Result of comparing a zone file with the served zone, record by record.
struct ComparedFile {
  std::unique_ptr<zone::Comparison> comparison;  ///< finished
  zone::Comparison::Soa soa;
  zone::ZoneFileInfo source;
  std::vector<std::string> warnings;
};

/// Compares a zone file with the served zone while reading, without building a second zone. The
/// caller keeps `live` pinned for as long as the result exists. Nullopt: the caller should build
/// the file's zone, because too much is new or the served zone is damaged. For loader threads.
Result<std::optional<ComparedFile>, ZoneProblems> compare_file(const zone::ZoneView& live,
                                                               const dns::Name& apex,
                                                               const std::string& path,
                                                               LoadProgress* progress);

/// Lines for the log about a file whose zone is refused with `error`.
ZoneProblems problems_of(const std::string& path, const dns::Name& apex, const Error& error);

}  // namespace pando::manager
