#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/observe/observed.h"

namespace pando::http {

/// What /proc tells about a process; none when it has ended or is hidden.
[[nodiscard]] std::optional<ProcessFacts> read_process(std::string name, std::uint32_t pid);

}  // namespace pando::http
