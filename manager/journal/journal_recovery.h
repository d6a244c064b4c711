#pragma once

#include <cstdint>
#include <string>

#include "manager/journal/journal.h"
#include "manager/journal/journal_tail.h"

namespace pando::manager {

/// What processes before this one have left in the journal's folder.
struct RecoveredJournal {
  JournalFiles files;
  std::uint64_t last = 0;  ///< the last position that was used; 0 = none
};

/// Looks the folder through: files with damaged headers are put aside, what a snapshot stands for
/// is removed, a torn end of the last segment is left out, and all this told to `note`. What that
/// segment has left is secured in `tail`; when that fails (told, too), it still is not. Errors are
/// those of files that cannot be read or renamed for now: then nothing may be appended.
Result<RecoveredJournal> recover_journal(Files& disk, const std::string& directory,
                                         JournalTail& tail, const NoteSink& note);

}  // namespace pando::manager
