#pragma once

#include <string>

#include "manager/journal/journal.h"

namespace pando::manager {

/// The faults of a journal's files; both empty when all records are there.
struct JournalFaults {
  std::string damage;      ///< records are lost
  std::string unreadable;  ///< records cannot be read for now
};

/// Reads every record of the journal to check it. For a pool thread; the files must not be
/// replaced meanwhile.
JournalFaults examine_journal(Files& files, const JournalFiles& journal);
/// Has the journal know of the faults, so that updates wait until it is whole again.
void tell_faults(const JournalFaults& faults, Journal& journal);

}  // namespace pando::manager
