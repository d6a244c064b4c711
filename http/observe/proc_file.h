#pragma once

#include <string>

namespace pando::http {

/// Content of a file of /proc, up to 4 MiB; empty when it cannot be read.
[[nodiscard]] std::string read_proc_file(const std::string& path);

}  // namespace pando::http
