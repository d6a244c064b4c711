#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pando::config {

/// True when users beside owner and group can read or write the file.
[[nodiscard]] bool is_open_to_others(const Fd& fd) noexcept;

/// Whole content of a regular file, without a byte order mark; any other file (a folder, a FIFO
/// that would block) is an error.
Result<std::string> read_regular_file(const std::string& path);

/// read_regular_file() in two steps; only the first needs the rights to the file. `path` is for
/// messages.
Result<Fd> open_regular_file(const std::string& path);
Result<std::string> read_open_file(const Fd& fd, const std::string& path);

/// Whether a text is a pattern of glob(7), not the name of one file.
[[nodiscard]] bool is_pattern(std::string_view text) noexcept;
/// The files that match `text`, a name or pattern that starts at `folder`, sorted. A pattern may
/// match nothing; the name of a missing file is an error.
Result<std::vector<std::string>> matching_files(const std::string& folder, std::string_view text);

/// Why the file at `path` may not be run for the manager, whose user is `manager`; empty = it may.
/// Nobody but root and that user may be able to replace or edit the program, because it decides
/// what is served.
[[nodiscard]] std::string program_problem(const std::string& path, std::uint32_t manager);

/// `fingerprint` with a text folded in, never 0. Not collision-resistant: an attacker can make
/// texts with the same fingerprint.
std::uint64_t fold_text(std::uint64_t fingerprint, std::string_view text) noexcept;
/// `fingerprint` with a file folded in by its name, inode, size and times of modification and
/// change. The file is not read; no tool can set back the time of change.
Result<std::uint64_t> fold_file(std::uint64_t fingerprint, const Fd& fd, const std::string& path);

}  // namespace pando::config
