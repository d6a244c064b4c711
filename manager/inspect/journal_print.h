#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "dns/name.h"
#include "ipc/control_results.h"

/// Records of the journal in words, for operators. Nothing here writes, renames or locks a file in
/// another's way.
namespace pando::manager {

class Files;
struct JournalFiles;

/// A page of records. The last record may exceed the limits.
struct JournalPage {
  std::optional<dns::Name> zone;  ///< absent: of all zones
  std::uint64_t from = 0;         ///< first position
  std::uint32_t records = 100;
  std::size_t text_bytes = std::size_t{512} << 10;   ///< of all rows
  std::uint64_t read_bytes = std::uint64_t{64} << 20;  ///< of records that are read
  std::size_t rows = 100;  ///< resource records that a row has at most of each list
};

/// Reads a page from the files of a journal that may be written meanwhile. The result names damage
/// and unreadable files; sound records after them are read.
[[nodiscard]] ipc::JournalPrintResult print_journal(Files& files, JournalFiles journal,
                                                    const JournalPage& page);

/// Reads a page from a journal's folder, or from a single segment, that no manager has. kExists: a
/// manager works in the folder. kNotFound: there is no journal. kCorrupt, kLayout: a single segment
/// that cannot be read at all.
[[nodiscard]] Result<ipc::JournalPrintResult> print_journal_at(const std::string& path,
                                                               const JournalPage& page);

}  // namespace pando::manager
