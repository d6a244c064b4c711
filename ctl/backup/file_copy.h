#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

/// Files that pandoctl reads and writes whole. Errors name the path.
namespace pando::ctl {

/// Fills `into` as far as the file goes; returns the octets read.
Result<std::size_t> read_some(int fd, std::span<std::uint8_t> into);
Status write_all(int fd, std::span<const std::uint8_t> bytes);

struct CopiedFile {
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  ///< ContentHash
};

/// Copies all that `from` has to the open file `to`, which is then on disk. The paths are for
/// messages.
Result<CopiedFile> copy_contents(const Fd& from, const std::string& from_path, const Fd& to,
                                 const std::string& to_path);
/// Size and hash of all that the open file has; `path` is for messages.
Result<CopiedFile> hash_contents(const Fd& file, const std::string& path);
/// Whether this is a file, and no folder, pipe or device.
[[nodiscard]] bool is_regular(const Fd& file) noexcept;

}  // namespace pando::ctl
