#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/observe/observed.h"

namespace pando::http {

/// The facts about a process in /proc; none when the process has ended or is hidden.
[[nodiscard]] std::optional<ProcessFacts> read_process(std::string name, std::uint32_t pid);

}  // namespace pando::http
