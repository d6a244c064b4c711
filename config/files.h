#pragma once

#include <string>

#include "base/result.h"

namespace pando::config {

/// Whole content of a regular file; anything else (a folder, a FIFO that would block) is an error.
Result<std::string> read_regular_file(const std::string& path);

}  // namespace pando::config
