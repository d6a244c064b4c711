#pragma once

#include "http/metrics/exposition.h"
#include "http/observe/observed.h"

namespace pando::http {

/// Writes all metrics of `observed`.
void write_metrics(Exposition& out, const Observed& observed);

}  // namespace pando::http
