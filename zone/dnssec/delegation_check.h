#pragma once

#include <string>

#include "zone/read/store_view.h"

namespace pando::zone {

/// Why validators refuse `child`, whatever its signatures are: the signed zone `parent`, in which
/// it is delegated, has DS records for it, and none is of its keys (RFC 4035 §5.2). Empty: no such
/// reason, also where the DS records are all of digests or algorithms that are not known here.
[[nodiscard]] std::string delegation_problem(const ZoneView& parent, const ZoneView& child);

}  // namespace pando::zone
