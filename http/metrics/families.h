#pragma once

#include <vector>

#include "http/metrics/exposition.h"

namespace pando::http {

/// All families that write_metrics() may write, in no order.
[[nodiscard]] std::vector<const Family*> all_families();

}  // namespace pando::http
