#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace pando {

/// The build ID that the linker gave the program at `path` (an ELF note), as hexadecimal digits:
/// equal for equal programs, other for others. Empty: it was linked without one. kCorrupt: no
/// program for this kind of machine.
Result<std::string> program_build(const std::string& path);

/// Whether another process may have got this text from program_build().
[[nodiscard]] bool is_build_id(std::string_view text);

/// Build ID of the running program; empty if it cannot be found.
[[nodiscard]] std::string own_build();

/// Path of the running program. After a replacement of the file it is the path of the new one.
[[nodiscard]] std::string own_program();

}  // namespace pando
