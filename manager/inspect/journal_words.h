#pragma once

#include <cstddef>

#include "ipc/control_results.h"
#include "manager/journal/record/journal_format.h"

namespace pando::manager {

/// One record of the journal in words, with at most `rows` resource records of each list. A payload
/// that cannot be decoded is reported in the note.
[[nodiscard]] ipc::JournalRecordRow words_of(const JournalRecord& record, std::size_t rows);

/// Bytes of text in the row, roughly.
[[nodiscard]] std::size_t text_bytes(const ipc::JournalRecordRow& row) noexcept;

}  // namespace pando::manager
