#pragma once

#include <cstdint>
#include <string>

namespace pando::config {

/// Why the file at `path` may not be run for the manager, whose user is `manager`; empty = it may.
/// It has to be a program that nobody but root and that user can replace or edit: whoever can edit
/// it decides what is served.
[[nodiscard]] std::string program_problem(const std::string& path, std::uint32_t manager);

}  // namespace pando::config
