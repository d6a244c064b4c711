#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names of the files in the journal's folder (docs/formats/journal.md).
namespace pando::manager {

inline constexpr std::string_view kSegmentSuffix = ".journal";
inline constexpr std::string_view kSnapshotSuffix = ".snapshot";
/// Suffix of a file that is being written, behind its name.
inline constexpr std::string_view kPartialSuffix = ".partial";
/// Suffix of a segment that is kept for its damaged header, behind its name.
inline constexpr std::string_view kDamagedSuffix = ".damaged";

/// Suffix of a replaced file that is kept, since a part of it could not be read.
inline constexpr std::string_view kUnreadSuffix = ".unread";
/// While a file of this name is there, replaced files are kept.
inline constexpr std::string_view kKeepName = "keep-replaced";

/// 0xa1 and kSegmentSuffix → "00000000000000a1.journal".
[[nodiscard]] std::string journal_file_name(std::uint64_t number, std::string_view suffix);

/// "00000000000000a1.journal" and kSegmentSuffix → 0xa1; nullopt for names of another form.
[[nodiscard]] std::optional<std::uint64_t> journal_file_number(std::string_view name,
                                                               std::string_view suffix);

/// "00000000000000a1.journal.damaged" or "00000000000000a1.journal.damaged.2" → 0xa1.
[[nodiscard]] std::optional<std::uint64_t> damaged_file_number(std::string_view name);

}  // namespace pando::manager
