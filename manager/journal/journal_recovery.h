#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "manager/journal/journal.h"
#include "manager/journal/journal_tail.h"

namespace pando::manager {

/// The state that earlier processes left in the journal's folder.
struct RecoveredJournal {
  JournalFiles files;      ///< whose health is unreadable, if not everything could be read
  std::uint64_t last = 0;  ///< the last used position; 0 = none
};

/// Renames a file that must not be lost to its name with `suffix`. The name gets a number, too, if
/// a file has it already: that file may be the only trace of an earlier loss. Returns the new name.
/// The folder is not synced.
Result<std::string> keep_file(Files& disk, const std::string& file, std::string_view suffix);
/// The same for a file that a snapshot has replaced and that could not be read. The operator is
/// told.
Result<std::string> keep_unread(Files& disk, const std::string& file, const NoteSink& note);

/// Scans the folder. Files with damaged headers are renamed, and segments replaced by a journal
/// snapshot are removed. A torn end of the last segment is left out. All of this is reported to
/// `note`.
///
/// The rest of the last segment is secured in `tail`. A failure of that is reported, too, and
/// leaves the tail unsecured. A file that cannot be read or renamed for now makes the journal
/// unreadable; then nothing may be appended. Errors: a file is of another format.
Result<RecoveredJournal> recover_journal(Files& disk, const std::string& directory,
                                         JournalTail& tail, const NoteSink& note);

}  // namespace pando::manager
