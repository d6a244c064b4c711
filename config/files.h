#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace pando::config {

/// Whole content of a regular file; anything else (a folder, a FIFO that would block) is an error.
Result<std::string> read_regular_file(const std::string& path);

/// The same in two steps, the first of which needs the rights to the file. `path` is for messages.
Result<Fd> open_regular_file(const std::string& path);
Result<std::string> read_open_file(const Fd& fd, const std::string& path);

/// `fingerprint` with a text folded in, never 0. Not for telling what somebody wants to look alike.
std::uint64_t fold_text(std::uint64_t fingerprint, std::string_view text) noexcept;
/// The same with a file that is not read: its name, inode, size, and when it was modified and,
/// which no tool can set back, changed.
Result<std::uint64_t> fold_file(std::uint64_t fingerprint, const Fd& fd, const std::string& path);

}  // namespace pando::config
