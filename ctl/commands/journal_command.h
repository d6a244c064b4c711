#pragma once

#include <cstdint>
#include <string>

#include "ctl/commands/manager_commands.h"
#include "ctl/view/output.h"

namespace pando::ctl {

/// The records that `journal print` is to print.
struct JournalWords {
  std::string zone;          ///< empty: of all zones
  std::uint64_t from = 0;    ///< first position
  std::uint32_t limit = 1000;
};

/// Prints records of the running manager's journal. Damage is printed as errors: kFailed.
int print_journal(Session& session, const JournalWords& words);

/// The same for a journal's folder, or one of its segments, without a manager.
int print_journal_files(const std::string& path, const JournalWords& words, const Output& output);

}  // namespace pando::ctl
