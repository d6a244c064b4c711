#pragma once

#include <string>

#include "base/result.h"

namespace pando::manager {

/// Asks the manager that runs in this run directory, of whatever build, to hand over: it writes a
/// dump beside its journal and leaves, its workers stay. Returns when it has gone; at once when
/// there is none. The error says what it answered.
Status take_over(const std::string& run_directory);

}  // namespace pando::manager
