#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace pando::config {

/// Whole content of a regular file; anything else (a folder, a FIFO that would block) is an error.
Result<std::string> read_regular_file(const std::string& path);

/// The same in two steps, the first of which needs the rights to the file. `path` is for messages.
Result<Fd> open_regular_file(const std::string& path);
Result<std::string> read_open_file(const Fd& fd, const std::string& path);

}  // namespace pando::config
