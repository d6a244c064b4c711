#pragma once

#include <nlohmann/json_fwd.hpp>

#include "http/observe/observed.h"

namespace pando::http {

/// The numbers that the page draws: of workers, store, sockets, and the manager's status. Numbers
/// of 0 in `rcodes` and `types` are left out. `manager` and `store` are null when they are missing,
/// and `problems` has the reasons.
[[nodiscard]] nlohmann::json overview_json(const Observed& observed);

}  // namespace pando::http
