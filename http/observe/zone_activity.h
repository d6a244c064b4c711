#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/observe/observed.h"

namespace pando::http {

/// Adds to each zone what was counted for it: by the manager in its file in `directory`, the
/// folder of the slots, and by the workers in `slots`. Returns the manager's counts that belong to
/// no zone; none: the manager counts nothing by zone.
std::optional<std::uint64_t> add_activity(std::vector<ZoneFacts>& zones,
                                          const std::vector<shm::SlotCopy>& slots,
                                          const std::string& directory);

}  // namespace pando::http
